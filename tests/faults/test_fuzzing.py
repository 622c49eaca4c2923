"""A slice of the fuzzing; more of it is `python -m tests.faults.fuzzing --trials 1000`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from plant_cli.api import DataError
from tests.faults.fuzzing import contract
from tests.faults.fuzzing.contract import Broken, keep_contract
from tests.faults.fuzzing.targets import TARGETS
from tests.faults.reports import run_slice

GOOD = DataError("it is wrong", where="x.csv, line 3", expected="a table", todo="mend it")


def attempt(error: Exception | None) -> contract.Try:
    def read(files: contract.Files, folder: Path) -> None:
        if error is not None:
            raise error

    return read


def test_a_result_and_a_clear_error_keep_the_contract(tmp_path: Path) -> None:
    assert keep_contract(attempt(None), {"a": b"b"}, tmp_path / "case") == "result"
    assert keep_contract(attempt(GOOD), {"a": b"b"}, tmp_path / "case") == "DataError: it is wrong"
    assert not (tmp_path / "case").exists()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            DataError("it is wrong", where="", expected="a", todo="b"),
            "the part 'where' of the message is empty",
        ),
        (DataError("x" * 9000, where="a", expected="a", todo="b"), "a message of 9,"),
    ],
)
def test_an_unclear_message_breaks_it(tmp_path: Path, error: Exception, reason: str) -> None:
    with pytest.raises(Broken, match=reason):
        keep_contract(attempt(error), {"a": b"b"}, tmp_path / "case")


def test_another_exception_goes_through(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        keep_contract(attempt(KeyError("x")), {"a": b"b"}, tmp_path / "case")


def test_what_is_written_or_run_outside_of_the_folder_breaks_it(tmp_path: Path) -> None:
    def write(files: contract.Files, folder: Path) -> None:
        (folder / "inside").write_text("fine")
        (tmp_path / "outside").write_text("not fine")

    def start(files: contract.Files, folder: Path) -> None:
        subprocess.run([sys.executable, "--version"], check=False, capture_output=True)

    for reach in (write, start):
        with pytest.raises(Broken, match="it reaches out of its folder"):
            keep_contract(reach, {"a": b"b"}, tmp_path / "case")


def test_what_does_not_end_breaks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "SECONDS", 0.2)
    with pytest.raises(Broken, match="still busy"):
        keep_contract(lambda files, folder: time.sleep(5), {"a": b"b"}, tmp_path / "case")


@pytest.mark.slow
def test_a_slice_of_every_target_keeps_the_contract(tmp_path: Path) -> None:
    trials = run_slice("tests.faults.fuzzing", len(TARGETS), 3, tmp_path / "report.jsonl")
    assert {trial["fault"] for trial in trials} == TARGETS.keys()
    assert all(trial["detail"].startswith("100 cases") for trial in trials)


@pytest.mark.slow
def test_a_slice_guided_by_what_it_reaches_keeps_the_contract(tmp_path: Path) -> None:
    pytest.importorskip(
        "atheris", reason="atheris is not installed: it has wheels for Linux on x86-64 alone"
    )
    (trial,) = run_slice(
        "tests.faults.fuzzing.guided", 1, 3, tmp_path / "report.jsonl", "--kind", "predictions"
    )
    assert not trial["detail"].startswith("0 cases")
