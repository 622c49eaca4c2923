"""Separators, line ends, values and faults of text tables, as spreadsheets and Python write them; in one block or in several."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from plant_cli.api.errors import DataError
from plant_cli.data import tables, text_tables
from plant_cli.data.lines import BadRows
from plant_cli.data.tables import scan_table, write_table
from plant_cli.data.text_tables import shorten, show_names


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.csv"


def read(
    path: Path, content: str | bytes, bad: BadRows | None = None, encoding: str | None = None, size: int | None = None
) -> pl.DataFrame:
    """The table, in blocks of some characters (None: in one)."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.MonkeyPatch.context() as patch:
        if size is not None:
            patch.setattr(tables, "LARGE", size)
            patch.setattr(text_tables, "BLOCK", size)
        return scan_table(path, bad=bad, encoding=encoding).collect()


def refuse(path: Path, content: str | bytes) -> DataError:
    with pytest.raises(DataError) as caught:
        read(path, content)
    return caught.value


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ('doc_id;text;labels;"Bemerkung, frei"\n1;a, b;c;d\n', ["doc_id", "text", "labels", "Bemerkung, frei"]),
        ('"a, b, c, d";text;labels\n1;2;3\n', ["a, b, c, d", "text", "labels"]),
        ('text;"two, ""three, four"", five"\n1;2\n', ["text", 'two, "three, four", five']),
        ("text|codes, all|x\na|b|c\n", ["text", "codes, all", "x"]),
        ("text;labels (a,b,c)\nfoo;bar\n", ["text", "labels (a,b,c)"]),
        ("text;labels (a,b,c)\n\nfoo;bar\n", ["text", "labels (a,b,c)"]),
        ('text;labels (a,b)\n"one; two";bar\n', ["text", "labels (a,b)"]),
        ("text\tlabels, all\na, b\tx\n", ["text", "labels, all"]),
        ("text,labels;codes\n", ["text", "labels;codes"]),
        ('text;"labels\nor codes";split\na;b;c\n', ["text", "labels\nor codes", "split"]),
        (",text,\n0,a,b\n", ["", "text", "_"]),
    ],
)
def test_the_separator_is_the_one_that_header_and_first_row_agree_on(path: Path, content: str, columns: list[str]) -> None:
    assert read(path, content).columns == columns


def test_carriage_returns(path: Path) -> None:
    """One within a row is left alone; lines that end in one alone are refused."""
    assert read(path, 'text,labels\n"a\rb",c\nd\re,f\r\n').rows() == [("a\rb", "c"), ("d\re", "f")]
    bad = BadRows()
    assert read(path, "id,text,labels\n0,a\rb,z\n1,c\rd,e,f\n2,g,z\n", bad).rows() == [("0", "a\rb", "z"), ("2", "g", "z")]
    assert [(row.line, row.content) for row in bad.rows] == [(3, "1,c\rd,e,f")]


def test_names_in_messages_are_cut() -> None:
    assert shorten("labels") == "labels"
    assert shorten("x" * 41) == "x" * 39 + "…"
    assert show_names(["a", "b" * 50]) == "a, " + "b" * 39 + "…"
    assert show_names("abcdefghijklmnop") == "a, b, c, d, e, f, g, h, i, j, k, l"


def test_half_a_character_in_text_is_no_half_character(path: Path) -> None:
    assert read(path, r'{"text": "\ud83d\ude00 and \\ud83d"}').item() == "\U0001f600 and \\ud83d"


def test_blank_lines_are_no_rows_but_count_as_lines(path: Path) -> None:
    assert read(path, "\n \nid,text\n1,a\n\n2,b\n\n").rows() == [("1", "a"), ("2", "b")]
    assert read(path, "text\na\n\nb\n").rows() == [("a",), (None,), ("b",)]


@pytest.mark.parametrize("quotes", [1, 2, 7])
def test_a_quote_amid_a_field_is_part_of_it(path: Path, quotes: int) -> None:
    rows = [(str(i), f'a {i}" pipe', "x") for i in range(quotes)]
    content = "id\ttext\tlabels\n" + "".join("\t".join(row) + "\n" for row in rows)
    assert read(path, content).rows() == rows
    error = refuse(path, content + '8\t"never closed\n9\ta\tb\n')
    assert (error.what, error.where) == ("a quoted field is not closed", f"{path}, line {quotes + 2}")


def test_a_quote_that_is_never_closed_fills_no_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_tables, "LONGEST", 60)
    error = refuse(path, 'a,b\n1,2\n3,"' + "4\n" * 100 + '",5\n')
    assert (error.what, error.where) == ("a quoted field is not closed", f"{path}, line 3")


def test_short_rows_are_filled(path: Path) -> None:
    assert read(path, 'a,b,c\n1\n2,"",3\n').rows() == [("1", None, None), ("2", None, "3")]


