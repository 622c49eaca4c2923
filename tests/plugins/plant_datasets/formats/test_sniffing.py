"""First lines of files."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import polars as pl
import pytest
from plant_datasets.formats.sniffing import find_example, first_lines, mostly

from plant_cli.api import DataSection


def test_first_lines(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"a\nb\nc\n"))
    assert first_lines(tmp_path / "x.gz", 2) == ["a", "b"]
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"a" * 9999)[:12])
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    (tmp_path / "zero").write_bytes(b"\0\0")
    for name in ("cut.gz", "x.parquet", "zero", "nowhere"):
        assert first_lines(tmp_path / name) == []


def test_an_example_is_the_file_or_the_training_file(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\n")
    (tmp_path / "test.txt").write_text("b\n")
    assert find_example(DataSection(path=str(tmp_path)), lambda path: True) == tmp_path / "train.txt"
    assert find_example(DataSection(path=str(tmp_path / "test.txt")), lambda path: True) == tmp_path / "test.txt"
    assert find_example(DataSection(path=str(tmp_path)), lambda path: False) is None
    assert find_example(DataSection(), lambda path: True) is None


def test_mostly() -> None:
    assert mostly(["x"] * 8 + ["y", "y", ""], lambda line: line == "x")
    assert not mostly(["x"] * 7 + ["y"] * 3, lambda line: line == "x")
    assert not mostly(["", " "], lambda line: True)


@pytest.mark.parametrize("error", [ValueError, RecursionError, csv.Error])
def test_what_cannot_be_taken_apart_fits_nothing(tmp_path: Path, error: type[Exception]) -> None:
    def fails(path: Path) -> bool:
        raise error

    (tmp_path / "train.txt").write_text("a\n")
    assert find_example(DataSection(path=str(tmp_path)), fails) is None
    assert find_example(DataSection(path=str(tmp_path / "train.txt")), fails) is None
