"""The small clinic of `tests.laboratory`, trained long enough to be interrupted."""

from __future__ import annotations

import json
import os
import signal
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from plant_cli.api import SilentReporter

LONGER = (
    "pretrain-attn.epochs=2",
    "finetune.epochs=3",
    "finetune.loss={name: focal-hnm, hard_negatives: 4, random_negatives: 2}",
)


class Clinic:
    """The small clinic of `conftest.py` in a run folder of its own, trained long enough to be
    interrupted.
    """

    def __init__(self, clinic: Any, path: Path) -> None:
        self.fixture, self.path = clinic, path

    def run(self, name: str, *sets: str, **request: Any) -> Any:
        self.fixture.path = self.path
        return self.fixture(name, *LONGER, *sets, **request)

    def planted(self) -> Clinic:
        self.run("mig")
        self.run("pretrain-attn")
        return self

    def record(self, name: str) -> dict[str, Any]:
        return json.loads((self.path / name / "stage.json").read_text())


@pytest.fixture
def trained(clinic: Any, tmp_path: Path) -> Clinic:
    return Clinic(clinic, tmp_path / "run")


class Interrupting(SilentReporter):
    """Sends Ctrl-C to this process after a number of progress steps in bars whose name begins
    as given.
    """

    def __init__(self, begins: str, after: int) -> None:
        super().__init__()
        self.begins, self.left = begins, after

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Any:
        yield self if description.startswith(self.begins) else _Nothing()

    def advance(self, amount: float = 1, **figures: float) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


class _Nothing:
    def advance(self, amount: float = 1, **figures: float) -> None:
        return None


def weights(trained: Clinic, stage: str) -> dict[str, torch.Tensor]:
    found = load_file(trained.path / stage / "model.safetensors")
    backbone = trained.path / stage / "backbone.safetensors"
    return {
        **found,
        **(
            {f"backbone.{n}": t for n, t in load_file(backbone).items()}
            if backbone.exists()
            else {}
        ),
    }
