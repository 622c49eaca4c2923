"""Tables and labels as text for terminals and papers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from plant_cli.api.context import Cell, Column, Table

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)  # also what reverses the order of letters
_BREAKS = re.compile("[\t\n\u2028\u2029]")


def printable(text: str) -> str:
    """The text with every control character but tabs and line feeds written out, such as
    `\\x1b`.
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_cell(text: str) -> str:
    """The same for a cell of a table, which is one line: tabs and line feeds are written out
    too.
    """
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode(), printable(text))


NUMBER_KINDS = ("count", "points", "exact")
LATEX_ESCAPES = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$"}  # of amssymb
)


def show_count(number: int, noun: str) -> str:
    """A number of things: `1 document`, `1,234 documents`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def name_label(label: str, title: str | None) -> str:
    """A label by id and title; by its id alone where it has no other title."""
    return label if not title or title == label else f"{label} {title}"


def format_cell(value: Cell, column: Column) -> str:
    """A cell for a person: fractions as points with one decimal, nothing for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return printable_cell(value)
    if column.kind == "points":
        return f"{100 * value:z.1f}"  # z: never −0.0
    if column.kind == "count":
        return f"{value:,.0f}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def format_row(table: Table, row: Sequence[Cell]) -> list[str]:
    """The cells of a row for a person."""
    return [format_cell(value, column) for value, column in zip(row, table.columns, strict=True)]


def write_markdown(table: Table) -> str:
    """A table in Markdown, numbers to the right, notes below it."""

    def line(texts: Iterable[str]) -> str:
        return "| " + " | ".join(mask(text).replace("|", "\\|") for text in texts) + " |\n"

    def mask(text: str) -> str:
        return (
            printable(text).replace("\n", " ").replace("<", "&lt;")
        )  # most readers of Markdown take <…> for HTML

    head = f"**{mask(table.title)}**\n\n" if table.title else ""
    rule = (
        "|"
        + "|".join("--:" if column.kind in NUMBER_KINDS else "---" for column in table.columns)
        + "|\n"
    )
    body = "".join(line(format_row(table, row)) for row in table.rows)
    return (
        head
        + line(column.name for column in table.columns)
        + rule
        + body
        + "".join(f"\n{mask(note)}\n" for note in table.notes)
    )


def write_latex(table: Table) -> str:
    """A table in LaTeX with the rules of booktabs; title and notes stand as comments, ▲ and ▼
    need amssymb.
    """

    def line(texts: Iterable[str]) -> str:
        return " & ".join(text.translate(LATEX_ESCAPES) for text in texts) + r" \\" + "\n"

    shape = "".join("r" if column.kind in NUMBER_KINDS else "l" for column in table.columns)
    body = "".join(line(format_row(table, row)) for row in table.rows)
    head = f"% {printable_cell(table.title)}\n" if table.title else ""
    notes = "".join(f"% {printable_cell(note)}\n" for note in table.notes)
    names = line(column.name for column in table.columns)
    return (
        f"{head}\\begin{{tabular}}{{{shape}}}\n\\toprule\n{names}\\midrule\n"
        f"{body}\\bottomrule\n\\end{{tabular}}\n{notes}"
    )
