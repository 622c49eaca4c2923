"""The texts of a split as a sequence that is read whenever it is asked, and never held."""

from __future__ import annotations

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
        wanted, start = set(rows), 0
        found: dict[int, str] = {}
        for batch in self._batches():
            here = [row for row in wanted if start <= row < start + batch.len()]
            found |= {row: batch[row - start] for row in here}
            start += batch.len()
            if len(found) == len(wanted):
                break
        return [found[row] for row in rows]

    def _batches(self) -> Iterator[pl.Series]:
        for batch in read_batches(self.dataset, self.split):
            kept = batch if not self.left_out else batch.filter(~pl.col("doc_id").is_in(list(self.left_out)))
            yield kept["text"]


def take_texts(texts: Sequence[str], rows: Sequence[int]) -> list[str]:
    """Some of the texts, whether they are in memory or read."""
    return texts.take(rows) if isinstance(texts, SplitTexts) else [texts[row] for row in rows]
