"""Scoring with a decoder: all labels in blocks, or the labels that a shortlist proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NoReturn

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from plant_cli.api import (
    ComponentError,
    Documents,
    Options,
    PairDecoder,
    Reading,
    Reporter,
    ShortlistInput,
    ShortlistSpec,
    SplitName,
    promises,
)
from plant_cli.api.functions import describe_value
from plant_cli.api.read_only import read_only
from plant_cli.data.words import count_in_order, find_words
from plant_cli.network.answers import score_labels, score_wanted
from plant_cli.network.assembly import Network
from plant_cli.network.compute import send
from plant_cli.network.hardware import Hardware
from plant_cli.network.reading import HiddenReader, Room, count_fitting, lengths
from plant_cli.relevance.relevance_table import WordStatistics

UNSCORED = -1e4  # logit of a label that was not scored: a probability of 0

LABELS_PER_BLOCK = 1 << 14
"""Labels scored at a time, so that a decoder's products of its label tables, such as queries
[L, H], stay small.
"""
NOT_LEFT_OUT = {"cuda"}
"""Devices on which few labels are taken from the tables even if no document wants them: to find
these, the device is waited for.
"""


def score_all(decoder: nn.Module, reading: Reading, labels: int) -> Tensor:
    """Logits [B, L] of all labels, fp32; for use without gradients."""
    if labels <= LABELS_PER_BLOCK:
        return score_labels(decoder, reading, labels)
    blocks = torch.split(torch.arange(labels, device=reading.mask.device), LABELS_PER_BLOCK)
    return torch.cat([score_labels(decoder, reading, block) for block in blocks], dim=1)


def score_pairs(decoder: nn.Module, reading: Reading, wanted: Tensor) -> Tensor:
    """Logits [B, L] of the wanted pairs [B, L] of document and label, fp32; all others are
    `UNSCORED`, without gradient.

    Rows are taken from the label tables once for all documents. A decoder that is no `PairDecoder`
    is asked document by document, each cut to its last real token.
    """
    logits = reading.hidden.new_full(wanted.shape, UNSCORED, dtype=torch.float32)
    pairs, few = (
        isinstance(decoder, PairDecoder),
        wanted.shape[1] <= LABELS_PER_BLOCK and wanted.device.type in NOT_LEFT_OUT,
    )
    all_labels = pairs and few and not getattr(decoder, "sparse", False)
    every = (
        torch.arange(wanted.shape[1], device=wanted.device)
        if all_labels
        else wanted.any(0).nonzero().squeeze(1)
    )
    for labels in torch.split(every, LABELS_PER_BLOCK):
        chosen = wanted[:, labels]
        if isinstance(decoder, PairDecoder):
            scored = score_wanted(decoder, reading, labels, chosen)
        else:
            scored = _score_one_by_one(decoder, reading, labels, chosen)
        logits = logits.index_copy(1, labels, torch.where(chosen, scored, UNSCORED))
    return logits


def _score_one_by_one(
    decoder: nn.Module, reading: Reading, labels: Tensor, chosen: Tensor
) -> Tensor:
    rows = []
    ends = (
        (reading.mask * torch.arange(1, reading.mask.shape[1] + 1, device=chosen.device))
        .amax(1)
        .clamp_min(1)
    )
    for document, (wanted, end) in enumerate(zip(chosen, ends.tolist(), strict=True)):
        row = reading.hidden.new_full((len(labels),), UNSCORED, dtype=torch.float32)
        if wanted.any():
            alone = reading.select(slice(document, document + 1), slice(end))
            row = row.masked_scatter(wanted, score_labels(decoder, alone, labels[wanted])[0])
        rows.append(row)
    return torch.stack(rows)


Rows = npt.NDArray[np.int64]
TEXTS_PER_BATCH = 256  # documents proposed for at a time
DOCUMENTS_FOR_RECALL = 64  # documents on which recall is measured: all their labels must be scored


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

    def of(self, rows: Rows, device: torch.device) -> torch.Tensor:
        """The proposed pairs of some documents, as bool [B, L]."""
        wanted = np.zeros((len(rows), self.labels), dtype=bool)
        for number, row in enumerate(rows):
            wanted[number, self.found[row]] = True
        return send(torch.from_numpy(wanted), device)


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
        column_of = find_words(words, columns)
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


@torch.no_grad()
def measure_recall(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    candidates: ShortlistedLabels,
    m: int,
    *,
    batch: Room | int,
    sample: int = DOCUMENTS_FOR_RECALL,
) -> float:
    """Share of the m best labels of the network that the shortlist proposes: mean over `sample`
    documents, evenly spread over the split.

    The network scores every label of these documents, so the figure is exact for them.
    """
    network.eval()
    rows = np.unique(
        np.linspace(0, len(candidates) - 1, num=min(sample, len(candidates)), dtype=np.int64)
    )
    m = min(m, network.labels)
    shares: list[float] = []
    size = count_fitting(batch, int(lengths(reader.tokens)[rows].max(initial=0)))
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        reading = reader.read(part)
        with hardware.autocast():
            best = score_all(network.decoder, reading, network.labels).topk(m, dim=1).indices
        shares += candidates.of(part, best.device).gather(1, best).float().mean(1).tolist()
    return float(np.mean(shares)) if shares else 0.0
