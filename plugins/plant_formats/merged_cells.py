"""Tables from sheets in which a text stands once for several rows, in cells that are merged."""

from __future__ import annotations

import polars as pl

from plant_cli.api import DataSection
from plant_cli.kit import collect
from plant_formats.numbered_columns import label_field

_SAMPLE = 500  # rows that are looked at
_SHARE = 0.1  # of them hold a label without a text: fewer are rows that lost something


def fill_merged_cells(
    table: pl.LazyFrame, data: DataSection, where: str
) -> tuple[pl.LazyFrame, list[str]]:
    """The table with each text in all of its rows, and a remark, where a text stands in the first
    of its rows alone: all rows without a text hold a label, and else nothing, or what is above.
    """
    schema = table.collect_schema()
    held = label_field(data.labels_column, schema.names())[0]
    texts = DataSection.named(data.text_column, schema.names())
    others = [name for name in schema if name != held]
    nested = any(schema[name].is_nested() for name in others)
    if schema.get(held) != pl.String or nested or not {*texts} <= {*others}:
        return table, []
    below = pl.all_horizontal(_written(name) == "" for name in texts) & (_written(held) != "")
    first = pl.when(~below).then(pl.int_range(pl.len())).forward_fill()
    alike = pl.all_horizontal(
        (_written(name) == "") | (_written(name) == _written(name).gather(first)).fill_null(False)
        for name in others
    )

    def look(rows: pl.LazyFrame) -> pl.DataFrame:
        return collect(rows.select(below=below, strange=below & ~alike), where)

    sample = look(table.head(_SAMPLE))
    few = sample["below"].sum() < max(1, _SHARE * sample.height)
    if (
        few
        or sample["below"][0]
        or sample["strange"].any()
        or (found := look(table))["strange"].any()
    ):
        return table, []
    remark = (
        f"{where}: {found['below'].sum():,} rows have a label and no text: they belong to the text "
        "above them, as where cells of a sheet are merged"
    )
    return table.with_columns(pl.col(others).gather(first)), [remark]


def _written(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String, strict=False).str.strip_chars().fill_null("")
