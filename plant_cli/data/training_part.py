"""A part of a run's training documents: fewer documents train, while labels, validation and
test stay those of the run.
"""

# ruff: noqa: D102  # the methods of a protocol are described there
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api import Analyser, DataError, DataSection, Split, SplitName
from plant_cli.data.files import hash_json
from plant_cli.data.labels import LabelTable
from plant_cli.data.splits import split_documents
from plant_cli.data.store import StoredCorpus


@dataclass(frozen=True, kw_only=True)
class TrainingPart:
    """See `plant_cli.api.Corpus`: the corpus `whole` of which only some documents train. Labels
    keep their places, and are counted anew.
    """

    whole: StoredCorpus = field(repr=False)
    rows: npt.NDArray[np.int64]  # of the training documents that are left, ascending [n]
    labels: LabelTable = field(repr=False)
    data_hash: str

    @property
    def analyser(self) -> Analyser:
        return self.whole.analyser

    @property
    def sizes(self) -> Mapping[SplitName, int]:
        return {**self.whole.sizes, "train": len(self.rows)}

    def split(self, name: SplitName) -> Split:
        return self._cut(self.whole.split(name))

    def gold_labels(self, name: SplitName) -> Split:
        return self._cut(self.whole.gold_labels(name))

    def stream(self, name: SplitName) -> Iterator[Split]:
        start = 0
        for batch in self.whole.stream(name):
            yield self._cut(batch, start)
            start += len(batch)

    def has_split(self, name: SplitName) -> bool:
        return self.whole.has_split(name)

    def __iter__(self) -> Iterator[SplitName]:
        return iter(self.whole)

    def _cut(self, split: Split, start: int = 0) -> Split:
        """What is left of a split, or of a batch of it from row `start` on."""
        first, last = np.searchsorted(self.rows, (start, start + len(split)))
        return split.take(self.rows[first:last] - start) if split.name == "train" else split


def take_part(whole: StoredCorpus, share: float, data: DataSection) -> TrainingPart:
    """A share of the training documents by `data.sampling` and `data.subset_seed`; a larger
    uniform sample contains a smaller one.
    """
    train = whole.gold_labels("train")
    names = [list(map(str, row)) for row in np.split(train.gold.indices, train.gold.indptr[1:-1])]
    frame = pl.DataFrame(
        {"row": range(len(train)), "doc_id": train.doc_ids, "text": train.doc_ids, "labels": names}
    )
    found = split_documents(frame, {"test": share}, seed=data.subset_seed, method=data.sampling)
    if "test" not in found:
        where, expected = (
            f"data.train_share: a share of {share:g} of {len(train):,} documents",
            "a share that has a document",
        )
        raise DataError(
            "no training document is left", where=where, expected=expected, todo="take a larger one"
        )
    rows = found["test"]["row"].to_numpy().astype(np.int64)
    counts = np.asarray(train.gold[rows].sum(axis=0)).tolist()
    key = hash_json({"data": whole.data_hash, "rows": rows.tolist()})
    return TrainingPart(
        whole=whole, rows=rows, labels=replace(whole.labels, train_counts=counts), data_hash=key
    )
