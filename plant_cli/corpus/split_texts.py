"""The texts of a split as a sequence that is read whenever it is asked, and never held."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import overload

import polars as pl

from plant_cli.api.corpus import Dataset, SplitName
from plant_cli.corpus.frames import read_batches


@dataclass(frozen=True)
class SplitTexts(Sequence[str]):
    """See the module.

    Args:
        dataset: whose texts.
        split: of which split.
        documents: how many there are.
        left_out: ids of documents that do not count.
    """

    dataset: Dataset
    split: SplitName
    documents: int
    left_out: Set[str] = frozenset()

    def __len__(self) -> int:
        return self.documents

    def __iter__(self) -> Iterator[str]:
        for batch in self._batches():
            yield from batch

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        return self.take(range(len(self))[row]) if isinstance(row, slice) else self.take([range(len(self))[row]])[0]

    def take(self, rows: Sequence[int]) -> list[str]:
        """The texts of some rows, in the order asked for, from one reading."""
        wanted, place, start = sorted(set(rows)), 0, 0
        found: dict[int, str] = {}
        for batch in self._batches():
            last = bisect_left(wanted, start + batch.len(), place)
            found |= {row: batch[row - start] for row in wanted[place:last]}
            place, start = last, start + batch.len()
            if place == len(wanted):
                break
        return [found[row] for row in rows]

    def _batches(self) -> Iterator[pl.Series]:
        kept = ~pl.col("doc_id").is_in(list(self.left_out))
        for batch in read_batches(self.dataset, self.split):
            yield (batch.filter(kept) if self.left_out else batch)["text"]


def take_texts(texts: Sequence[str], rows: Sequence[int]) -> list[str]:
    """Some of the texts, whether they are in memory or read."""
    return texts.take(rows) if isinstance(texts, SplitTexts) else [texts[row] for row in rows]
