"""Results on stdout: tables for people, JSON, CSV or TSV for programs, Markdown or LaTeX for
papers.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from plant_cli.api import Column, Passage, Result, Table
from plant_cli.api.context import Cell
from plant_cli.data.printed_tables import (
    NUMBER_KINDS,
    format_row,
    printable,
    printable_cell,
    write_latex,
    write_markdown,
)
from plant_cli.data.quotes import guard_cell

GAP = 2  # blanks between columns
BRACKETS = {
    "": ("[", "]"),
    "scorers": ("[", "]"),
    "network": ("{", "}"),
    "both": ("[{", "}]"),
}  # around marked words, by who marks them
MARK_COLOURS = {"": "green", "scorers": "green", "network": "cyan", "both": "magenta"}
LINE = 28  # characters of a text that stay on one line of a narrow terminal


def show_result(
    result: Result, form: str, *, quiet: bool = False, stream: TextIO | None = None
) -> None:
    """Write a result to stdout in one of the formats of `--format`; the next step goes to
    stderr.
    """
    out = stream or sys.stdout
    if form == "table" and out.isatty():
        console = Console(file=out)  # rich heeds NO_COLOR
        for table in result.tables:
            _show_on_terminal(table, console)
    else:
        text = OUTPUT_FORMS[form](result)
        out.write(printable(text) if out.isatty() else text)
        out.flush()
    if form == "table" and result.next_step and not quiet:
        print(printable(f"next: {result.next_step}"), file=sys.stderr)


def _show_on_terminal(table: Table, console: Console) -> None:
    names, rows = (
        [printable_cell(column.name) for column in table.columns],
        [format_row(table, row) for row in table.rows],
    )
    cells = list(zip(names, *rows, strict=True))
    full = [max(map(cell_len, column)) for column in cells]  # width of each column on one line
    least = [
        _least_width(column, texts) for column, texts in zip(table.columns, cells, strict=True)
    ]
    title = Text(printable(table.title)) if table.title else None
    if table.passages:
        console.print(title, style="bold")
        console.print(_colour(table.passages))
        console.print()
    parts = [range(len(least))] if table.whole else _fit_columns(least, console.width)
    for number, kept in enumerate(parts):
        if number:
            console.print()
        narrow = sum(full[column] for column in kept) + GAP * (len(kept) - 1) > console.width
        drawn = _draw(table.columns, rows, kept, least if narrow else None)
        drawn.title = None if number or table.passages else title
        console.print(drawn)
    for note in table.notes:
        console.print(Text(printable(note), style="dim"))
    console.print()


def _draw(
    columns: Sequence[Column],
    rows: Iterable[Sequence[str]],
    kept: Sequence[int],
    widths: Sequence[int | None] | None,
) -> RichTable:
    """A table of some columns without frames: numbers to the right, in columns of these widths,
    and text, which is folded, to the left.
    """
    drawn = RichTable(
        title_justify="left", title_style="bold", box=None, header_style="bold", pad_edge=False
    )
    for place in kept:
        is_number = columns[place].kind in NUMBER_KINDS
        drawn.add_column(
            Text(printable_cell(columns[place].name)),
            justify="right" if is_number else "left",
            width=widths[place] if widths and is_number else None,
            overflow="fold",
        )
    for row in rows:
        drawn.add_row(*(Text(row[place]) for place in kept))
    return drawn


def _bracket(passage: Passage) -> str:
    """A word as it is marked without colour."""
    if not passage.strength:
        return printable_cell(passage.text)
    before, after = BRACKETS[passage.by]
    return f"{before}{'−' if passage.strength < 0 else ''}{printable_cell(passage.text)}{after}"


def _colour(passages: Sequence[Passage]) -> Text:
    """A text with its marks in brackets and in colours, stronger ones bold."""
    shown = Text()
    for passage in passages:
        colour = "red" if passage.strength < 0 else MARK_COLOURS[passage.by]
        bold = "bold " if abs(passage.strength) > 1 else ""
        shown.append(_bracket(passage), f"{bold}{colour}" if passage.strength else "")
    return shown


def _least_width(column: Column, cells: Sequence[str]) -> int:
    """The least width of a column: its name and long texts may be broken between words, numbers
    may not.
    """
    words = max(map(cell_len, cells[0].split()), default=0)
    body = max(map(cell_len, cells[1:]), default=0)
    return max(words, body if column.kind in NUMBER_KINDS else min(body, LINE))


def _fit_columns(least: Sequence[int], width: int) -> Iterator[Sequence[int]]:
    """The columns of each part that fits the width; every part begins with the first column."""
    if not least:
        return
    kept, taken = [0], least[0]
    for column in range(1, len(least)):
        if len(kept) > 1 and taken + GAP + least[column] > width:
            yield kept
            kept, taken = [0], least[0]
        kept.append(column)
        taken += GAP + least[column]
    yield kept


def _plain_table(table: Table) -> str:
    rows = [
        [printable_cell(column.name) for column in table.columns],
        *(format_row(table, row) for row in table.rows),
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    right = [column.kind in NUMBER_KINDS for column in table.columns]
    lines = [
        "  ".join(
            t.rjust(w) if r else t.ljust(w) for t, w, r in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    text = "".join(map(_bracket, table.passages))
    return "".join(
        f"{line}\n"
        for line in [
            *filter(None, [printable(table.title), text]),
            *lines,
            *map(printable, table.notes),
        ]
    )


def _separated(delimiter: str) -> Callable[[Result], str]:
    def write(result: Result) -> str:
        parts = []
        for table in result.tables:
            buffer = io.StringIO()
            writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
            writer.writerow([column.name for column in table.columns])
            writer.writerows(
                [
                    "" if value is None else guard_cell(value) if isinstance(value, str) else value
                    for value in row
                ]
                for row in table.rows
            )
            parts.append(buffer.getvalue())
        return "\n".join(parts)

    return write


def _json(result: Result) -> str:
    data = (
        result.data
        if result.data is not None
        else {"tables": [{"title": t.title, "rows": _records(t)} for t in result.tables]}
    )
    return json.dumps(_finite(data), ensure_ascii=False, indent=2, default=str) + "\n"


def _json_lines(result: Result) -> str:
    records = result.data
    if not isinstance(records, list):
        many = len(result.tables) > 1
        records = [
            {"table": t.title, **record} if many else record
            for t in result.tables
            for record in _records(t)
        ]
    return "".join(
        json.dumps(_finite(record), ensure_ascii=False, default=str) + "\n" for record in records
    )


def _records(table: Table) -> list[dict[str, Cell]]:
    return [
        dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows
    ]


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


OUTPUT_FORMS: dict[str, Callable[[Result], str]] = {
    "table": lambda result: "\n".join(map(_plain_table, result.tables)),
    "md": lambda result: "\n".join(map(write_markdown, result.tables)),
    "latex": lambda result: "\n".join(map(write_latex, result.tables)),
    "json": _json,
    "jsonl": _json_lines,
    "csv": _separated(","),
    "tsv": _separated("\t"),
}
