"""Writes a result to stdout: for a person as tables, for a program as JSON, CSV or TSV, for a paper as Markdown or LaTeX."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from plant_cli.api import Column, Result, Table
from plant_cli.api.context import Cell
from plant_cli.report.text import NUMBERS, format_row, printable, printable_cell, write_latex, write_markdown

if TYPE_CHECKING:
    from rich.table import Table as RichTable


GAP = 2  # blanks between columns
LINE = 28  # characters of a text that are kept on one line where a terminal is narrow


def show(result: Result, form: str, *, quiet: bool = False, stream: TextIO | None = None) -> None:
    """Write a result to stdout in one of the formats of `--format`; the next step goes to stderr."""
    out = stream or sys.stdout
    if form == "table" and out.isatty():
        _show_on_terminal(result, out)
    else:
        text = FORMS[form](result)
        out.write(printable(text) if out.isatty() else text)  # into a file goes what the data hold
        out.flush()
    if form == "table" and result.next_step and not quiet:
        print(printable(f"next: {result.next_step}"), file=sys.stderr)


def _show_on_terminal(result: Result, out: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=out)  # rich heeds NO_COLOR
    for table in result.tables:
        names, rows = [printable_cell(column.name) for column in table.columns], [format_row(table, row) for row in table.rows]
        needs = [_need(column, [name, *cells]) for column, name, *cells in zip(table.columns, names, *rows, strict=True)]
        for number, kept in enumerate(_fit_columns(needs, console.width)):
            if number:
                console.print()
            console.print(_draw(table, names, rows, kept, needs, console.width, titled=not number))
        for note in table.notes:
            console.print(Text(printable(note), style="dim"))
        console.print()


@dataclass(frozen=True)
class Need:
    """How many characters a column takes: at least, with its words below one another, and on one line."""

    least: int
    whole: int


def _need(column: Column, cells: Sequence[str]) -> Need:
    """Only names, and long texts, are broken between words: a number stays whole."""
    whole = max(map(_width, cells))
    words = max((_width(word) for word in cells[0].split()), default=0)
    body = max(map(_width, cells[1:]), default=0)
    return Need(max(words, body if column.kind in NUMBERS else min(body, LINE)), whole)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _fit_columns(needs: Sequence[Need], width: int) -> Iterator[list[int]]:
    """Places of columns that fit beside one another; those that do not stand in a part below, behind the first column once more."""
    if not needs:
        return
    kept, taken = [0], needs[0].least
    for place, need in enumerate(needs[1:], start=1):
        if len(kept) > 1 and taken + GAP + need.least > width:
            yield kept
            kept, taken = [0], needs[0].least
        kept.append(place)
        taken += GAP + need.least
    yield kept


def _draw(
    table: Table,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    kept: Sequence[int],
    needs: Sequence[Need],
    width: int,
    *,
    titled: bool,
) -> RichTable:
    """Some columns of a table; those of numbers are as narrow as they can be where not all of it fits on a line."""
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(
        title=Text(printable(table.title)) if table.title and titled else None,
        title_justify="left",
        title_style="bold",
        box=None,
        header_style="bold",
        pad_edge=False,
    )
    narrow = sum(needs[place].whole for place in kept) + GAP * (len(kept) - 1) > width
    for place in kept:
        numbers = table.columns[place].kind in NUMBERS
        fixed = needs[place].least if narrow and numbers else None
        justify: Any = "right" if numbers else "left"
        drawn.add_column(Text(names[place]), justify=justify, width=fixed, overflow="fold")  # nothing is cut off on a narrow terminal
    for row in rows:
        drawn.add_row(*(Text(row[place]) for place in kept))
    return drawn


def _plain(result: Result) -> str:
    return "\n".join(_plain_table(table) for table in result.tables)


def _plain_table(table: Table) -> str:
    rows = [[printable_cell(column.name) for column in table.columns], *(format_row(table, row) for row in table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    right = [column.kind in NUMBERS for column in table.columns]
    lines = ["  ".join(t.rjust(w) if r else t.ljust(w) for t, w, r in zip(row, widths, right, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in [*_lines(table.title), *lines, *map(printable, table.notes)])


def _lines(title: str) -> list[str]:
    return [printable(title)] if title else []


def _markdown(result: Result) -> str:
    return "\n".join(write_markdown(table) for table in result.tables)


def _latex(result: Result) -> str:
    return "\n".join(write_latex(table) for table in result.tables)


def _separated(delimiter: str) -> Callable[[Result], str]:
    def write(result: Result) -> str:
        parts = []
        for table in result.tables:
            buffer = io.StringIO()
            writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
            writer.writerow([column.name for column in table.columns])
            writer.writerows([["" if value is None else value for value in row] for row in table.rows])
            parts.append(buffer.getvalue())
        return "\n".join(parts)

    return write


def _json(result: Result) -> str:
    data = result.data if result.data is not None else {"tables": [{"title": t.title, "rows": _records(t)} for t in result.tables]}
    return json.dumps(_finite(data), ensure_ascii=False, indent=2) + "\n"


def _json_lines(result: Result) -> str:
    many = len(result.tables) > 1
    records = [{"table": t.title, **record} if many else record for t in result.tables for record in _records(t)]
    return "".join(json.dumps(_finite(record), ensure_ascii=False) + "\n" for record in records)


def _records(table: Table) -> list[dict[str, Cell]]:
    return [dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows]


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


FORMS: dict[str, Callable[[Result], str]] = {
    "table": _plain,
    "md": _markdown,
    "latex": _latex,
    "json": _json,
    "jsonl": _json_lines,
    "csv": _separated(","),
    "tsv": _separated("\t"),
}
