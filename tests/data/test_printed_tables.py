"""Cells and tables as text, without characters that steer a terminal."""

from __future__ import annotations

import pytest

from plant_cli.api import Column, Table
from plant_cli.data.printed_tables import (
    format_cell,
    format_row,
    printable,
    printable_cell,
    show_count,
    write_latex,
    write_markdown,
)

TABLE = Table(
    title="Two\nlines",
    columns=[Column(name="name"), Column(name="F1", kind="points")],
    rows=[["a|b_\x1b", 0.5], ["23.0▲", None]],
    notes=["first\nsecond"],
)


def test_cells() -> None:
    points, count, exact = (
        Column(name="x", kind="points"),
        Column(name="x", kind="count"),
        Column(name="x", kind="exact"),
    )
    assert [format_cell(v, points) for v in (0.2345, 1.0, -0.0002, None, float("nan"), "–")] == [
        "23.4",
        "100.0",
        "0.0",
        "",
        "",
        "–",
    ]
    assert format_cell(1234567, count) == "1,234,567"
    assert [format_cell(v, exact) for v in (0.000123456, 3)] == ["0.0001235", "3"]
    assert format_row(TABLE, ["x", 0.25]) == ["x", "25.0"]
    assert [show_count(n, "document") for n in (0, 1, 1234)] == [
        "0 documents",
        "1 document",
        "1,234 documents",
    ]
    assert printable_cell("a\n\tb\x1b") == "a\\n\\tb\\x1b"


def test_markdown_keeps_a_row_on_a_line() -> None:
    assert "| a\\|b_\\x1b | 50.0 |\n| 23.0▲ |  |\n" in write_markdown(TABLE)


def test_latex_escapes_and_comments_stay_comments() -> None:
    lines = write_latex(TABLE).splitlines()
    assert (lines[0], lines[-1]) == ("% Two\\nlines", "% first\\nsecond")
    assert r"a|b\_\textbackslash{}x1b & 50.0 \\" in lines
    assert r"23.0$\blacktriangle$ &  \\" in lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Z\x1b[31mred", "Z\\x1b[31mred"),
        ("bell\x07", "bell\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("right\u202eleft", "right\\u202eleft"),
        ("over\rwritten", "over\\rwritten"),
        ("Übergewicht – 体重\t1\n2", "Übergewicht – 体重\t1\n2"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown
