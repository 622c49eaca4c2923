"""A large table is what the whole file is: its rows, its types, its errors."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from plant_cli.api.errors import DataError
from plant_cli.data import tables
from plant_cli.data import text_tables as blocks_of_text
from plant_cli.data.lines import BadRows
from plant_cli.data.tables import scan_table, write_table


def read(path: Path, size: int | None, bad: BadRows | None = None, encoding: str | None = None) -> pl.DataFrame:
    """The table, in blocks of some bytes (None: whole)."""
    with pytest.MonkeyPatch.context() as patch:
        if size is not None:
            patch.setattr(tables, "LARGE", size)
            patch.setattr(blocks_of_text, "BLOCK", size)
        return scan_table(path, bad=bad, encoding=encoding).collect()


OTHERS = [st.none(), st.text(max_size=4), st.lists(st.text(max_size=3), max_size=2)]
NUMBERS = st.one_of(st.integers(-9, 9), st.sampled_from([0.5, -2.25]), *OTHERS)
TRUTHS = st.one_of(st.booleans(), *OTHERS)  # not beside numbers: polars refuses both together, unless a later line holds a string
ROWS = st.lists(st.fixed_dictionaries({"text": st.text(max_size=9)}, optional={"a": NUMBERS, "b": TRUTHS}), min_size=3, max_size=10)


@settings(deadline=None, max_examples=150)
@given(rows=ROWS)
def test_json_lines_have_the_types_of_all_lines_together(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    try:
        expected = read(path, None)
    except DataError:
        with pytest.raises(DataError, match="a line cannot be read"):
            read(path, 40)
        return
    assert_frame_equal(read(path, 40), expected)


CELLS = st.text(st.sampled_from('ab,;"\n\t é'), min_size=1, max_size=8).filter(str.strip)


@settings(deadline=None, max_examples=150)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=12), name=st.sampled_from(["x.csv", "x.tsv.gz"]))
def test_rows_of_csv_are_those_of_the_whole_file(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], name: str) -> None:
    path = tmp_path_factory.mktemp("rows") / name
    write_table(pl.DataFrame(rows, schema=["text", "labels"], orient="row"), path)
    assert_frame_equal(read(path, 30), read(path, None))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_other_encodings_and_the_first_line_of_excel(tmp_path: Path, encoding: str) -> None:
    lines = ["sep=;", "text;labels", *(f"tëxt {number};a,b" for number in range(9))]
    (tmp_path / "x.csv").write_bytes("\r\n".join(lines).encode(encoding))
    given = encoding if encoding == "cp1252" else None
    assert_frame_equal(read(tmp_path / "x.csv", 90, encoding=given), read(tmp_path / "x.csv", None, encoding=given))


BAD = {
    "csv, too many fields": b"text,labels\n" + b"some text,a\n" * 9 + b"x,y,z\n" + b"more text,b\n" * 9,
    "csv, a byte that is no UTF-8": b"text,labels\n" + b"some text,a\n" * 9 + b"x\xff,y\n" + b"more text,b\n" * 9,
    "json, half a line": b'{"text": "a"}\n' * 9 + b'{"text": \n' + b'{"text": "b"}\n' * 9,
    "json, a list": b'{"text": "a"}\n' * 9 + b"[1]\n" + b'{"text": "b"}\n' * 9,
    "json, half a character": b'{"text": "a"}\n' * 9 + b'{"text": "\\ud83d"}\n' + b'{"text": "b"}\n' * 9,
    "json, other types": b'{"a": {"b": 1}}\n' * 9 + b'{"a": [1]}\n' + b'{"a": {"b": 1}}\n' * 9,
    "json, zero byte": b'{"text": "a"}\n' * 40 + b'{"text": "\0"}\n',
    "csv, repeated names": b"text,text\n" + b"some text,a\n" * 9,
    "no table": b"some text\n" * 30,
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("size", [45, 100])
def test_errors_name_the_same_line(tmp_path: Path, case: str, size: int) -> None:
    (tmp_path / "x").write_bytes(BAD[case])
    with pytest.raises(DataError) as whole:
        read(tmp_path / "x", None)
    with pytest.raises(DataError) as pieces:
        read(tmp_path / "x", size)
    assert (pieces.value.what, pieces.value.where) == (whole.value.what, whole.value.where)


@pytest.mark.parametrize("case", [case for case in BAD if "fields" in case or "UTF" in case or "line" in case or "list" in case])
def test_rows_that_cannot_be_read_are_the_same(tmp_path: Path, case: str) -> None:
    (tmp_path / "x").write_bytes(BAD[case])
    whole, pieces = BadRows(), BadRows()
    assert_frame_equal(read(tmp_path / "x", 45, pieces), read(tmp_path / "x", None, whole))
    assert pieces.rows == whole.rows
    assert len(whole.rows) == 1
    with pytest.raises(DataError):
        read(tmp_path / "x", 45, BadRows(strict=True))


def test_a_piece_without_a_sound_line_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"a": "x"}\n' * 9 + b'{"a": "cut o')
    bad = BadRows()
    assert read(tmp_path / "x", 30, bad)["a"].to_list() == ["x"] * 9
    assert [row.line for row in bad.rows] == [10]
    (tmp_path / "x").write_bytes(b'{"a"\n' * 9)
    with pytest.raises(DataError, match="no line of the file can be read"):
        read(tmp_path / "x", 30, BadRows())


def test_a_type_that_comes_late_makes_no_bad_row_count_twice(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'{"a": 1}\n' * 9 + b"[1]\n" + b'{"a": "x"}\n' * 9)
    bad = BadRows()
    assert read(tmp_path / "x", 30, bad)["a"].to_list() == ["1"] * 9 + ["x"] * 9
    assert [row.line for row in bad.rows] == [10]


@pytest.mark.parametrize("content", [b'[{"text": "a"},\n{"text": "b"}]', b"text,labels\ra,b\rc,d\r"])
def test_what_cannot_be_cut_is_read_whole(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    assert_frame_equal(read(tmp_path / "x", 8), read(tmp_path / "x", None))
