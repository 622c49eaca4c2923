"""Labels of a vocabulary as one table, whichever format they were in."""

from __future__ import annotations

import polars as pl

from plant_cli.data.listed_values import split_names
from plant_cli.data.tables import trim

VOCABULARY_SCHEMA = {
    "label": pl.String(),
    "title": pl.String(),
    "description": pl.String(),
    "alternatives": pl.List(pl.String()),
    "parents": pl.List(pl.String()),
    "deprecated": pl.Boolean(),
    "replaced_by": pl.List(pl.String()),
    "notation": pl.String(),
}
LISTED_FIELDS = ("alternatives", "parents", "replaced_by")


def tidy_labels(table: pl.DataFrame) -> pl.DataFrame:
    """A table of labels in the schema: blanks cut off, empty cells null, lists made of cells such
    as `a|b` or `["a", "b"]`.

    A label that has a successor is deprecated, whether the table says so or not.
    """
    columns = []
    for name, dtype in VOCABULARY_SCHEMA.items():
        given = table.get_column(name, default=None)
        if given is None:
            columns.append(
                pl.lit(
                    [] if name in LISTED_FIELDS else False if name == "deprecated" else None,
                    dtype=dtype,
                ).alias(name)
            )
        elif name in LISTED_FIELDS and given.dtype == dtype:
            names = pl.col(name).list.eval(trim(pl.element()).filter(trim(pl.element()) != ""))
            columns.append(
                names.list.unique(maintain_order=True).fill_null(pl.lit([], dtype=dtype))
            )
        elif name in LISTED_FIELDS:
            columns.append(
                pl.lit(
                    pl.Series(name, [split_names(cell) for cell in given.to_list()], dtype=dtype)
                ).alias(name)
            )
        elif name == "deprecated":
            columns.append(
                pl.col(name)
                .cast(pl.String)
                .str.to_lowercase()
                .is_in(["true", "1", "yes"])
                .fill_null(False)
            )
        else:
            columns.append(pl.col(name).cast(pl.String).str.strip_chars().replace("", None))
    named = table.with_columns(
        pl.col("label").cast(pl.String).str.replace(r"^<(.*)>$", "$1")
    ).select(columns)
    named = named.with_columns(pl.col("deprecated") | (pl.col("replaced_by").list.len() > 0))
    return named.filter(pl.col("label").is_not_null())


def bare_key(cells: pl.Expr) -> pl.Expr:
    """Equal for labels that are equal but for dots and case."""
    return cells.str.strip_chars(" <>").str.to_lowercase().str.replace_all(".", "", literal=True)


def last_part(cells: pl.Expr) -> pl.Expr:
    """Equal for labels whose last part is equal: of `http://x/HP_1` and `HP:1` that is `hp1`."""
    return (
        cells.str.strip_chars(" <>/#")
        .str.to_lowercase()
        .str.extract(r"([^/#]+)$")
        .str.replace_all("[._:-]", "")
    )
