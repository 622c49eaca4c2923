"""Cells for files that people open: no formula for a spreadsheet, no command for a terminal."""

from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api import Column, Result, Table
from plant_cli.cli.output import OUTPUT_FORMS
from plant_cli.data.quotes import guard_cell, unguard_cells
from plant_cli.data.tables import guard_cells


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-dextro", "'-dextro"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("-0.5", "-0.5"),
        ("+1", "+1"),
        ("-1e-05", "-1e-05"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_what_a_spreadsheet_would_run_is_guarded(text: str, cell: str) -> None:
    assert guard_cell(text) == cell
    frame = pl.DataFrame({"label": [text, None], "score": [-1.0, 1.0]})
    assert guard_cells(frame).rows() == [(cell, -1.0), (None, 1.0)]
    assert unguard_cells([text]) == ({} if text == cell else {cell: text})


def test_tables_for_people_are_guarded_and_those_for_programs_are_not() -> None:
    table = Table(
        title="<b>",
        columns=[Column(name="label"), Column(name="x", kind="count")],
        rows=[("=1", -1), ("<i>\x1b", 2)],
        notes=["<u>"],
    )
    result = Result(tables=[table], data={"label": "=1"})
    assert OUTPUT_FORMS["csv"](result) == "label,x\n'=1,-1\n<i>\\x1b,2\n"
    markdown = OUTPUT_FORMS["md"](result)
    assert "<" not in markdown
    assert "\x1b" not in markdown
    assert '"=1"' in OUTPUT_FORMS["json"](result)
