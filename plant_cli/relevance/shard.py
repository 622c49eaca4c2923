"""Which share of the documents is counted by itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    """Share `number` of `of`: every `of`-th document from the `number`-th on, so that shares are alike."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/4`; `ValueError` if there is no such share."""
        number, _, of = text.partition("/")
        shard = cls(int(number), int(of))
        if not 1 <= shard.number <= shard.of:
            raise ValueError(f"there is no shard {text}: shards are 1/{shard.of} to {shard.of}/{shard.of}")
        return shard

    @property
    def rows(self) -> slice:
        """Its rows of train."""
        return self.rows_from(0)

    def rows_from(self, start: int) -> slice:
        """Its rows among those of train from row `start` on, counted from there."""
        return slice((self.number - 1 - start) % self.of, None, self.of)

    def part(self, total: int) -> range:
        """Its rows of `total` where shares are consecutive rows, so that they make the whole one after the other."""
        return range(total * (self.number - 1) // self.of, total * self.number // self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
