"""Each preset trains: relevance, both stages and figures, two steps of each on a small network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import MistralConfig

from plant_cli.api import Request, SilentReporter
from plant_cli.data.files import read_json
from plant_cli.network.profile import CausalOptions
from plant_cli.registry import installed
from plant_cli.runs.recipes import load_recipe
from plant_cli.runs.runner import run_stage

SETS = (
    "data.dataset={name: synthetic-clinic, documents: 80, labels: 12, seed: 3}",
    "model.backbone={name: tiny, hidden: 16, heads: 2, layers: 1, buckets: 512}",
    "model.decoder.pool=8",
    "machine.precision=fp32",
    "machine.device=cpu",
)
TWO_STEPS = {"epochs": 1, "batch": 32, "micro_batch": 32}  # of the 64 documents that are not held out
CAUSAL = {"num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512}
FIRST_VERSION = (
    "model.backbone={name: awd-lstm, window: 72, max_tokens: 144}",
    *("model.decoder.ranker_size=8", "model.decoder.ranker_hidden=8"),
    *(
        "pretrain-lm.embedding=16",
        "pretrain-lm.hidden=24",
        "pretrain-lm.layers=2",
        "pretrain-lm.epochs=1",
        "pretrain-lm.directions=forward",
    ),
)


class Preset:
    """Runs stages of a preset in one run folder."""

    def __init__(self, name: str, folder: Path, sets: Sequence[str] = SETS) -> None:
        self.name, self.path, self.sets, self.reporter = name, folder / name, sets, SilentReporter()

    def run(self, stage: str, *sets: str) -> Any:
        more = [f"{stage}.{key}={value}" for key, value in TWO_STEPS.items() if stage in ("pretrain-attn", "finetune")]
        request = Request(
            registry=installed(), run_path=self.path, recipe=self.name, sets=[*self.sets, *more, *sets], reporter=self.reporter
        )
        return run_stage(request, stage)


@pytest.fixture(params=["paper", "authors-code", "recommended"])
def preset(request: pytest.FixtureRequest, tmp_path: Path) -> Preset:
    return Preset(request.param, tmp_path)


def test_a_preset_trains_two_steps_of_both_stages_and_is_judged(preset: Preset) -> None:
    for stage in ("mig", "pretrain-attn", "finetune", "predict", "eval"):
        preset.run(stage)
    for stage in ("pretrain-attn", "finetune"):
        options = read_json(preset.path / stage / "stage.json", "the record")["options"]
        asked = {key: value for key, value in load_recipe(preset.name).values[stage].items() if not isinstance(value, dict)}
        asked |= {key: {"name": value} for key, value in asked.items() if isinstance(options[key], dict) and isinstance(value, str)}
        if asked.pop("scorers", None) is not None:
            assert options["scorers"] == [], "a published system has no scorers beside the network"
        assert {key: options[key] for key in asked} == {**asked, **{key: value for key, value in TWO_STEPS.items() if key in asked}}
    if preset.name == "paper":
        assert options["monitor"] == "macro-F1" == options["tune"]
    assert 0 <= read_json(preset.path / "eval" / "metrics.json", "the metrics")["metrics"]["P@5"]["value"] <= 1


def test_the_first_version_trains_two_steps_of_both_stages(tmp_path: Path) -> None:
    run = Preset("paper-v1", tmp_path, [*(setting for setting in SETS if not setting.startswith("model.")), *FIRST_VERSION])
    for stage in ("pretrain-lm", "mig", "pretrain-attn", "finetune"):
        result = run.run(stage)
    record = read_json(run.path / "finetune" / "stage.json", "the record")
    assert record["sections"]["model"]["decoder"]["name"] == "planted-l2r"
    assert (record["options"]["scorers"], record["options"]["prototypes"]) == ([], False)
    assert 0 <= result.summary["P@5"] <= 1


def test_the_paper_trains_two_steps_on_a_causal_model_in_four_bits_with_adapters(small_model: Callable[..., Path], tmp_path: Path) -> None:
    folder = small_model(MistralConfig, **CAUSAL)
    named = f"model.backbone={{name: mistral, model: '{folder}', max_tokens: 48}}"
    run = Preset("paper", tmp_path, [*(setting for setting in SETS if "backbone" not in setting), named])
    run.run("mig", "mig.min_df=1")
    for stage in ("pretrain-attn", "finetune"):
        run.run(stage)
        assert (run.path / stage / "adapter" / "adapter_model.safetensors").exists(), "what is trained of the backbone is the adapter"
    assert read_json(run.path / "finetune" / "stage.json", "the record")["sections"]["model"]["backbone"]["quantization"] == "nf4"


@pytest.mark.parametrize("name", ["paper", "authors-code", "paper-v1"])
def test_a_literal_preset_counts_words_as_they_stand(name: str) -> None:
    assert load_recipe(name).values["data"]["analyser"] == "none"


@pytest.mark.parametrize("stage", ["pretrain-attn", "finetune"])
def test_what_is_published_stands_in_the_preset_and_not_in_a_default(stage: str) -> None:
    paper, code = (load_recipe(name).values for name in ("paper", "authors-code"))
    published = {"batch": 32, "weight_decay": 0.01, "clip": 1.0, "warmup": 0, "epochs": 10, "patience": 2}
    assert {key: paper[stage][key] for key in published} == published
    assert paper["model"]["label_queries"] == "random"
    assert code[stage]["batch"] == 8
    assert code["pretrain-attn"]["loss"]["gain"] == "linear"


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
    assert "backbone" not in load_recipe("paper").values["model"]
