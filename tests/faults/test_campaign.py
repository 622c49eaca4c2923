"""A slice of the fault campaign; the whole of it is `python -m tests.faults.campaign --trials
1000`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import StageSpec
from plant_cli.registry import installed
from tests.faults.campaign import pairs
from tests.faults.campaign.commands import ALL, COMMANDS, Reference
from tests.faults.campaign.pairs import PairEnding
from tests.faults.campaign.trials import FAULTS, HARM, NEEDS_ROOT, VERDICTS
from tests.faults.processes import Ending, Running
from tests.faults.reports import run_slice

TRIALS = 40


def test_every_stage_that_writes_a_run_is_disturbed() -> None:
    writers = {spec.name for spec in installed().specs(StageSpec) if spec.writes}
    assert writers <= {command.arguments[0] for command in ALL}


def test_only_what_has_all_four_parts_and_no_trace_is_clear() -> None:
    message = "error: a\n  where:      b\n  expected:   c\n  what to do: d\n"
    assert Ending(4, 1.0, message).clear
    assert not Ending(1, 1.0, message).clear
    assert not Ending(4, 1.0, message.replace("expected", "wanted")).clear
    assert not Ending(4, 1.0, "Traceback (most recent call last)\n" + message).clear


def test_of_a_pair_the_one_that_failed_first_must_be_clear() -> None:
    clear = Ending(6, 1.0, "error: a\n  where:      b\n  expected:   c\n  what to do: d\n")
    said = "".join(f"[1] {line}\n" for line in clear.output.splitlines())
    assert PairEnding(6, 1.0, said, clear).clear
    assert not PairEnding(-9, 1.0, said, Ending(-9, 1.0, "")).clear
    assert not PairEnding(6, 1.0, f"{said}[0] Traceback (most recent call last)\n", clear).clear


def test_a_launcher_ends_the_other_once_one_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes: the first fails, the second sleeps until it is told to end."""
    monkeypatch.setattr(pairs, "Running", Sleeper)
    ending = pairs.run_pair(["first fails"], tmp_path)
    assert (ending.code, ending.output.splitlines()) == (
        3,
        ["[0] failed", f"[1] signal {signal.SIGTERM}"],
    )
    killed = pairs.run_pair(["both sleep"], tmp_path, ranks=(1,), signals=[(0.1, signal.SIGKILL)])
    assert (killed.code, killed.output.splitlines()) == (
        -9,
        [f"[0] signal {signal.SIGTERM}", f"[1] signal {signal.SIGKILL}"],
    )


class Sleeper(Running):
    """Stands for a command: the first of a pair may fail at once, all others sleep."""

    def __init__(self, arguments: Sequence[str], folder: Path, prepare: Any) -> None:
        rank, self._received, self._begun = prepare.args[0], 0, time.monotonic()
        self._ending = (
            Ending(3, 0.0, "failed") if arguments == ["first fails"] and rank == 0 else None
        )

    def poll(self) -> Ending | None:
        if self._ending is None and self._received:
            self._ending = Ending(-self._received, 0.0, f"signal {self._received}")
        return self._ending

    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def send(self, number: int) -> None:
        self._received = number


def test_what_differs_from_the_reference_is_found(tmp_path: Path) -> None:
    """One flipped bit, one file too many, one too few: the comparison that every verdict rests
    on sees each.
    """
    reference = Reference.__new__(Reference)
    reference.place = tmp_path
    done = reference.before(len(COMMANDS)) / "mig"
    done.mkdir(parents=True)
    (done / "mig.parquet").write_bytes(b"abc")
    (done / "stage.json").write_text(
        json.dumps({"status": "done", "outputs": {"mig.parquet": "x"}})
    )
    run = reference.place / "run" / "mig"
    run.mkdir(parents=True)
    (run / "stage.json").write_bytes((done / "stage.json").read_bytes())
    assert "mig/mig.parquet: x" in reference.compare(COMMANDS[0], run.parent)
    (run / "mig.parquet").write_bytes(b"abc")
    assert reference.compare(COMMANDS[0], run.parent) == []
    (run / "mig.parquet").write_bytes(b"abb")
    assert len(reference.compare(COMMANDS[0], run.parent)) == 2
    (run / "mig.parquet").write_bytes(b"abc")
    (run / "left").touch()
    assert any(line.startswith("mig/left") for line in reference.compare(COMMANDS[0], run.parent))


@pytest.mark.slow
def test_a_slice_of_the_campaign_does_no_harm(tmp_path: Path) -> None:
    trials = run_slice("tests.faults.campaign", TRIALS, 7, tmp_path / "trials.jsonl")
    assert {trial["fault"] for trial in trials} == {
        kind for kind in FAULTS if os.geteuid() == 0 or kind not in NEEDS_ROOT
    }
    assert {trial["verdict"] for trial in trials} <= set(VERDICTS) - set(HARM)
