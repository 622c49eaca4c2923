"""Labels of documents as a run keeps them: without the blanks around them, and none that is empty."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from plant_cli.kit.tables import collect

_BLANKS = r"^\s+|\s+$"


def trim(labels: pl.Expr) -> pl.Expr:
    """Labels without the blanks around them."""
    return labels.str.replace_all(_BLANKS, "")


def find_used_labels(splits: Iterable[pl.LazyFrame], where: str) -> pl.Series:
    """The labels that documents have, sorted, each once.

    Args:
        splits: each with a column `labels`, lists as they were written.
        where: the corpus, for messages.
    """
    written = [frame.select(label=pl.col("labels").explode().cast(pl.String)).unique() for frame in splits]
    if not written:
        return pl.Series("label", [], dtype=pl.String)
    label = trim(pl.col("label"))
    return collect(pl.concat(written).select(label).filter(pl.col("label") != "").unique(), where)["label"].sort()
