"""Separators, line ends and values of text tables, as spreadsheets and Python write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api.errors import DataError
from plant_cli.data.text_tables import parse_text, shorten, show_names

PATH = Path("x.csv")


def refuse(content: str | bytes) -> DataError:
    with pytest.raises(DataError) as caught:
        parse_text(content.encode() if isinstance(content, str) else content, PATH)
    return caught.value


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ('doc_id;text;labels;"Bemerkung, frei"\n1;a, b;c;d\n', ["doc_id", "text", "labels", "Bemerkung, frei"]),
        ('"a, b, c, d";text;labels\n1;2;3\n', ["a, b, c, d", "text", "labels"]),
        ('text;"two, ""three, four"", five"\n1;2\n', ["text", 'two, ""three, four"", five']),
        ("text|codes, all|x\na|b|c\n", ["text", "codes, all", "x"]),
        ("text;labels (a,b,c)\nfoo;bar\n", ["text", "labels (a,b,c)"]),
        ("text;labels (a,b,c)\n\nfoo;bar\n", ["text", "labels (a,b,c)"]),
        ('text;labels (a,b)\n"one; two";bar\n', ["text", "labels (a,b)"]),
        ("text\tlabels, all\na, b\tx\n", ["text", "labels, all"]),
        ("text,labels;codes\n", ["text", "labels;codes"]),
        ('text;"labels\nor codes";split\na;b;c\n', ["text", "labels\nor codes", "split"]),
    ],
)
def test_the_separator_is_the_one_that_header_and_first_row_agree_on(content: str, columns: list[str]) -> None:
    assert parse_text(content.encode(), PATH).columns == columns


@pytest.mark.parametrize("first", ["sep=;", "SEP=;", '"sep=;"'])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_first_line_of_excel_names_the_separator(first: str, end: str) -> None:
    content = f"\ufeff{first}{end}text;labels, all{end}a, b;c{end}".encode()
    assert parse_text(content, PATH).to_dicts() == [{"text": "a, b", "labels, all": "c"}]


def test_lines_are_counted_from_the_first_line_of_excel() -> None:
    assert refuse("sep=;\ntext;labels\na;b\nc;d;e\n").where == "x.csv, line 4, row 2"
    assert refuse('sep=;\ntext;labels\na;b\nc;"d\n').where == "x.csv, line 4"
    assert refuse("sep=;\n").where == "x.csv, line 2: ''"


def test_the_line_ends_of_old_macs_are_read() -> None:
    rows = [{"text": "a", "labels": "b"}, {"text": "c\nd", "labels": "e"}]
    assert parse_text(b'text,labels\ra,b\r"c\nd",e\r', PATH).to_dicts() == rows
    assert parse_text(b'text,"labels"\ra,b\r"c\rd",e', PATH).to_dicts() == rows
    assert parse_text(b'{"text": "a"}\r{"text": "b"}\r', PATH).to_dicts() == [{"text": "a"}, {"text": "b"}]


def test_a_carriage_return_within_a_text_of_today_is_left_alone() -> None:
    assert parse_text(b'text,labels\n"a\rb",c\n', PATH).to_dicts() == [{"text": "a\rb", "labels": "c"}]


def test_names_in_messages_are_cut() -> None:
    assert shorten("labels") == "labels"
    assert shorten("x" * 41) == "x" * 39 + "…"
    assert show_names(["a", "b" * 50]) == "a, " + "b" * 39 + "…"
    assert show_names("abcdefghijklmnop") == "a, b, c, d, e, f, g, h, i, j, k, l"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("row", ['{"score": %s}', '{"score": [0.5, %s]}'])
def test_what_is_no_number_in_json_is_named_with_its_line(constant: str, row: str) -> None:
    good = row % 1
    error = refuse(f"{good}\n{good.replace('1', '1.5')}\n\n{row % constant}\n")
    assert error.what == f"a line cannot be read: {constant} is no JSON"
    assert error.where == "x.csv, line 4"
    assert error.todo == f"write null in place of {constant}, or leave that key out"


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        (['{"a": 1}', '{"a": 0.5}', '{"a": 1e999}'], 3, "a value does not fit into a table"),
        (['{"a": 1}', "", '{"a": ' + "9" * 50 + "}", '{"a": 1}'], 3, "a value does not fit into a table"),
        (['{"a": null, "b": 1}', '{"a": ["x"], "b": 0.5}', '{"a": {"y": 1}, "b": 2}'], 3, "'a' is of type dict"),
    ],
)
def test_a_line_that_is_named_is_the_one_at_fault(lines: list[str], line: int, what: str) -> None:
    error = refuse("\n".join(lines))
    assert what in error.what
    assert error.where == f"x.csv, line {line}"
    assert not {"TapeError", "InvalidNumber"} & set(error.what.replace("(", " ").split())


@pytest.mark.parametrize("half", [r"\ud83d", r"\uDE00", r"x\ud83dx\ude00"])
def test_half_a_character_is_named_with_its_row(half: str) -> None:
    whole = r'{"text": "\ud83d\ude00 and \\ud83d"}'
    for content, place in (
        (f'[{whole}, {{"text": "{half}"}}]', "row 2"),
        (f'[{whole}, {{"labels": ["{half}"]}}]', "row 2"),
        (f'{whole}\n\n{{"text": "{half}"}}\n', "line 3"),
    ):
        error = refuse(content)
        assert "half a character" in error.what
        assert error.where == f"x.csv, {place}"
        assert r"\ufffd" in error.todo


def test_whole_characters_in_json_are_read() -> None:
    assert parse_text(rb'{"text": "\ud83d\ude00 and \\ud83d"}', PATH).item() == "\U0001f600 and \\ud83d"


def test_a_number_too_large_for_a_table_of_json_is_explained() -> None:
    assert "do not fit one table" in refuse('[{"a": ' + "9" * 60 + "}]").what


@pytest.mark.parametrize("content", ["\n \nid,text\n1,a\n\n2,b\n\n", "sep=,\r\n\r\nid,text\r\n1,a\r\n\r\n2,b\r\n\r\n"])
def test_blank_lines_are_no_rows(content: str) -> None:
    assert parse_text(content.encode(), Path("x.csv")).rows() == [("1", "a"), ("2", "b")]


def test_lines_are_counted_from_the_first_one_also_where_it_is_blank() -> None:
    with pytest.raises(DataError) as caught:
        parse_text(b"\n\nid,text\n1,a,b\n", Path("x.csv"))
    assert "line 4" in caught.value.where


@pytest.mark.parametrize("quotes", [1, 2, 7])
def test_a_quote_amid_a_field_is_part_of_it(quotes: int) -> None:
    rows = [(str(i), f'a {i}" pipe', "x") for i in range(quotes)]
    content = "id\ttext\tlabels\n" + "".join("\t".join(row) + "\n" for row in rows)
    assert parse_text(content.encode(), Path("x.tsv")).rows() == rows
    with pytest.raises(DataError, match=r"not closed|could not parse"):
        parse_text((content + '8\t"never closed\n').encode(), Path("x.tsv"))
