"""What schedulers, notebooks and shells leave in the environment neither silences nor breaks a
command.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState
from builders import run_plant


@pytest.mark.parametrize(
    "left_behind",
    [{"RANK": "5"}, {"RANK": "1", "WORLD_SIZE": "1"}, {"RANK": "x", "LOCAL_RANK": "y"}],
)
def test_a_process_on_its_own_does_its_work(tmp_path: Path, left_behind: dict[str, str]) -> None:
    made = run_plant(
        tmp_path,
        "mig",
        "--dataset",
        "synthetic-clinic",
        "--set",
        "data.dataset.documents=60",
        **left_behind,
    )
    assert made.returncode == 0, made.stderr
    assert "plant-run" in os.listdir(tmp_path)
    assert made.stdout


@pytest.mark.parametrize(
    "left_behind",
    [
        {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"},
        {"PMI_SIZE": "2", "PMI_RANK": "1"},
        {"WORLD_SIZE": "2", "LOCAL_RANK": "1"},
        {"ACCELERATE_USE_DEEPSPEED": "true"},
    ],
)
def test_training_in_a_process_on_its_own(
    clinic: Any, monkeypatch: pytest.MonkeyPatch, left_behind: dict[str, str]
) -> None:
    for name, value in left_behind.items():
        monkeypatch.setenv(name, value)
    AcceleratorState._reset_state(reset_partial_state=True)  # one command reads the variables once
    clinic("finetune", "finetune.init=random", "finetune.head=random", "finetune.scorers=none")
    assert (clinic.path / "finetune" / "model.safetensors").exists()
    assert {name: os.environ[name] for name in left_behind} == left_behind


def test_a_launcher_that_makes_no_sense_is_told(tmp_path: Path) -> None:
    launched = {"RANK": "x", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    told = run_plant(tmp_path, "data", "stats", "x.csv", **launched)
    assert (told.returncode, told.stderr.splitlines()[0]) == (
        2,
        "error: the launcher says RANK = 'x'",
    )
