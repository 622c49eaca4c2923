"""Columns of a table: label cells as lists, and which column the user may have meant where one is missing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from plant_cli.api import DataError, DataSection, near_names
from plant_cli.kit import collect, fractional_labels, read_list, shorten, show_names
from plant_datasets.corpus_reader import ALIASES

SEPARATORS = (";", "|", ",")
_LISTS = pl.List(pl.String)
_AS_LISTS = "lists"
_SAMPLE = 500  # rows that are looked at for a suggestion
_REPEATED = 0.8  # share of distinct values from which a column has no labels: labels recur
_MEANINGS = {
    "--text-column": "a column with the text of each document",
    "--labels-column": "a column with the labels of each document",
    "--split-column": "a column that says train, validation or test",
    "--id-column": "a column with an id for each document",
}


def find_separator(columns: Sequence[pl.Series]) -> str | None:
    """How the label cells of all splits are written: "lists" (`["a", "b"]`) or a separator; None: one label in each cell.

    Separators are tried in their order, since headings hold commas (`Mann, Thomas`). A blank separates no labels (`atrial fibrillation`).
    """
    filled = _filled(columns)
    if filled.len() and filled.str.contains(r"(?s)^\s*\[.*\]\s*$").all():
        return _AS_LISTS
    return next((separator for separator in SEPARATORS if filled.str.contains(separator, literal=True).any()), None)


def describe_guess(columns: Sequence[pl.Series], separator: str) -> str:
    """The remark on a guessed separator: how many cells have it, and which other occurs in more."""
    filled = _filled(columns)
    counts = {other: int(filled.str.contains(other, literal=True).sum()) for other in SEPARATORS}
    rival = max(SEPARATORS, key=lambda other: counts[other])
    rivalry = "" if counts[rival] <= counts[separator] else f", '{rival}' in {counts[rival]:,}"
    cells = f"it is in {counts[separator]:,} of {filled.len():,} cells{rivalry}"
    return f"labels are cut at '{separator}': {cells} (--label-separator names another separator; '' for one label per cell)"


def _filled(columns: Sequence[pl.Series]) -> pl.Series:
    """All cells of text that are not blank."""
    cells = pl.concat([column.cast(pl.String) for column in columns if column.dtype == pl.String] or [pl.Series([], dtype=pl.String)])
    return cells.filter(cells.str.contains(r"\S"))


def parse_labels(column: pl.Series, separator: str | None, where: str) -> pl.Series:
    """Label lists of a column of lists, strings or whole numbers; with the separator "", lists in strings are not looked for."""
    if isinstance(column.dtype, pl.List):
        return column
    if column.dtype == pl.Null or column.dtype.is_integer():
        return _singles(column.cast(pl.String))
    if column.dtype.is_float() or column.dtype.is_decimal():
        what = f"numbers with a fraction: {column.drop_nulls().first()!s}"
        raise fractional_labels(str(column.dtype), f"{where}, column {column.name}", what)
    if column.dtype != pl.String:
        raise DataError(
            f"the labels are of type {column.dtype}, neither lists nor strings: {str(column.drop_nulls().first())[:60]}",
            where=f"{where}, column {column.name}, row 1",
            expected='a list such as ["a", "b"], or a string such as a;b',
            todo="name the right column with --labels-column",
        )
    if separator == _AS_LISTS:
        lists = [_parse_list(cell, f"{where}, column {column.name}, row {row}") for row, cell in enumerate(column, start=1)]
        return pl.Series(column.name, lists, dtype=_LISTS)
    if separator == "":
        return _singles(column)
    _refuse_stray_lists(column, where)
    return _singles(column) if separator is None else column.str.split(separator)


def _singles(column: pl.Series) -> pl.Series:
    return column.reshape((-1, 1)).arr.to_list() if column.len() else column.cast(_LISTS)


def _parse_list(cell: str | None, where: str) -> list[str]:
    if cell is None or not cell.strip():
        return []
    parsed = read_list(cell)
    if parsed is None or not all(isinstance(label, (str, int)) for label in parsed):
        raise DataError(
            f"the labels are not a list of strings: {cell[:60]}",
            where=where,
            expected='a list such as ["a", "b"], as in the other rows',
            todo="mend that row",
        )
    return [str(label) for label in parsed]


def _refuse_stray_lists(column: pl.Series, where: str) -> None:
    """Refuse a column in which only some cells are lists: cutting a list at its commas would hide that two columns were mixed up."""
    bracketed = column.str.contains(r"(?s)^\s*\[.*\]\s*$").fill_null(False)
    strays = column.filter(bracketed & column.str.contains("[\"']"))
    if not strays.len() or read_list(strays[0]) is None:
        return
    rows = enumerate(zip(column, bracketed, strict=True), start=1)
    row = next((row for row, (cell, listed) in rows if not listed and cell), None)
    if row is None:
        raise DataError(
            f"the labels are lists already: {strays[0][:60]}",
            where=f"{where}, column {column.name}",
            expected="strings such as a;b, since a separator was named",
            todo="leave --label-separator out",
        )
    raise DataError(
        f"the labels are not a list: {column[row - 1][:60]}",
        where=f"{where}, column {column.name}, row {row}",
        expected="a list in every row, as in some others",
        todo="mend that row",
    )


def missing_column(name: str, flag: str, table: pl.LazyFrame, data: DataSection, path: Path | str) -> DataError:
    """The error for a column that is missing: near names, and the columns that the user may have meant, by a sample of their rows."""
    columns = table.collect_schema().names()
    guessed = _guess_flags(table, data, str(path))
    near = near_names(name, map(shorten, columns))
    without = "" if flag != "--labels-column" or flag in guessed else "; where there is none, add it: models learn from labelled documents"
    return DataError(
        f"there is no column '{name}'",
        where=f"{path}, columns {show_names(columns)}",
        expected=near if "did you mean" in near else _MEANINGS.get(flag, "a column of that name"),
        todo=f"name the right one with {flag}" + (f"; by what is in the columns perhaps {guessed}" if guessed else "") + without,
    )


def guess_split(table: pl.LazyFrame, where: str) -> str | None:
    """A column that holds nothing but names of splits, and more than one of them."""
    sample = collect(table.head(_SAMPLE), where)
    likely = [name for name, dtype in sample.schema.items() if dtype == pl.String and None not in _splits_in(sample[name])]
    for name in likely:
        splits = _splits_in(collect(table.select(name), where)[name])
        if None not in splits and len(splits) > 1:
            return name
    return None


def _splits_in(column: pl.Series) -> set[str | None]:
    return {ALIASES.get((value or "").strip().lower()) for value in column.unique()}


def _guess_flags(table: pl.LazyFrame, data: DataSection, where: str) -> str:
    """Flags for the columns that are missing under the names used so far."""
    sample = collect(table.head(_SAMPLE), where)
    named = (data.text_column, data.labels_column, data.split_column, data.id_column)
    present = {name for name in named if name is not None and name in sample.columns}
    split = guess_split(table, where)
    left = sample.drop(present, *([split] if split and split not in present else []))
    text = _guess_text(left) if data.text_column not in present else None
    labels = _guess_labels(left.drop([text] if text else [])) if data.labels_column not in present else None
    flags = {"--text-column": text, "--labels-column": labels, "--split-column": None if data.split_column in present else split}
    # a name that must be shortened is a document: the table has no header
    return " ".join(f"{flag} {shlex.quote(name)}" for flag, name in flags.items() if name and name == shorten(name))


def _guess_text(sample: pl.DataFrame) -> str | None:
    """The column of the longest strings."""
    lengths = {name: sample[name].str.len_chars().mean() for name, dtype in sample.schema.items() if dtype == pl.String}
    filled = {name: float(length) for name, length in lengths.items() if isinstance(length, int | float)}
    return max(filled, key=lambda name: filled[name], default=None)


def _guess_labels(sample: pl.DataFrame) -> str | None:
    """A column of lists, else the one whose values recur most; columns with a separator first."""
    ranked: list[tuple[bool, float, str]] = []
    for name, dtype in sample.schema.items():
        if dtype == _LISTS:
            return name
        if dtype == pl.String:
            separator = find_separator([sample[name]])
            labels = parse_labels(sample[name], separator, name).explode().drop_nulls()
            ranked.append((separator is None, labels.n_unique() / max(1, labels.len()), name))
    return next((name for _, distinct, name in sorted(ranked) if distinct < _REPEATED), None)
