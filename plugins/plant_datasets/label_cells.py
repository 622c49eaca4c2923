"""Cells of a label column: lists as they are, strings cut at a separator that is given or found."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from plant_cli.api import DataError
from plant_cli.kit import read_list

SEPARATORS = (";", "|", ",")
_LISTS = pl.List(pl.String)
_AS_LISTS = "lists"


def find_separator(columns: Sequence[pl.Series]) -> str | None:
    """How the label cells of a corpus are written, looking at all its splits.

    Returns:
        "lists" if every filled cell is a list (`["a", "b"]`), else the first of `;`, `|` and `,` that occurs in any, since headings hold
        commas (`Mann, Thomas`), else None. A blank never parts labels, so that `atrial fibrillation` stays one.
    """
    filled = _filled(columns)
    if filled.len() and filled.str.contains(r"(?s)^\s*\[.*\]\s*$").all():
        return _AS_LISTS
    return next((separator for separator in SEPARATORS if filled.str.contains(separator, literal=True).any()), None)


def describe_guess(columns: Sequence[pl.Series], separator: str) -> str:
    """What to tell of a separator that `find_separator` found: in how many cells it is, and which other is in more."""
    filled = _filled(columns)
    found = {other: int(filled.str.contains(other, literal=True).sum()) for other in SEPARATORS}
    rival = max(SEPARATORS, key=lambda other: found[other])
    rivalry = "" if found[rival] <= found[separator] else f", '{rival}' in {found[rival]:,}"
    places = f"it is in {found[separator]:,} of {filled.len():,} cells{rivalry}"
    return f"labels are cut at '{separator}': {places} (--label-separator names another separator; '' for one label per cell)"


def _filled(columns: Sequence[pl.Series]) -> pl.Series:
    """All cells of text that are not blank."""
    cells = pl.concat([column.cast(pl.String) for column in columns if column.dtype == pl.String] or [pl.Series([], dtype=pl.String)])
    return cells.filter(cells.str.contains(r"\S"))


def parse_labels(column: pl.Series, separator: str | None, where: str) -> pl.Series:
    """Label lists of a column.

    Args:
        column: lists, strings or whole numbers; lists are passed on unchanged.
        separator: from `find_separator`, or the user's; None or "": each cell is one label.
        where: the file, for messages.

    Raises:
        DataError: the column is of another type, or a cell is no list where the others are; with its row, counted from 1.
    """
    if isinstance(column.dtype, pl.List):
        return column
    if column.dtype == pl.Null or column.dtype.is_integer():
        return _singles(column.cast(pl.String))
    if column.dtype.is_float() or column.dtype.is_decimal():
        raise DataError(
            f"the labels are of type {column.dtype}, numbers with a fraction: {column.drop_nulls().first()!s}",
            where=f"{where}, column {column.name}",
            expected='strings such as "004.60": as numbers, 004.60 and 4.6 are the same',
            todo="write these labels as strings where the file is made; if they are no labels, name another column with --labels-column",
        )
    if column.dtype != pl.String:
        raise DataError(
            f"the labels are of type {column.dtype}, neither lists nor strings: {str(column.drop_nulls().first())[:60]}",
            where=f"{where}, column {column.name}, row 1",
            expected='a list such as ["a", "b"], or a string such as a;b',
            todo="name the right column with --labels-column",
        )
    if separator == _AS_LISTS:
        lists = [_parse_list(cell, row, f"{where}, column {column.name}") for row, cell in enumerate(column, start=1)]
        return pl.Series(column.name, lists, dtype=_LISTS)
    if separator == "":
        return _singles(column)
    _refuse_stray_lists(column, where)
    if separator is None:
        return _singles(column)
    return column.str.split(separator)


def _singles(column: pl.Series) -> pl.Series:
    return column.reshape((-1, 1)).arr.to_list() if column.len() else column.cast(_LISTS)


def _parse_list(cell: str | None, row: int, where: str) -> list[str]:
    if cell is None or not cell.strip():
        return []
    parsed = read_list(cell)
    if parsed is None or not all(isinstance(label, (str, int)) for label in parsed):
        raise DataError(
            f"the labels are not a list of strings: {cell[:60]}",
            where=f"{where}, row {row}",
            expected='a list such as ["a", "b"], as in the other rows',
            todo="mend that row",
        )
    return [str(label) for label in parsed]


def _refuse_stray_lists(column: pl.Series, where: str) -> None:
    """A column where some cells are lists and some are not was mixed up; cutting a list at its commas would hide that."""
    bracketed = column.str.contains(r"(?s)^\s*\[.*\]\s*$").fill_null(False)
    strays = column.filter(bracketed & column.str.contains("[\"']"))
    if strays.len() and read_list(strays[0]) is not None:
        rows = enumerate(zip(column, bracketed, strict=True), start=1)
        row = next((row for row, (cell, listed) in rows if not listed and cell), None)
        if row is None:
            raise DataError(
                f"the labels are lists already: {strays[0][:60]}",
                where=f"{where}, column {column.name}",
                expected="strings such as a;b where a separator is given",
                todo="leave --label-separator out",
            )
        raise DataError(
            f"the labels are not a list: {column[row - 1][:60]}",
            where=f"{where}, column {column.name}, row {row}",
            expected="a list in every row, as in some others",
            todo="mend that row",
        )
