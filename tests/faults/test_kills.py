"""A slice of the kills; the whole of them is `python -m tests.faults.kills --trials 200`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kills import COMMANDS, HARM, SERVE, VERDICTS, list_files
from tests.faults.reports import run_slice

EACH = 2  # trials of each command


def test_every_verdict_that_is_harm_is_known() -> None:
    assert set(HARM) < set(VERDICTS)


def test_files_are_listed_without_locks_and_caches(tmp_path: Path) -> None:
    for name in ("run.json", ".lock", "cache/states.bin", "stage/.half", "stage/model.bin"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    assert list(list_files(tmp_path)) == ["run.json", "stage/.half", "stage/model.bin"]


@pytest.mark.slow
def test_the_same_command_again_does_what_was_to_be_done(tmp_path: Path) -> None:
    kinds = [*COMMANDS, SERVE]
    trials = run_slice("tests.faults.kills", EACH * len(kinds), 7, tmp_path / "trials.jsonl")
    assert {trial["fault"] for trial in trials} == set(kinds)
    assert {trial["verdict"] for trial in trials} <= set(VERDICTS) - set(HARM)
