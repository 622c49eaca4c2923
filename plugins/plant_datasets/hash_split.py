"""Splits by a hash of each text, for corpora that come without."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import polars as pl

from plant_cli.api import SPLITS, SplitName
from plant_cli.kit import collect


def split_by_hash(parts: Sequence[pl.LazyFrame], where: str) -> dict[SplitName, list[pl.LazyFrame]]:
    """Splits 80/10/10 by a hash of the column `text`: equal texts stay together, and added documents move none.

    Args:
        parts: of a corpus, one after the other; the texts of one part at a time are read.
        where: the corpus, for messages.

    Returns:
        The documents of each split, in as many parts.
    """
    splits: dict[SplitName, list[pl.LazyFrame]] = {}
    for part in parts:
        places = pl.Series(
            [_place(text or "") for text in collect(part.select(pl.col("text").cast(pl.String)), where)["text"]], dtype=pl.String
        )
        for name in SPLITS:
            splits.setdefault(name, []).append(part.filter(pl.lit(places == name)) if (places == name).any() else part.head(0))
    return {name: found for name, found in splits.items() if collect(pl.concat(found).select(pl.len()), where).item()}


def _place(text: str) -> SplitName:
    tenth = 10 * int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:6], "big") >> 48
    return "validation" if tenth == 8 else "test" if tenth == 9 else "train"
