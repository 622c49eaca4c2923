"""Compressed files are read and written as if they were not, and damage is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from plant_cli.api import DataError
from plant_cli.data.lines import bare_name, compress, decode_text, find_encoding, find_fallback, open_bytes, read_bytes, writing_text

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


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_truncated_file_is_noticed(tmp_path: Path, suffix: str, keep: float) -> None:
    content = compress("".join(map(str, range(100_000))).encode(), suffix)
    (tmp_path / "x").write_bytes(content[: int(keep * len(content))])
    with pytest.raises(DataError, match="truncated or damaged"):
        read_bytes(tmp_path / "x")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_damage_in_the_middle_is_noticed(tmp_path: Path, suffix: str) -> None:
    content = bytearray(compress("".join(map(str, range(100_000))).encode(), suffix))
    content[len(content) // 2] ^= 255
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match="truncated or damaged"):
        read_bytes(tmp_path / "x")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_files_put_one_after_the_other_are_read_as_one(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "x").write_bytes(compress(b"a\n", suffix) + compress(b"b\n", suffix))
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
