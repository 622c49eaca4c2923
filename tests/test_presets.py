"""The presets of published systems: attention is planted better than chance, stage 2 takes two steps, values are those of their sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from safetensors.torch import load_file

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.runs.runner import print_config, run_stage

TINY = (
    "data.dataset={name: synthetic-clinic, documents: 60, labels: 12, seed: 3}",
    "model.backbone=tiny",
    *(f"model.backbone.{size}" for size in ("hidden=16", "heads=2", "layers=1", "buckets=512")),
    "machine.precision=fp32",
    "machine.device=cpu",
    *(f"pretrain-attn.{setting}" for setting in ("epochs=6", "batch=8", "rate_attention=0.1")),  # enough to learn the words' order
    "finetune.epochs=1",
    "finetune.batch=24",
)
SMALL = {"laat": ("model.decoder.lstm=8", "model.decoder.inner=8"), "caml": ("model.decoder.filters=16",)}


def make_request(preset: str, folder: Path, *sets: str) -> Request:
    return Request(registry=installed(), run_path=folder / "run", recipe=preset, sets=sets, reporter=SilentReporter())


def require_ranking(figures: dict[str, Any]) -> None:
    """Stage 1 orders words better than chance, on validation."""
    name = next(name for name in figures if name.startswith("nDCG"))
    assert figures[name] > figures[f"random {name}"] + 0.05, figures


@pytest.mark.parametrize("preset", ["caml", "laat", "plm-icd", "plm-ca"])
@pytest.mark.parametrize("init", ["random", "planted"])
def test_a_preset_trains_two_steps(preset: str, init: str, tmp_path: Path) -> None:
    request = make_request(preset, tmp_path, *TINY, *SMALL.get(preset, ()), f"finetune.init={init}")
    if init == "planted":
        run_stage(request, "mig")
        require_ranking(run_stage(request, "pretrain-attn").summary)
    result = run_stage(request, "finetune")
    record = json.loads((tmp_path / "run" / "finetune" / "stage.json").read_text())
    assert record["sections"]["model"]["decoder"]["name"] == preset
    assert record["options"]["loss"]["name"] == "bce"
    assert 0 <= result.summary["MAP"] <= 1
    assert result.summary["scorers"] == [], "a published system has no scorers"


def test_two_levels_are_the_parents_of_the_table_from_planting_to_predictions(tmp_path: Path) -> None:
    decoder = "model.decoder={name: joint-laat, lstm: 8, inner: 8, context: 4}"
    request = make_request("laat", tmp_path, *TINY, decoder, "finetune.init=planted")
    run_stage(request, "mig")
    require_ranking(run_stage(request, "pretrain-attn").summary)
    run_stage(request, "finetune")
    run_stage(request, "predict")
    run = tmp_path / "run"
    parents = pl.read_parquet(run / "corpus" / "labels.parquet")["parents"]
    shared = load_file(run / "finetune" / "model.safetensors")["to_context.weight"]
    assert tuple(shared.shape) == (4, parents.list.first().n_unique())
    assert parents.list.first().n_unique() < len(parents)
    scores = pl.read_parquet(run / "predict" / "predictions.parquet")["scores"].explode()
    assert scores.is_between(0, 1).all()


RATES = ("rate_attention", "rate_boost", "rate_head", "rate_backbone")
PLANTLESS = {"init": "random", "prototypes": False, "scorers": [], "loss.name": "bce", "unfreeze": "all"}
PUBLISHED: dict[str, dict[str, dict[str, Any]]] = {
    "caml": {  # Mullenbach et al. 2018, the 50 most frequent codes
        "model": {"decoder.name": "caml", "decoder.filters": 50, "decoder.width": 10, "decoder.dropout": 0.2, "backbone.max_tokens": 2500},
        "finetune": PLANTLESS
        | dict.fromkeys(RATES, 1e-4)
        | {"batch": 16, "epochs": 200, "patience": 10, "monitor": "P@5", "weight_decay": 0.0, "warmup": 0.0},
    },
    "laat": {  # Vu et al. 2020
        "model": {"decoder.name": "laat", "decoder.lstm": 512, "decoder.inner": 512, "decoder.dropout": 0.3, "backbone.max_tokens": 4000},
        "finetune": PLANTLESS | dict.fromkeys(RATES, 1e-3) | {"batch": 8, "epochs": 50, "patience": 6, "warmup": 0.0},
    },
    "plm-icd": {  # Huang et al. 2022
        "model": {"decoder.name": "plm-icd", "backbone.window": 128, "backbone.overlap": 0, "backbone.max_tokens": 3072},
        "finetune": PLANTLESS | dict.fromkeys(RATES, 5e-5) | {"batch": 8, "epochs": 20, "weight_decay": 0.0, "warmup": 0.02},
    },
    "plm-ca": {  # Edin et al. 2024
        "model": {"decoder.name": "plm-ca", "backbone.window": 128, "backbone.overlap": 0, "backbone.max_tokens": 6000},
        "finetune": PLANTLESS
        | dict.fromkeys(RATES, 5e-5)
        | {"batch": 16, "epochs": 20, "monitor": "MAP", "weight_decay": 0.0, "warmup": 0.02, "clip": 1.0},
    },
    "paper-v1": {  # the paper, and its code where the paper is silent
        "pretrain-lm": {"embedding": 400, "hidden": 1152, "layers": 3, "window": 72},
        "mig": {"sign": "any", "norm": "none", "signal.name": "mig"},
        "pretrain-attn": {"loss.name": "lambda", "loss.sigma": 0.5, "loss.k": 15, "ndcg_k": 15, "contrast": -1, "labels_per_document": -1},
        "model": {
            **{f"backbone.{name}": value for name, value in {"name": "awd-lstm", "window": 72, "max_tokens": None}.items()},
            **{f"decoder.{part}": True for part in ("learned", "static", "differentiable", "boost", "state")},
            **{f"decoder.{name}": value for name, value in {"name": "planted-l2r", "static_k": 5, "static_rows": "raw"}.items()},
            **{f"decoder.{name}": value for name, value in {"combine": "sum", "ranker": "network", "window": 72}.items()},
        },
        "finetune": {
            "init": "planted",
            "prototypes": False,
            "scorers": [],
            "loss.name": "bce",
            "unfreeze": "gradual",
            "batch": 16,
            "rate_head": 1e-2,
            "rate_attention": 5e-3,
            "attention_factor": 1.0,
            "layer_rates": "harmonic",
        },
    },
}
CASES = [(preset, section) for preset, sections in PUBLISHED.items() for section in sections]


@pytest.mark.parametrize(("preset", "section"), CASES)
def test_a_preset_keeps_the_published_values(preset: str, section: str, tmp_path: Path) -> None:
    stage = "finetune" if section == "model" else section
    shown = yaml.safe_load(print_config(make_request(preset, tmp_path, "data.path=corpus"), stage))[section]
    nested = {f"{key}.{name}": found for key, value in shown.items() if isinstance(value, dict) for name, found in value.items()}
    wanted = PUBLISHED[preset][section]
    assert {name: {**shown, **nested}.get(name, "lacking") for name in wanted} == wanted
