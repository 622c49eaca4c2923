"""Lines of files, and rows that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import DataError, DataSection, UsageError
from plant_cli.data.lines import LISTED, BadRows, read_lines


def test_lines_end_in_any_way_and_a_mark_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nfour")
    assert list(read_lines(tmp_path / "x", BadRows())) == [(1, "one"), (2, "two"), (3, ""), (4, "four")]
    assert [line for _, line in read_lines(tmp_path / "x", BadRows(), ends=True)] == ["one\r\n", "two\n", "\n", "four"]


@pytest.mark.parametrize("codec", ["utf-16", "utf-32", "utf-16-le"])
def test_wide_encodings(tmp_path: Path, codec: str) -> None:
    (tmp_path / "x").write_bytes("\u00e9\r\nb".encode(codec))
    assert list(read_lines(tmp_path / "x", BadRows(), codec if codec.endswith("le") else None)) == [(1, "\u00e9"), (2, "b")]


def test_a_damaged_wide_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("a\nb\n".encode("utf-16")[:-1])
    with pytest.raises(DataError, match="not UTF-16"):
        list(read_lines(tmp_path / "x", BadRows()))


def test_a_wrong_byte_is_named_with_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("\ufeffgood\n\u00e4b".encode() + b"\xff\nlast\n")
    bad = BadRows()
    assert [line for _, line in read_lines(tmp_path / "x", bad)] == ["good", "last"]
    assert bad.rows[0].place == f"{tmp_path / 'x'}, line 2, column 3"
    assert bad.rows[0].content == "\u00e4b\ufffd"
    with pytest.raises(DataError, match="0xff is not UTF-8"):
        list(read_lines(tmp_path / "x", BadRows(strict=True)))


def test_the_first_ten_are_listed_and_all_are_kept(tmp_path: Path) -> None:
    bad = BadRows.of(DataSection(rejects=str(tmp_path / "rejects.tsv")))
    for line in range(1, 13):
        bad.add(Path("x.txt"), line, "no tab", f"row\t{line}")
    (remark,) = bad.close()
    assert remark.startswith("12 rows cannot be read")
    assert remark.count("no tab") == LISTED
    kept = (tmp_path / "rejects.tsv").read_text().splitlines()
    assert len(kept) == 13
    assert kept[1] == 'x.txt\t1\t\tno tab\t"row\t1"'


def test_rejects_replace_nothing_but_rejects(tmp_path: Path) -> None:
    """The corpus itself may be named by mistake."""
    place = tmp_path / "rejects.tsv"
    data = DataSection(rejects=str(place))
    for content in ("", "file\tline\tcolumn\treason\tcontent\nx\t1\t\tno tab\ty\n"):
        place.write_text(content)
        BadRows.of(data).close()
        assert place.read_text() == "file\tline\tcolumn\treason\tcontent\n"
    place.write_text("text,labels\n")
    with pytest.raises(UsageError, match="would replace a file that holds something else"):
        BadRows.of(data)
    assert place.read_text() == "text,labels\n"


def test_nothing_is_said_where_nothing_is_wrong() -> None:
    assert BadRows().close() == []


def test_a_file_of_another_encoding_is_an_error_and_costs_no_documents(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes("naïve\n".encode("latin-1") * LISTED + b"plain\n")
    bad = BadRows()
    assert [line for _, line in read_lines(tmp_path / "x", bad)] == ["plain"]
    assert len(bad.rows) == LISTED
    (tmp_path / "x").write_bytes("naïve\n".encode("latin-1") * (LISTED + 1))
    with pytest.raises(DataError, match="the file is not UTF-8") as caught:
        list(read_lines(tmp_path / "x", BadRows()))
    assert caught.value.where == f"{tmp_path / 'x'}, line {LISTED + 1}, column 3"
    assert "--encoding" in caught.value.todo
