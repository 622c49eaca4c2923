"""The recipe `attribution` runs: all eight cells, scorers alone and the control, two steps each on a tiny backbone."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.recipes import load_recipe
from plant_cli.runs.runner import run_stage
from plant_cli.training.options import FinetuneOptions

SETS = (
    "data.dataset={name: synthetic-clinic, documents: 60, labels: 12, seed: 3}",
    "model.backbone=tiny",
    *(f"model.backbone.{size}" for size in ("hidden=16", "heads=2", "layers=1", "buckets=512")),
    "machine.precision=fp32",
    "machine.device=cpu",
    "pretrain-attn.epochs=1",
    "finetune.epochs=1",
    "finetune.batch=24",
    "eval.bootstrap=20",
    "significance.bootstrap=20",
    "significance.permutations=20",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the recipe."""
    path = tmp_path_factory.mktemp("attribution") / "run"
    flags = {"run": {"recipe": "attribution"}}
    run_stage(Request(registry=installed(), run_path=path, sets=SETS, flags=flags, reporter=SilentReporter()), "run")
    return path


def record(run: Path, folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / folder / "stage.json").read_text())
    return found


def test_every_system_is_measured_and_compared(run: Path) -> None:
    systems = load_recipe("attribution").values["significance"]["systems"]
    assert len(systems) == 2**3 + 2
    assert {path.parent.name for path in run.glob("finetune*/model.safetensors")} == {*systems} - {"finetune-scorers"}
    assert {path.parent.name for path in run.glob("eval*/metrics.json")} == {name.replace("finetune", "eval") for name in systems}
    assert record(run, "significance")["status"] == "done"


def test_the_cells_are_all_combinations_of_attention_prototypes_and_scorers(run: Path) -> None:
    systems = load_recipe("attribution").values["significance"]["systems"]
    options = [FinetuneOptions(**record(run, name)["options"]) for name in systems if name not in ("finetune-control", "finetune-scorers")]
    cells = {(given.init, given.plants_tables, len(given.chosen_scorers)) for given in options}
    assert cells == set(product(("planted", "random"), (True, False), (0, 4)))


def test_the_control_starts_from_attention_to_random_words(run: Path) -> None:
    """And from nothing else that is random."""
    assert record(run, "mig-control")["options"]["signal"]["name"] == "random"
    planted, control = (set(record(run, name)["inputs"]) for name in ("pretrain-attn", "pretrain-attn-control"))
    assert ("mig" in planted, "mig-control" in control, "mig" in control) == (True, True, False)
    inputs = set(record(run, "finetune-control")["inputs"])
    assert "pretrain-attn-control" in inputs
    assert "pretrain-attn" not in inputs
