"""The labels that a shortlist proposes for documents, which a network then scores alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NoReturn

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import (
    ComponentError,
    Documents,
    Options,
    Reporter,
    ShortlistInput,
    ShortlistSpec,
    SplitName,
    promises,
)
from plant_cli.api.functions import describe_value
from plant_cli.api.read_only import read_only
from plant_cli.data.words import count_in_order
from plant_cli.relevance.relevance_table import WordStatistics

Rows = npt.NDArray[np.int64]
TEXTS_PER_BATCH = 256  # documents proposed for at a time


class ShortlistedLabels:
    """The labels that a shortlist proposes for each document of a split."""

    def __init__(self, found: Sequence[Rows], labels: int) -> None:
        self.found = found  # label indices of each document [N]
        self.labels = labels

    def __len__(self) -> int:
        return len(self.found)

    @property
    def most(self) -> int:
        """The largest number of a document."""
        return max(map(len, self.found), default=0)

    @property
    def mean(self) -> float:
        """The mean number of a document."""
        return float(np.mean([len(labels) for labels in self.found])) if self.found else 0.0

    def join(self, rows: Rows, labels: Rows) -> ShortlistedLabels:
        """These and further pairs of document and label [P], by rising document."""
        bounds = pairwise(np.searchsorted(rows, np.arange(len(self.found) + 1)))
        joined = [
            np.union1d(some, labels[first:last]).astype(np.int64)
            for some, (first, last) in zip(self.found, bounds, strict=True)
        ]
        return ShortlistedLabels(joined, self.labels)

    def recall(self, gold: csr_array) -> float:
        """Share of the pairs of gold [N, L] that are proposed; 1 if there is none."""
        rows = zip(self.found, pairwise(gold.indptr), strict=True)
        hits = sum(
            int(np.isin(gold.indices[first:last], proposed).sum())
            for proposed, (first, last) in rows
        )
        return hits / gold.nnz if gold.nnz else 1.0


def propose(
    shortlist: tuple[ShortlistSpec, Options],
    statistics: WordStatistics,
    splits: Mapping[SplitName, tuple[Sequence[str], Documents]],
    reporter: Reporter,
) -> dict[str, ShortlistedLabels]:
    """Build a shortlist, and ask it for the labels of every text of some splits, which are
    given with their words.
    """
    spec, options = shortlist
    table, labels = statistics.table, len(statistics.docs_with_label)
    inputs = ShortlistInput(
        words=table.words,
        relevance=table.matrix,
        docs_with_word=statistics.docs_with_word,
        train_counts=statistics.docs_with_label,
        documents=statistics.documents,
    )
    built = spec.build(options, inputs)
    columns = {word: column for column, word in enumerate(table.words)}
    proposed: dict[str, ShortlistedLabels] = {}
    for name, (texts, words) in splits.items():
        found: list[Rows] = []
        column_of = words.find_words(columns)
        with reporter.progress(f"shortlist {spec.name}: {name}", len(texts), "documents") as task:
            for start in range(0, len(texts), TEXTS_PER_BATCH):
                part = texts[start : start + TEXTS_PER_BATCH]
                counts = count_in_order(
                    words.take(np.arange(start, start + len(part))), column_of, len(columns)
                )
                proposals = built.propose(part, read_only(counts))
                found.extend(_checked(spec.name, proposals, len(part), labels))
                task.advance(len(part))
        proposed[name] = ShortlistedLabels(found, labels)
    return proposed


def _checked(name: str, proposals: Sequence[Rows], documents: int, labels: int) -> list[Rows]:
    """Proposals that keep the promises of a shortlist."""

    def refuse(what: str) -> NoReturn:
        raise ComponentError(
            f"the shortlist '{name}' {what}",
            where=f"option shortlist, '{name}'",
            expected="for each document distinct rows of the label index, as whole numbers in one "
            "array",
            todo="choose another shortlist, or tell its author",
        )

    if not promises.PROPOSALS.is_kept(proposals):
        wrong = (
            [one for one in proposals if not promises.PROPOSALS.is_kept([one])]
            if isinstance(proposals, Sequence)
            else []
        )
        refuse(
            f"proposes {describe_value(wrong[0] if wrong else proposals)}, not an array of labels "
            "for each document"
        )
    found = list(proposals)
    if len(found) != documents:
        refuse(f"proposes labels for {len(found)} documents, not {documents}")
    for proposed in found:
        if proposed.size and not 0 <= proposed.min() <= proposed.max() < labels:
            refuse(f"proposes label {proposed.min() if proposed.min() < 0 else proposed.max()}")
        if len(np.unique(proposed)) != len(proposed):
            refuse("proposes a label twice")
    return [proposed.astype(np.int64) for proposed in found]
