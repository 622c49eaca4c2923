"""Cells with labels: how they are written in a table, and how they are split into labels."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Sequence

import polars as pl

from plant_cli.api.errors import DataError
from plant_cli.data.documents import fractional_labels

SEPARATORS = (";", "|", ",")
_LISTS = pl.List(pl.String)
_AS_LISTS = "lists"
_BRACKETS = r"(?s)^\s*\[.*\]\s*$"


def find_separator(columns: Sequence[pl.Series]) -> str | None:
    """How the label cells of all splits are written: "lists" (`["a", "b"]`) or a separator; None: one label in each cell.

    Separators are tried in their order, since headings hold commas (`Mann, Thomas`). A blank separates no labels (`atrial fibrillation`).
    """
    filled = _filled(columns)
    if filled.len() and filled.str.contains(_BRACKETS).all():
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
        raise _no_list(cell, where)
    return [str(label) for label in parsed]


def _refuse_stray_lists(column: pl.Series, where: str) -> None:
    """Refuse a column in which only some cells are lists: cutting a list at its commas would hide that two columns were mixed up."""
    bracketed = column.str.contains(_BRACKETS).fill_null(False)
    strays = column.filter(bracketed & column.str.contains("[\"']"))
    if not strays.len() or read_list(strays[0]) is None:
        return
    others = (~bracketed & (column != "").fill_null(False)).arg_true()
    if not others.len():
        what, expected = f"the labels are lists already: {strays[0][:60]}", "strings such as a;b, since a separator was named"
        raise DataError(what, where=f"{where}, column {column.name}", expected=expected, todo="leave --label-separator out")
    raise _no_list(column[others[0]], f"{where}, column {column.name}, row {others[0] + 1}")


def _no_list(cell: str, where: str) -> DataError:
    what, expected = f"the labels are not a list of strings: {cell[:60]}", 'a list such as ["a", "b"] in every row, as in some others'
    return DataError(what, where=where, expected=expected, todo="mend that row")


_WITHOUT_COMMAS = re.compile(r"""['"]\s+['"]""")  # strings that follow one another, perhaps


def read_list(cell: str) -> list[object] | None:
    """A list in JSON, or as Python or numpy prints it (which is what a CSV file made from lists in pandas holds); None if it is none."""
    for read in (json.loads, _read_array if _WITHOUT_COMMAS.search(cell) else ast.literal_eval):
        try:
            parsed = read(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two: brackets within brackets without end
            continue
        if isinstance(parsed, list):
            return parsed
    return None


def _read_array(cell: str) -> object:
    """A list of strings, where those without a comma between them are two, as numpy prints them: Python would join them."""
    parts: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(cell).readline):
            if token.type == tokenize.STRING and parts and parts[-1] not in ("[", ","):
                parts.append(",")
            if token.type in (tokenize.STRING, tokenize.OP, tokenize.NUMBER, tokenize.NAME):
                parts.append(token.string)
    except tokenize.TokenError as error:
        raise ValueError(str(error)) from error
    return ast.literal_eval("".join(parts))


def split_names(cell: object) -> list[str]:
    """The labels or names in a cell of a vocabulary, each once: a list, a list in a string, or names between `|`, `;` or line ends."""
    if cell is None:
        return []
    if isinstance(cell, list):
        parts: list[object] = cell
    elif str(cell).lstrip().startswith("["):
        listed = read_list(str(cell))
        parts = [cell] if listed is None else listed
    else:
        parts = list(re.split(r"[|;\n]", str(cell)))
    names = (str(part).strip() for part in parts if part is not None)
    return list(dict.fromkeys(name for name in names if name))
