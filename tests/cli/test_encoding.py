"""Bytes that are no text are told as such, wherever they turn up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import UsageError
from plant_cli.cli.execution import refuse_bytes
from plant_cli.data.files import write_json

NAME = os.fsdecode(b"b\xff.csv")


@pytest.mark.parametrize("value", [NAME, Path("folder") / NAME, ["fine", NAME]])
def test_what_was_given_is_refused_before_any_work(value: Any) -> None:
    with pytest.raises(UsageError) as caught, refuse_bytes({"data": {"label_file": value}}):
        pytest.fail("the work began")
    assert "b\\xff.csv" in caught.value.what
    assert caught.value.where == "the command line, label-file"
    assert "UTF-8" in caught.value.expected


def test_the_name_of_a_file_that_is_met_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught, refuse_bytes({"data": {"path": "ü", "k": 3}}):
        write_json(tmp_path / "list.json", ["one", NAME])
    assert caught.value.what == r'not a text in UTF-8: "b\xff.csv"'


def test_a_letter_that_an_encoding_lacks_is_another_error() -> None:
    with pytest.raises(UnicodeEncodeError), refuse_bytes({}):
        "ü".encode("ascii")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("mig", b"b\xff.csv"), "path"),
        (("mig", "c.csv", "--run", b"\xff"), "run"),
        (("suggest", "--text", b"\xffabc"), "text"),
    ],
)
def test_a_command_line_in_another_encoding_is_explained(tmp_path: Path, arguments: tuple[str | bytes, ...], where: str) -> None:
    command = [sys.executable, "-m", "plant_cli", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env={**os.environ, "PYTHONUTF8": "1"}, check=False)
    error = done.stderr.decode()
    assert done.returncode == 2, error
    assert error.startswith("error: not a text in UTF-8: ")
    assert f"  where:      the command line, {where}\n" in error
    assert error.count("\n") == 4
    assert list(tmp_path.iterdir()) == []
