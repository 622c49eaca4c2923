"""Blocks of text, and pieces of whole rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant_cli.api.errors import DataError
from plant_cli.data import text_tables as module
from plant_cli.data.text_tables import Place, cut_lines, cut_rows, end_of_rows, read_blocks

UTF8 = "utf-8-sig"


@pytest.fixture(autouse=True)
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 7)
        patch.setattr(module, "LONGEST", 60)
        yield


@pytest.mark.parametrize("codec", [UTF8, "utf-16", "cp1252"])
def test_a_file_is_the_same_in_blocks(tmp_path: Path, codec: str) -> None:
    text = "one line\nünd noch eine\r\nend"
    (tmp_path / "x").write_bytes(text.encode(codec))
    assert b"".join(read_blocks(tmp_path / "x", codec)).decode() == text


def test_a_character_that_does_not_fit_is_named_by_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("first line\nthe second, half".encode("utf-16") + b"\x00\xdc")
    with pytest.raises(DataError, match="the file is not UTF-16") as caught:
        list(read_blocks(tmp_path / "x", "utf-16"))
    assert caught.value.where.endswith("line 2, column 17")


def test_lines_are_cut_at_their_ends(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a\nbb\nccccccccccc\n\nd")
    pieces = list(cut_lines(tmp_path / "x", UTF8))
    assert b"".join(content for _, content in pieces) == b"a\nbb\nccccccccccc\n\nd"
    assert [(place.lines, place.bytes, content) for place, content in pieces] == [
        (0, 0, b"a\nbb\n"), (2, 5, b"ccccccccccc\n\n"), (4, 18, b"d"),
    ]  # fmt: skip


def test_a_quote_that_is_never_closed_ends_in_an_error_and_not_in_memory(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'a,b\n1,2\n3,"' + b"4\n" * 100)
    with pytest.raises(DataError, match="perhaps a quoted field is not closed") as caught:
        list(cut_rows(tmp_path / "x", UTF8, ",", Place(tmp_path / "x", lines=1, bytes=4)))
    assert caught.value.where.endswith("line 3")


FIELDS = st.text(st.sampled_from('ab,"\r\n\t ü'), max_size=6)


@settings(deadline=None, max_examples=200)
@given(rows=st.lists(st.lists(FIELDS, min_size=2, max_size=2), min_size=1, max_size=12))
def test_no_piece_ends_within_a_row(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\r\n").writerows(rows)
    path = tmp_path_factory.mktemp("rows") / "x"
    path.write_bytes(stream.getvalue().encode())
    pieces = [content.decode() for _, content in cut_rows(path, UTF8, ",", Place(path))]
    assert "".join(pieces) == stream.getvalue()
    assert [row for piece in pieces for row in csv.reader(io.StringIO(piece, newline="\n"), delimiter=",")] == rows


def test_the_end_of_the_first_rows() -> None:
    assert end_of_rows(b'a,"b\nc"\n1,2\n3,4\n', ",", keep=1) == 8
    assert end_of_rows(b'a,"b\nc"\n1,2\n3,4\n', ",") == 12
