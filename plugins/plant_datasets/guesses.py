"""Which columns a person may have meant, by what is in them: only ever to be suggested, never to be used unasked."""

from __future__ import annotations

import shlex
from pathlib import Path

import polars as pl

from plant_cli.api import DataError, DataSection, near_names
from plant_cli.kit import collect, shorten, show_names
from plant_datasets.label_cells import find_separator, parse_labels
from plant_datasets.layout import ALIASES

SAMPLE = 500  # rows
HOLDS = {
    "--text-column": "a column with the text of each document",
    "--labels-column": "a column with the labels of each document",
    "--split-column": "a column that says train, validation or test",
    "--id-column": "a column with an id for each document",
}
REPEATED = 0.8  # labels recur: at least this share of distinct ones among all is a column of something else


def missing_column(name: str, flag: str, table: pl.LazyFrame, data: DataSection, path: Path | str) -> DataError:
    """The error for a column that is not there: near names, and what the columns hold suggests.

    Args:
        name: the column that was looked for.
        flag: the flag that names another one.
        table: the table; a sample of its rows is looked at.
        data: how all columns are named so far.
        path: the file.
    """
    columns = table.collect_schema().names()
    guessed = _guess_flags(table, data, str(path))
    near = near_names(name, map(shorten, columns))
    without = "" if flag != "--labels-column" or flag in guessed else "; where there is none, add it: models learn from labelled documents"
    return DataError(
        f"there is no column '{name}'",
        where=f"{path}, columns {show_names(columns)}",
        expected=near if "did you mean" in near else HOLDS.get(flag, "a column of that name"),  # all names stand in `where`
        todo=f"name the right one with {flag}" + (f"; by what is in the columns perhaps {guessed}" if guessed else "") + without,
    )


def guess_split(table: pl.LazyFrame, where: str) -> str | None:
    """A column that holds nothing but names of splits, and more than one of them."""
    sample = collect(table.head(SAMPLE), where)
    likely = [name for name, dtype in sample.schema.items() if dtype == pl.String and None not in _splits_in(sample[name])]
    return next((name for name in likely if _names_splits(collect(table.select(name), where)[name])), None)


def _names_splits(column: pl.Series) -> bool:
    found = _splits_in(column)
    return None not in found and len(found) > 1


def _splits_in(column: pl.Series) -> set[str | None]:
    return {ALIASES.get((value or "").strip().lower()) for value in column.unique()}


def _guess_flags(table: pl.LazyFrame, data: DataSection, where: str) -> str:
    """Flags for the columns that are not there under the names given so far."""
    sample = collect(table.head(SAMPLE), where)
    named = (data.text_column, data.labels_column, data.split_column, data.id_column)
    present = {name for name in named if name is not None and name in sample.columns}
    split = guess_split(table, where)
    left = sample.drop(present, *([split] if split and split not in present else []))
    text = _guess_text(left) if data.text_column not in present else None
    labels = _guess_labels(left.drop([text] if text else [])) if data.labels_column not in present else None
    flags = {"--text-column": text, "--labels-column": labels, "--split-column": None if data.split_column in present else split}
    names = {flag: name for flag, name in flags.items() if name == shorten(name or "")}  # a longer one is a document: there is no header
    return " ".join(f"{flag} {shlex.quote(name)}" for flag, name in names.items() if name)


def _guess_text(sample: pl.DataFrame) -> str | None:
    """The column of the longest strings."""
    lengths = {name: sample[name].str.len_chars().mean() for name, dtype in sample.schema.items() if dtype == pl.String}
    filled = {name: float(length) for name, length in lengths.items() if isinstance(length, int | float)}
    return max(filled, key=lambda name: filled[name], default=None)


def _guess_labels(sample: pl.DataFrame) -> str | None:
    """A column of lists, else the one whose cells hold the most repetitive parts; those that have a separator first."""
    ranked: list[tuple[bool, float, str]] = []
    for name, dtype in sample.schema.items():
        if dtype == pl.List(pl.String):
            return name
        if dtype == pl.String:
            separator = find_separator([sample[name]])
            parts = parse_labels(sample[name], separator, name).explode().drop_nulls()
            ranked.append((separator is None, parts.n_unique() / max(1, parts.len()), name))
    return next((name for _, distinct, name in sorted(ranked) if distinct < REPEATED), None)
