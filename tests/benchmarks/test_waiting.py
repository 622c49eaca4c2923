"""The script of the waiting benchmark: ways of waiting reach the stages, and competing processes end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import waiting


def test_competing_processes_end_with_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    start = subprocess.Popen
    monkeypatch.setattr(waiting.subprocess, "Popen", lambda *given: started.append(start(*given)) or started[-1])
    with waiting.competing(2):
        assert [process.poll() for process in started] == [None, None]
    assert all(process.poll() is not None for process in started)


def test_figures_are_medians_and_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([3.0, 1.0, 2.0])

    def pretend(options: Any, way: str) -> dict[str, float]:
        seconds = next(times)
        return dict.fromkeys(waiting.STAGES, seconds)

    monkeypatch.setattr(waiting, "time_stages", pretend)
    waiting.main(["--way", "passive", "--beside", "0", "--json", str(tmp_path / "found.json")])
    (row,) = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert row["seconds"]["finetune"] == 2.0
    assert row["environment"] == {"OMP_WAIT_POLICY": "PASSIVE"}


@pytest.mark.slow
def test_the_command_runs(tmp_path: Path) -> None:
    corpus = tmp_path / "data.parquet"
    command = [
        sys.executable,
        "-m",
        "plant_cli",
        "data",
        "make",
        "synthetic-clinic",
        "--documents",
        "60",
        "--labels",
        "8",
        "-O",
        str(corpus),
    ]
    subprocess.run(command, check=True, capture_output=True)
    given = ["--backbone", "tiny", "--corpus", str(corpus), "--way", "spins 1000", "--beside", "0", "--repeats", "1"]
    waiting.main([*given, "--json", str(tmp_path / "found.json")])
    (row,) = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert all(seconds > 0 for seconds in row["seconds"].values())
