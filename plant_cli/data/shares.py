"""Shares of a corpus, such as 2/4: which rows are in one, and whether all shares are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from plant_cli.api.errors import UsageError

MOST_SHARDS = 1_000_000  # shards of one corpus
SHARE_PATTERN = r"^\d+/\d+$"  # such as 2/4


@dataclass(frozen=True)
class Shard:
    """Share `number` of `of`: every `of`-th document from the `number`-th on, so that shares
    are alike.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/4`; `ValueError` if there is no such share."""
        number, _, of = text.partition("/")
        shard = cls(int(number), int(of))
        if shard.of > MOST_SHARDS:
            raise ValueError(f"at most {MOST_SHARDS:,} shards")
        if not 1 <= shard.number <= shard.of:
            raise ValueError(
                f"there is no shard {text}: shards are 1/{shard.of} to {shard.of}/{shard.of}"
            )
        return shard

    @property
    def rows(self) -> slice:
        """Its rows of train."""
        return self.rows_from(0)

    def rows_from(self, start: int) -> slice:
        """Its rows among those of train from row `start` on, counted from there."""
        return slice((self.number - 1 - start) % self.of, None, self.of)

    def part(self, total: int) -> range:
        """Its rows of `total` where shares are consecutive rows, so that they make the whole
        one after the other.
        """
        return range(total * (self.number - 1) // self.of, total * self.number // self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def find_paths(patterns: Sequence[str]) -> list[Path]:
    """What patterns such as `shards/*/mig` name, each once and sorted; one that is there by
    that very name is no pattern.
    """
    return sorted(
        {
            Path(path)
            for pattern in patterns
            for path in ([pattern] if Path(pattern).exists() else glob(pattern))
        }
    )


def require_whole(shards: Mapping[Path, Shard]) -> None:
    """Refuse anything but each shard of one division once, of the paths that `--merge` names."""
    by_shard: dict[Shard, Path] = {}
    wrong = ""
    for path, shard in shards.items():
        if shard in by_shard:
            wrong = wrong or f"shard {shard} is given twice"
        by_shard[shard] = path
    divisions = sorted({shard.of for shard in by_shard})
    if not wrong and len(divisions) != 1:
        wrong = (
            f"the shards are of different divisions, into {' and '.join(map(str, divisions))}"
            if divisions
            else "there are no shards"
        )
    if not wrong:
        missing = [
            str(shard)
            for number in range(1, divisions[0] + 1)
            if (shard := Shard(number, divisions[0])) not in by_shard
        ]
        wrong = f"shard {', '.join(missing)} is missing" if missing else ""
    if wrong:
        raise UsageError(
            wrong,
            where="--merge: "
            f"{', '.join(f'{path} ({shard})' for path, shard in shards.items()) or 'nothing'}",
            expected="every shard of one division once, such as 1/2 and 2/2",
            todo="name all of them; `plant mig --shard i/n` makes one that is missing",
        )


def require_share(text: str | None) -> str | None:
    """A share that there can be, for an option; `ValueError` if it cannot."""
    return None if text is None else str(Shard.parse(text))
