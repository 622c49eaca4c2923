"""A result in every form of `--format`."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from plant_cli.api import Column, Result, Table
from plant_cli.cli.output import OUTPUT_FORMS, show_result
from tests.cli.conftest import Terminal

TABLE = Table(
    title="Main",
    columns=[
        Column(name="metric"),
        Column(name="P_@5 %", kind="points"),
        Column(name="N", kind="count"),
        Column(name="p", kind="exact"),
    ],
    rows=[("a|b", 0.23456, 12345, 0.000123), ("c,d", float("nan"), None, 1)],
    notes=["averages over documents"],
)
RESULT = Result(tables=[TABLE])


def test_plain_columns_line_up() -> None:
    assert OUTPUT_FORMS["table"](RESULT).splitlines() == [
        "Main",
        "metric  P_@5 %       N         p",
        "a|b       23.5  12,345  0.000123",
        "c,d                            1",
        "averages over documents",
    ]


@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_separated_holds_raw_fractions(form: str, delimiter: str) -> None:
    rows = list(csv.reader(io.StringIO(OUTPUT_FORMS[form](RESULT)), delimiter=delimiter))
    assert rows == [
        ["metric", "P_@5 %", "N", "p"],
        ["a|b", "0.23456", "12345", "0.000123"],
        ["c,d", "nan", "", "1"],
    ]


def test_json_is_strict_and_prefers_data() -> None:
    rows = json.loads(OUTPUT_FORMS["json"](RESULT), parse_constant=pytest.fail)["tables"][0]["rows"]
    assert rows == [
        {"metric": "a|b", "P_@5 %": 0.23456, "N": 12345, "p": 0.000123},
        {"metric": "c,d", "P_@5 %": None, "N": None, "p": 1},
    ]
    assert json.loads(OUTPUT_FORMS["json"](Result(tables=[TABLE], data={"a": float("inf")}))) == {
        "a": None
    }


def test_json_lines_name_the_table_when_there_are_several() -> None:
    one = [json.loads(line) for line in OUTPUT_FORMS["jsonl"](RESULT).splitlines()]
    assert [record["metric"] for record in one] == ["a|b", "c,d"]
    assert "table" not in one[0]
    assert (
        json.loads(OUTPUT_FORMS["jsonl"](Result(tables=[TABLE, TABLE])).splitlines()[0])["table"]
        == "Main"
    )


def test_markdown_escapes_and_aligns() -> None:
    text = OUTPUT_FORMS["md"](RESULT)
    assert "| a\\|b | 23.5 | 12,345 | 0.000123 |" in text
    assert "|---|--:|--:|--:|" in text


def test_latex_has_booktabs_and_escapes() -> None:
    text = OUTPUT_FORMS["latex"](RESULT)
    assert r"\begin{tabular}{lrrr}" in text
    assert r"metric & P\_@5 \% & N & p \\" in text
    assert all(rule in text for rule in (r"\toprule", r"\midrule", r"\bottomrule"))


def test_a_terminal_gets_the_same_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    terminal = Terminal()
    show_result(Result(tables=[TABLE], next_step="plant eval"), "table", stream=terminal)
    text = terminal.getvalue()
    assert all(
        part in text for part in ("Main", "a|b", "23.5", "12,345", "averages over documents")
    )
    assert "\x1b[3" not in text  # no colour
    assert capsys.readouterr().err == "next: plant eval\n"


def test_quiet_and_machine_forms_say_nothing_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    result = Result(tables=[TABLE], next_step="plant eval")
    show_result(result, "table", quiet=True)
    show_result(result, "json")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("form", OUTPUT_FORMS)
def test_what_steers_a_terminal_is_written_out_on_one_and_in_a_file(form: str) -> None:
    table = Table(
        title="\x1b[2J",
        columns=[Column(name="label\x1b")],
        rows=[("Z\x1b[31mred",)],
        notes=["\x1b[1m"],
    )
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        show_result(Result(tables=[table]), form, quiet=True, stream=stream)
    assert "\x1b[31mred" not in terminal.getvalue()
    assert "\x1b[2J" not in terminal.getvalue()
    assert "\x1b[31mred" not in file.getvalue()


WIDE = Table(
    title="",
    columns=[
        Column(name="metric"),
        *(Column(name=f"figure number {n}", kind="points") for n in range(8)),
        Column(name="in words"),
    ],
    rows=[
        (f"P@{k}", *(0.1 * k + 0.01 * n for n in range(8)), f"{k} of (+1.0, [0.5, 1.5])")
        for k in (1, 5)
    ],
)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_table_that_is_too_wide_stands_in_parts_with_whole_numbers(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    lines = _draw(monkeypatch, WIDE, width)
    assert max(map(len, lines)) <= width
    for row in WIDE.rows:
        found = " ".join(line for line in lines if line.startswith(str(row[0])))
        words = [word for word in found.split() if word != row[0]]
        assert words == [
            *(f"{100 * value:.1f}" for value in row[1:-1] if isinstance(value, float)),
            *str(row[-1]).split(),
        ]
    parts = sum(line.startswith("P@1") for line in lines)
    assert parts == {40: 3, 60: 2, 80: 2, 100: 1, 200: 1}[width]


def test_long_texts_are_broken_between_words_and_make_no_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "words of a title that is longer than a line of a small terminal can be"
    table = Table(
        title="",
        columns=[Column(name="label"), Column(name="title"), Column(name="score", kind="exact")],
        rows=[("E11", text, 0.123)],
    )
    lines = _draw(monkeypatch, table, 50)
    assert [line.split()[0] for line in lines[:2]] == ["label", "E11"]
    assert "0.123" in lines[1]
    assert " ".join(" ".join(lines[1:]).replace("E11", "").replace("0.123", "").split()) == text


def _draw(monkeypatch: pytest.MonkeyPatch, table: Table, width: int) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    show_result(Result(tables=[table]), "table", stream=terminal)
    return [
        re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip()
        for line in terminal.getvalue().splitlines()
        if line.strip()
    ]
