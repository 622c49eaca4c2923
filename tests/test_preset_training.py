"""Each preset trains: relevance, both stages and figures, two steps of each on a small network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plant_cli.api import Request, SilentReporter
from plant_cli.base.files import read_json
from plant_cli.kit.profile import CausalOptions
from plant_cli.recipe.sources import load_recipe
from plant_cli.registry import installed
from plant_cli.running.runner import run_stage

SETS = (
    "data.dataset={name: synthetic-clinic, documents: 80, labels: 12, seed: 3}",
    "model.backbone={name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 512}",
    "model.decoder.pool=8",
    "machine.precision=fp32",
    "machine.device=cpu",
)
TWO_STEPS = ("epochs=1", "batch=32", "micro_batch=32")  # of the 64 documents that are not held out


class Preset:
    """Runs stages of a preset in one run folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.path, self.reporter = name, folder / name, SilentReporter()

    def run(self, stage: str, *sets: str) -> Any:
        more = [f"{stage}.{setting}" for setting in TWO_STEPS if stage in ("pretrain-attn", "finetune")]
        request = Request(registry=installed(), run_path=self.path, recipe=self.name, sets=[*SETS, *more, *sets], reporter=self.reporter)
        return run_stage(request, stage)


@pytest.fixture(params=["paper", "authors-code", "recommended"])
def preset(request: pytest.FixtureRequest, tmp_path: Path) -> Preset:
    return Preset(request.param, tmp_path)


def test_a_preset_trains_two_steps_of_both_stages_and_is_judged(preset: Preset) -> None:
    for stage in ("mig", "pretrain-attn", "finetune", "predict", "eval"):
        preset.run(stage)
    for stage in ("pretrain-attn", "finetune"):
        options = read_json(preset.path / stage / "stage.json", "the record")["options"]
        asked = {key: value for key, value in load_recipe(preset.name).layer.values[stage].items() if not isinstance(value, dict)}
        asked |= {key: {"name": value} for key, value in asked.items() if isinstance(options[key], dict) and isinstance(value, str)}
        if asked.pop("scorers", None) is not None:
            assert options["scorers"] == [], "a published system has no scorers beside the network"
        assert {key: options[key] for key in asked} == {**asked, **({"epochs": 1} if "epochs" in asked else {})}
    if preset.name == "paper":
        assert options["monitor"] == "macro-F1" == options["tune"]
    assert 0 <= read_json(preset.path / "eval" / "metrics.json", "the metrics")["metrics"]["P@5"]["value"] <= 1


def test_what_leaks_needs_a_flag_and_marks_every_figure(tmp_path: Path) -> None:
    run = Preset("authors-code", tmp_path)
    for stage in ("mig", "pretrain-attn", "finetune"):
        run.run(stage, "mig.allow_leakage=true")
    shown = run.run("eval")
    assert read_json(run.path / "eval" / "metrics.json", "the metrics")["leakage"] is True
    assert any("LEAKAGE" in note for table in shown.tables for note in table.notes)
    run.run("significance", "significance.systems=[finetune, predict]")
    for words in ("test documents are counted, too", "'predict' saw validation and test documents"):
        assert any(words in warning for warning in run.reporter.warnings)


def test_the_paper_reads_its_large_models_in_four_bits_with_adapters() -> None:
    """P2, appendix A: rank 16, alpha 32, dropout 0.05, NF4; the defaults of every causal backbone, which the preset leaves as they are."""
    options = CausalOptions(model="any")
    found = (options.adapter, options.lora_rank, options.lora_alpha, options.lora_dropout, options.quantization)
    assert found == ("lora", 16, 32, 0.05, "nf4")
    assert "backbone" not in load_recipe("paper").layer.values["model"]
