"""Labels in several columns of one name and a number: `keyword_1`, `keyword_2`, `keyword_3`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

import polars as pl

from plant_cli.api import DataSection
from plant_formats.column_words import read_meaning

_NUMBERED = re.compile(r"(.*?\D)[ _.-]?0*(\d+)")
_MOST = 50  # columns: more are a matrix
REPEATED = 0.8  # share of distinct values from which a column has no labels: labels recur


def find_numbered(schema: pl.Schema) -> list[list[str]]:
    """The columns of strings that have one name and the numbers from 0 or 1 on, two or more, in the
    order of the numbers.
    """
    parts = [
        (match[1].rstrip(" _.-"), int(match[2]), name)
        for name, kind in schema.items()
        if kind == pl.String and (match := _NUMBERED.fullmatch(name))
    ]
    families = []
    for _, members in groupby(sorted(parts), key=lambda part: part[0]):
        numbers, names = zip(*((number, name) for _, number, name in members), strict=True)
        if 2 <= len(names) <= _MOST and numbers in (
            tuple(range(len(names))),
            tuple(range(1, len(names) + 1)),
        ):
            families.append(list(names))
    return families


def join_families(table: pl.DataFrame) -> pl.DataFrame:
    """A table with such columns joined whose name says that they hold labels, or whose values
    recur: as lists under their names with commas, where the first of them stood.
    """
    families = {
        names[0]: names
        for names in find_numbered(table.schema)
        if read_meaning(names[0]) == "labels" or _recur(table.select(join_cells(names)))
    }
    joined = {name for names in families.values() for name in names}
    return table.select(
        join_cells(families[name]) if name in families else pl.col(name)
        for name in table.columns
        if name in families or name not in joined
    )


def _recur(lists: pl.DataFrame) -> bool:
    values = lists.to_series().explode().drop_nulls()
    return 1 < values.n_unique() <= REPEATED * values.len()


def join_cells(names: Sequence[str]) -> pl.Expr:
    """The cells of some columns as one list, without empty ones, under their names with commas."""
    cells = [pl.col(name).cast(pl.String).str.strip_chars() for name in names]
    listed = pl.concat_list([pl.when(cell != "").then(cell) for cell in cells])
    return listed.list.drop_nulls().list.unique(maintain_order=True).alias(",".join(names))


def has_labels(data: DataSection, columns: Iterable[str]) -> bool:
    """Whether a table has the columns of labels that the section names with commas."""
    known = set(columns)
    names = DataSection.named(data.labels_column, list(known))
    return len(names) > 1 and known.issuperset(names)


def label_field(given: str, columns: Sequence[str]) -> tuple[str, str]:
    """The column of the labels and the key of the objects in it that an option such as
    `genres.name` names; "": no key.
    """
    name, _, key = given.partition(".")
    return (name, key) if given not in columns and key and name in columns else (given, "")
