"""The presets of published systems train: two steps of each on a tiny backbone, from nothing and from planted attention."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.running.runner import print_config, run_stage

TINY = (
    "data.dataset={name: synthetic-clinic, documents: 60, labels: 12, seed: 3}",
    "model.backbone=tiny",
    *(f"model.backbone.{size}" for size in ("hidden=16", "heads=2", "layers=1", "buckets=512")),
    "machine.precision=fp32",
    "machine.device=cpu",
    "pretrain-attn.epochs=1",
    "finetune.epochs=1",
    "finetune.batch=24",
)
SMALL = {"laat": ("model.decoder.lstm=8", "model.decoder.inner=8"), "caml": ("model.decoder.filters=8",)}


@pytest.mark.parametrize("preset", ["caml", "laat", "plm-icd", "plm-ca"])
@pytest.mark.parametrize("init", ["random", "planted"])
def test_a_preset_trains_two_steps(preset: str, init: str, tmp_path: Path) -> None:
    sets = [*TINY, *SMALL.get(preset, ()), f"finetune.init={init}"]
    request = Request(registry=installed(), run_path=tmp_path / "run", recipe=preset, sets=sets, reporter=SilentReporter())
    for stage in ("mig", "pretrain-attn") if init == "planted" else ():
        run_stage(request, stage)
    result = run_stage(request, "finetune")
    record = json.loads((tmp_path / "run" / "finetune" / "stage.json").read_text())
    assert record["sections"]["model"]["decoder"]["name"] == preset
    assert record["options"]["loss"]["name"] == "bce"
    assert 0 <= result.summary["MAP"] <= 1
    assert result.summary["scorers"] == [], "a published system has no scorers"


SIZES = [("plm-icd", "window: 128"), ("caml", "filters: 50"), ("laat", "lstm: 512"), ("plm-ca", "batch: 16")]


@pytest.mark.parametrize(("preset", "said"), SIZES)
def test_a_preset_keeps_the_published_sizes(preset: str, said: str, tmp_path: Path) -> None:
    request = Request(registry=installed(), run_path=tmp_path / "run", recipe=preset, sets=["data.path=corpus"], reporter=SilentReporter())
    assert said in print_config(request, "finetune")
