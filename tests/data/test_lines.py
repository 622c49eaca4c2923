"""Lines of files, compressed or not, rows that cannot be read, and tables that wait in files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import DataError, DataSection, UsageError
from plant_cli.data import lines as module
from plant_cli.data.lines import (
    LISTED,
    BadRows,
    bare_name,
    decode_text,
    find_encoding,
    find_fallback,
    open_bytes,
    read_bytes,
    read_lines,
    spool,
    watching,
    writing_bytes,
    writing_text,
)


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
    with pytest.raises(UsageError, match="would replace another file"):
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
    with pytest.raises(DataError, match="not UTF-8: more than 10 rows") as caught:
        list(read_lines(tmp_path / "x", BadRows()))
    assert caught.value.where == f"{tmp_path / 'x'}, line {LISTED + 1}, column 3"
    assert "--encoding" in caught.value.todo


TEXT = "line\n" * 200_000


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_what_is_written_is_read_and_equal_texts_give_equal_bytes(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"a.txt{suffix}", tmp_path / f"b.txt{suffix}"
    for path in (first, second):
        with writing_text(path) as stream:
            stream.write(TEXT)
    assert first.read_bytes() == second.read_bytes()
    assert read_bytes(first).decode() == TEXT
    assert bare_name(first) == "a.txt"
    if suffix:
        assert first.stat().st_size < 10_000


def compress(path: Path, content: bytes) -> bytes:
    with writing_bytes(path) as stream:
        stream.write(content)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_truncated_file_is_noticed(tmp_path: Path, suffix: str, keep: float) -> None:
    content = compress(tmp_path / f"c{suffix}", "".join(map(str, range(100_000))).encode())
    (tmp_path / "x").write_bytes(content[: int(keep * len(content))])
    with pytest.raises(DataError, match="truncated or damaged"):
        read_bytes(tmp_path / "x")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damage_in_the_middle_is_noticed(tmp_path: Path, suffix: str) -> None:
    content = bytearray(compress(tmp_path / f"c{suffix}", "".join(map(str, range(100_000))).encode()))
    content[len(content) // 2] ^= 255
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match="truncated or damaged"):
        read_bytes(tmp_path / "x")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_files_put_one_after_the_other_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "x").write_bytes(compress(tmp_path / f"c{suffix}", b"a\n") + compress(tmp_path / f"c{suffix}", b"b\n"))
    assert read_bytes(tmp_path / "x") == b"a\nb\n"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError), open_bytes(path):
            pass


def test_encodings(tmp_path: Path) -> None:
    assert find_encoding("a".encode("utf-32")[:4], None, "x") == "utf-32"
    assert find_encoding("ab".encode("utf-16")[:4], None, "x") == "utf-16"
    assert find_encoding(b"abcd", None, "x") == "utf-8-sig"
    assert find_encoding(b"abcd", "Latin-1", "x") == "iso8859-1"
    assert find_encoding(b"\xef\xbb\xbfa", "cp1252", "x") == "utf-8-sig"  # a mark says more than an option for all files
    with pytest.raises(DataError, match="no encoding named"):
        find_encoding(b"abcd", "klingon", "x")


@pytest.mark.parametrize(("codec", "expected"), [("utf-8", None), ("utf-8-sig", None), ("utf-16", None), ("cp1252", "cp1252")])
def test_the_usual_encoding_is_for_what_is_not_unicode(codec: str, expected: str | None) -> None:
    content = "Möbel".encode(codec)
    assert find_fallback(content, "cp1252") == expected
    assert find_fallback(content, None) is None
    assert find_fallback(b"PAR1\xe4", "cp1252") is None
    assert decode_text(content, expected, "the text", "x") == "Möbel"


def test_a_text_in_another_encoding_is_told_with_its_place() -> None:
    with pytest.raises(DataError, match="the text is not UTF-8") as caught:
        decode_text("Tisch\nMöbel".encode("cp1252"), None, "the text", "x")
    assert caught.value.where == "x, line 2, column 2"


def files() -> list[Path]:
    return [path for path in Path(module._folder().name).rglob("*") if path.is_file()]


def test_frames_come_back_in_order_and_are_taken_one_at_a_time() -> None:
    alive = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal alive
        for number in range(3):
            alive = len(files())
            yield pl.DataFrame({"a": [number, number + 10]})

    before = len(files())
    parts = spool(frames())
    assert alive == before + 2
    assert [part.collect()["a"].to_list() for part in parts] == [[0, 10], [1, 11], [2, 12]]


def test_nothing_is_left_of_what_failed() -> None:
    def frames() -> Iterator[pl.DataFrame]:
        yield pl.DataFrame({"a": [1]})
        raise ValueError("no more")

    before = files()
    with pytest.raises(ValueError, match="no more"):
        spool(frames())
    assert files() == before


def test_the_files_vanish_with_the_process(tmp_path: Path) -> None:
    code = "import polars as pl; from plant_cli.data.lines import spool; print(spool([pl.DataFrame({'a': [7]})])[0].collect().item())"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"TMPDIR": str(tmp_path), "PATH": ""}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "7\n"
    assert not list(tmp_path.iterdir())


def test_who_watches_learns_of_the_rows() -> None:
    seen: list[int] = []
    with watching(seen.append):
        spool([pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [3]})])
    spool([pl.DataFrame({"a": [4]})])
    assert seen == [2, 1]


def test_objects_without_a_key_become_nulls() -> None:
    frame = pl.DataFrame({"a": [1], "b": [{}], "c": [[{}]], "d": [{"e": {}}]}, schema_overrides={"b": pl.Struct([])})
    [read] = spool([frame])
    assert read.collect().rows() == [(1, None, None, None)]