ROWS_OF_CSV = "text,labels\n" + "some text,a\n" * 9
OBJECTS = '{"text": "a"}\n' * 9
BAD = {  # what is read before and after, and what is said of the row between
    "too many fields": (ROWS_OF_CSV, b"x,y,z\n", "line 11: 3 fields, the header has 2"),
    "too many behind a field of two lines": (ROWS_OF_CSV + '"a\nb",c\n', b"x,y,z\n", "line 13: 3 fields, the header has 2"),
    "a byte in CSV": (ROWS_OF_CSV, b"x\xff,y\n", "line 11, column 2: byte 0xff is not UTF-8 (--encoding names another)"),
    "a byte in a field of two lines": (ROWS_OF_CSV, b'"x\ny\xff",z\n', "line 12, column 2: byte 0xff is not UTF-8"),
    "half a line": (OBJECTS, b'{"text": \n', "line 10, column 10: not JSON: Expecting value"),
    "a list": (OBJECTS, b"[1]\n", "line 10: a JSON list, not an object"),
    "a byte in JSON": (OBJECTS, b'{"text": "\xff"}\n', "line 10, column 11: byte 0xff is not UTF-8"),
    "half a character": (OBJECTS, b'{"text": "\\ud83d"}\n', "line 10: a string holds half a character"),
    "no number": (OBJECTS, b'{"text": NaN}\n', "line 10: NaN is no JSON"),
    "deep": (OBJECTS, b'{"text": ' + b"[" * 3000 + b"]" * 3000 + b"}\n", "line 10: a number of thousands of digits, or lists"),
    "zero byte": (OBJECTS, b'{"text": "\0"}\n', "line 10, column 11: not JSON"),
}


@pytest.mark.parametrize("case", [case for case in BAD if case != "zero byte"])
@pytest.mark.parametrize("size", [None, 45, 100])
def test_rows_that_cannot_be_read_are_named_and_left_out(path: Path, case: str, size: int | None) -> None:
    sound, wrong, said = BAD[case]
    rest = "".join(sound.splitlines(keepends=True)[1:])
    bad, expected = BadRows(), read(path, sound + rest)
    assert_frame_equal(read(path, sound.encode() + wrong + rest.encode(), bad, size=size), expected)
    assert [str(row).removeprefix(f"{path}, ").startswith(said) for row in bad.rows] == [True]
    for strict in (None, BadRows(strict=True)):
        with pytest.raises(DataError, match="a row cannot be read") as caught:
            read(path, sound.encode() + wrong + rest.encode(), strict, size=size)
        assert said.startswith(caught.value.where.removeprefix(f"{path}, "))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings(path: Path, encoding: str) -> None:
    lines = ["text;labels", *(f"tëxt {number};a,b" for number in range(9))]
    content, rows = "\r\n".join(lines).encode(encoding), [(f"tëxt {number}", "a,b") for number in range(9)]
    for size in (None, 90):
        assert read(path, content, encoding=encoding if encoding == "cp1252" else None, size=size).rows() == rows


VALUES = [st.integers(-9, 9) | st.sampled_from([0.5, -2.25]), st.text(max_size=4), st.lists(st.text(max_size=3), max_size=2), st.booleans()]


@settings(deadline=None, max_examples=150)
@given(rows=st.sampled_from(VALUES).flatmap(lambda values: st.lists(st.tuples(st.text(max_size=9), st.none() | values), min_size=3)))
def test_json_lines_in_blocks(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, object]]) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    content = "\n".join(json.dumps({"text": text} if value is None else {"text": text, "a": value}) for text, value in rows)
    frames = [read(path, content, size=size) for size in (None, 40)]
    assert_frame_equal(*frames, check_column_order=False)


def test_a_type_that_comes_late_makes_no_bad_row_count_twice(path: Path) -> None:
    bad = BadRows()
    assert read(path, '{"a": 1}\n' * 9 + "[1]\n" + '{"a": "x"}\n' * 9, bad, size=30)["a"].to_list() == ["1"] * 9 + ["x"] * 9
    assert [row.line for row in bad.rows] == [10]


CELLS = st.text(st.sampled_from('ab,;"\n\r\t é'), min_size=1, max_size=8).filter(str.strip)


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=12), separator=st.sampled_from(",\t"))
def test_rows_are_those_that_were_written(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], separator: str) -> None:
    path, stream = tmp_path_factory.mktemp("rows") / "x", io.StringIO(newline="")
    csv.writer(stream, delimiter=separator, lineterminator="\r\n").writerows([("text", "labels"), *rows])
    for size in (None, 30):
        assert read(path, stream.getvalue(), size=size).rows() == rows


def test_a_list_is_read_whole(path: Path) -> None:
    assert read(path, '[{"text": "a"},\n{"text": "b"}]', size=8).rows() == [("a",), ("b",)]


def test_a_large_table_is_the_same_as_a_small_one(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": [f'line "{number}"\nmore, text' for number in range(50)], "labels": ["a"] * 50})
    write_table(frame, tmp_path / "x.tsv.gz")
    assert_frame_equal(read(tmp_path / "y", (tmp_path / "x.tsv.gz").read_bytes(), size=99), frame)
