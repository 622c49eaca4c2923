"""Frames that wait in files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from plant_cli.data import lines as module
from plant_cli.data.lines import spool, watching


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
