"""Review sheets: what is written, and what is read again after a spreadsheet program changed
the file.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from plant_review.reviewed_rows import read_sheet
from plant_review.shortened_ids import find_again, may_be

from plant_cli.api import DataError, SilentReporter, UsageError
from plant_cli.data import office_files
from plant_cli.data.decision_words import read_decision
from plant_cli.scoring.review_sheets import REVIEW_COLUMNS, sheet_format, write_sheet
from plant_cli.scoring.suggested_documents import SuggestedDocument

DOCUMENTS = [
    SuggestedDocument(
        doc_id="007",
        labels=["=a", "b"],
        titles=["Äpfel", None],
        scores=[0.987, 0.104],
        thresholds=[0.5, None],
        bands=["assign", "review"],
        evidence=["apple, tree", "-"],
        heading="@Home",
        text="@Home\nwith apples",
    ),
    SuggestedDocument(doc_id="8"),
]
ROWS = [
    ("007", "@Home", "@Home\nwith apples", "=a", "Äpfel", 0.99, "assign", "", "apple, tree"),
    ("007", "@Home", "@Home\nwith apples", "b", "", 0.1, "review", "", "-"),
]


def guarded(row: tuple[Any, ...]) -> list[Any]:
    return [
        f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "@", "-") else cell
        for cell in row
    ]


def test_a_workbook_is_ready_for_decisions(tmp_path: Path) -> None:
    write_sheet(tmp_path / "r.xlsx", DOCUMENTS)
    sheet = openpyxl.load_workbook(tmp_path / "r.xlsx").active
    assert [[cell or "" for cell in row] for row in sheet.iter_rows(values_only=True)] == [
        list(REVIEW_COLUMNS),
        *map(guarded, ROWS),
    ]
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", "A1:I3")
    [choices] = sheet.data_validations.dataValidation
    assert (str(choices.sqref), choices.formula1) == ("H2:H3", '"accept,reject"')
    assert sheet["F2"].number_format == "0.00"
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {
        "s",
        "inlineStr",
        "n",
    }  # no formula


def test_more_rows_than_a_workbook_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most, refused in (
        (2, nullcontext()),
        (1, pytest.raises(DataError, match="more rows than a sheet has")),
    ):
        monkeypatch.setattr(office_files, "MOST_ROWS", most)
        with refused:
            write_sheet(tmp_path / f"{most}.xlsx", DOCUMENTS)
    assert [path.name for path in tmp_path.iterdir()] == ["2.xlsx"]


@pytest.mark.parametrize(("name", "separator"), [("r.csv", ","), ("r.tsv", "\t")])
def test_a_text_sheet_begins_with_a_mark_of_utf8_and_has_no_formula(
    tmp_path: Path, name: str, separator: str
) -> None:
    write_sheet(tmp_path / name, DOCUMENTS)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(b"\xef\xbb\xbfdoc_id" + separator.encode())
    frame = pl.read_csv(tmp_path / name, separator=separator, infer_schema=False).fill_null("")
    assert frame.rows() == [tuple(map(str, guarded(row))) for row in ROWS]


def test_json_lines_hold_every_text_as_it_is(tmp_path: Path) -> None:
    write_sheet(tmp_path / "r.jsonl", DOCUMENTS)
    assert pl.read_ndjson(tmp_path / "r.jsonl").rows() == ROWS


def decide(path: Path, form: str) -> Path:
    """The sheet with a decision, as a program saves it."""
    write_sheet(path / "r.csv", DOCUMENTS)
    frame = pl.read_csv(path / "r.csv", infer_schema=False).with_columns(
        decision=pl.Series([" Accept", "no"])
    )
    if form == "xlsx":
        book = openpyxl.Workbook()
        for row in ((*frame.columns, None, None), *frame.rows(), (None,) * 9):
            book.active.append(row)
        book.save(path / "x.xlsx")
        return path / "x.xlsx"
    text = frame.write_csv(separator=";" if "semicolon" in form else "\t" if "tab" in form else ",")
    (path / "x.csv").write_bytes(
        text.encode("cp1252" if "ansi" in form else "utf-16" if "utf16" in form else "utf-8")
    )
    return path / "x.csv"


@pytest.mark.parametrize("form", ["xlsx", "comma", "semicolon ansi", "tab utf16"])
def test_a_sheet_is_read_however_a_program_saved_it(tmp_path: Path, form: str) -> None:
    rows = read_sheet(decide(tmp_path, form), SilentReporter())
    names = ("doc_id", "label", "title", "band", "decision", "whole")
    assert [tuple(asdict(row)[name] for name in names) for row in rows] == [
        ("007", "=a", "Äpfel", "assign", "accept", False),
        ("007", "b", "", "review", "reject", False),
    ]
    assert {row.who for row in rows} == {"x"}
    assert rows[0].place.endswith(", row 2")
    assert rows[0].time.endswith("+00:00")


def test_feedback_of_the_server_is_read(tmp_path: Path) -> None:
    said = {
        "doc_id": "1",
        "text": "'quoted",
        "label": "a",
        "title": None,
        "score": None,
        "decision": "accept",
        "who": "Ann",
        "time": "2026-01-02",
    }
    pl.DataFrame([said, {**said, "decision": "hmm", "who": ""}]).write_ndjson(tmp_path / "f.jsonl")
    listener = SilentReporter()
    first, second = read_sheet(tmp_path / "f.jsonl", listener)
    assert (first.who, first.time, first.text, first.whole, first.decision) == (
        "Ann",
        "2026-01-02",
        "'quoted",
        True,
        "accept",
    )
    assert (second.who, second.decision) == ("f", "")
    assert listener.warnings[0].endswith(
        "words that are neither accept nor reject count as undecided: 'hmm' (row 2)"
    )


def test_what_is_no_sheet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sheet goes by this name"):
        sheet_format(tmp_path / "r.csv.gz")
    (tmp_path / "r.csv").write_text("doc_id,label\na,b\n")
    with pytest.raises(DataError, match="has no column 'decision'"):
        read_sheet(tmp_path / "r.csv", SilentReporter())
    (tmp_path / "r.xlsx").write_text("no archive")
    with pytest.raises(DataError, match="the workbook cannot be read"):
        read_sheet(tmp_path / "r.xlsx", SilentReporter())


HEADER, ROW = ["doc_id", "text", "label", "title", "decision"], ["007", "a text", "x", "X", "OK"]


@pytest.mark.parametrize("notes", [[], [["Please read this first"], ["colour", "meaning"]]])
@pytest.mark.parametrize("above", [[], [["Sheet of the review, May"], []]])
def test_notes_and_titles_in_front_of_a_table_are_passed_over(
    tmp_path: Path, notes: list[list[str]], above: list[list[str]]
) -> None:
    book = openpyxl.Workbook()
    if notes:
        first = book.active
        for row in notes:
            first.append(row)
        book.create_sheet("Review")
    for row in [*above, HEADER, ROW]:
        book.worksheets[-1].append(row)
    book.save(tmp_path / "r.xlsx")
    reporter = SilentReporter()
    (found,) = read_sheet(tmp_path / "r.xlsx", reporter)
    assert (found.doc_id, found.label, found.decision) == ("007", "x", "accept")
    assert found.place.endswith(f"row {len(above) + 2}")
    assert len(reporter.notes) == bool(notes or above)


def test_a_title_above_the_header_of_a_csv_is_passed_over(tmp_path: Path) -> None:
    lines = ["Sheet of the review;;;;", ";".join(HEADER), ";".join(ROW)]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    reporter = SilentReporter()
    (found,) = read_sheet(tmp_path / "r.csv", reporter)
    assert (found.doc_id, found.decision, found.place[-5:]) == ("007", "accept", "row 3")
    assert reporter.notes == [f"{tmp_path / 'r.csv'}: the table begins in row 2"]


def test_a_workbook_without_the_columns_names_its_sheets(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.create_sheet("Other")
    book.save(tmp_path / "r.xlsx")
    with pytest.raises(DataError) as caught:
        read_sheet(tmp_path / "r.xlsx", SilentReporter())
    assert caught.value.where.endswith("r.xlsx, sheets Sheet, Other")


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        *((word, "accept") for word in ("OK", "Accepted", " x ", "1.0", "✓", "Ja", "Kyllä", "oui")),
        *((word, "accept") for word in ("Sí", "WAHR", "sì", "sim")),
        *((word, "reject") for word in ("Nein", "ei", "FAUX", "não", "0", "rejected", "✗")),
        *((word, "ignore") for word in ("skip", "?")),
        ("perhaps so", None),
    ],
)
def test_a_decision_is_read_in_the_languages_of_the_docs(word: str, decision: str | None) -> None:
    assert read_decision(word) == decision


KNOWN = [("007", "a text on moods"), ("7", "a text on hearts"), ("1E5", "on asthma"), ("9-1-2", "")]


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        (("7", "a text  on moods"), "007"),  # though there is a document 7
        (("1,00E+05", "on asthma"), "1E5"),
        (("100000", ""), "1E5"),
        (("8", "a text of nobody"), None),
        (("7", ""), None),  # 007 or 7
    ],
)
def test_documents_whose_ids_a_spreadsheet_changed_are_found_again(
    shown: tuple[str, str], found: str | None
) -> None:
    assert find_again([shown], KNOWN).get(shown) == found


@pytest.mark.parametrize(
    ("shown", "own", "may"),
    [
        ("32", "0032", True),
        ("1.5", "1.50", True),
        ("1,23457E+11", "123456789012", True),
        ("02.01.2020", "2020-01-02", True),
        ("2020-01-02 00:00:00", "2020-01-02", True),
        ("33", "0032", False),
        ("J45", "J450", False),
        ("02.01.2020", "2020-01-03", False),
    ],
)
def test_what_a_spreadsheet_may_make_of_an_id(shown: str, own: str, may: bool) -> None:
    assert may_be(shown, own) is may
