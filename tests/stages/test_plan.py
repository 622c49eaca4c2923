"""`plant plan` on a run, on a recipe and on a model of seven billion parameters of which there is only the configuration."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import DeepseekV3Config, MistralConfig, ModernBertConfig, Phi3Config

from plant_cli.api import RecipeError, Request, Result, SilentReporter
from plant_cli.base.files import read_json
from plant_cli.registry import installed
from plant_cli.running.runner import run_stage
from plant_cli.stages import plan

SEVEN = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 14336, "vocab_size": 32768}


@pytest.fixture
def seven(small_model: Callable[..., Path]) -> Path:
    """Mistral-7B-Instruct-v0.3 by its configuration and a small tokenizer; no weights."""
    folder = small_model(MistralConfig, num_key_value_heads=2)
    (folder / "model.safetensors").unlink()
    MistralConfig(**SEVEN, num_key_value_heads=8, max_position_embeddings=32768).save_pretrained(folder)
    return folder


def table(result: Result, number: int) -> dict[str, list[Any]]:
    return {str(row[0]): list(row[1:]) for row in result.tables[number].rows}


def test_parameters_are_those_of_the_network(clinic: Any) -> None:
    from plant_tiny.network import TinyBackbone
    from plant_tiny.plugin import TinyOptions

    clinic("mig", "mig.k=5")
    parts = clinic("plan").data["finetune"]["parameters"]
    backbone = TinyBackbone(TinyOptions(hidden=16, heads=2, layers=1, buckets=512)).module()
    assert parts["backbone"]["parameters"] == sum(p.numel() for p in backbone.parameters())
    assert parts["label tables"] == {"parameters": 3 * 12 * 16, "trainable": 3 * 12 * 16, "bytes": 4 * 3 * 12 * 16}
    assert parts["label attention"]["parameters"] == 4 * (16 * 16 + 16) + 2 * 16  # four maps, one layer norm
    assert parts["head, shared by all labels"]["parameters"] == 8 + 12  # projection and biases


def test_nothing_is_written_to_the_run(clinic: Any) -> None:
    clinic("mig", "mig.k=5")
    before = sorted(clinic.path.rglob("*"))
    clinic("plan")
    assert sorted(clinic.path.rglob("*")) == before


def test_a_run_that_does_not_exist_yet_is_planned_from_the_source(clinic: Any) -> None:
    result = clinic("plan")
    assert not clinic.path.exists()
    assert list(result.data) == [*plan.STAGES, "free_bytes", "processes"]
    assert any("not measured" in note for note in result.tables[-1].notes)
    assert result.data["finetune"]["hours"] > 0


def plan_recipe(clinic: Any, tmp_path: Path, text: str) -> Result:
    (tmp_path / "recipe.yaml").write_text(text)
    sets = [given for given in clinic.sets if given.startswith(("data.", "model.", "machine."))]
    flags = {"plan": {"recipe": str(tmp_path / "recipe.yaml")}}
    return run_stage(Request(registry=installed(), run_path=clinic.path, sets=sets, flags=flags, reporter=SilentReporter()), "plan")


def test_a_recipe_is_planned_with_its_own_steps(clinic: Any, tmp_path: Path) -> None:
    found = plan_recipe(clinic, tmp_path, "mig: {}\nfinetune: {epochs: 3}\nfinetune-baseline: {init: random}\n").data
    assert list(found) == ["mig", "finetune", "finetune-baseline", "free_bytes", "processes"]
    assert (found["finetune"]["epochs"], found["finetune-baseline"]["epochs"]) == (3, 3)
    assert found["finetune"]["memory_bytes"]["planting"] > found["finetune-baseline"]["memory_bytes"]["planting"] == 0


def test_a_recipe_that_holds_nothing_to_plan_is_refused(clinic: Any, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="nothing to plan"):
        plan_recipe(clinic, tmp_path, "eval: {}\n")


def test_words_alone_are_planned_without_a_network(clinic: Any, tmp_path: Path) -> None:
    clinic("mig", "mig.k=5")
    counted = read_json(clinic.path / "mig" / "stage.json", "the record")["summary"]
    result = plan_recipe(clinic, tmp_path, "mig: {k: 5}\n")
    found = result.data["mig"]
    assert [table.title.split(":")[0] for table in result.tables] == ["Relevance", "Work"]
    assert (found["documents"], found["words"]) == (counted["documents"], counted["words"])
    assert found["kept"] == counted["kept"] == 12 * 5
    assert 0 < found["hours"] < 0.1


def test_disk_of_predictions_follows_what_is_kept(clinic: Any) -> None:
    test = 18  # of 120 documents
    found = {
        text: clinic("plan", *text.split()).data["predict"]["disk_bytes"]["written"] for text in ("", "predict.top_k=5 predict.auc=true")
    }
    assert list(found.values()) == [test * 12 * 12, test * (12 * 5 + 4 * 12)]


def test_a_launch_file_is_planned_and_nothing_is_started(clinic: Any, tmp_path: Path) -> None:
    file = tmp_path / "eight.yaml"
    file.write_text("num_processes: 8\nnum_machines: 2\ndistributed_type: FSDP\n")
    sets = ("finetune.unfreeze=all", "finetune.batch=64", "finetune.micro_batch=4", f"plan.launch={file}")
    alone, shared = clinic("plan", *sets[:-1]), clinic("plan", *sets)
    before, after = (result.data["finetune"]["memory_bytes"] for result in (alone, shared))
    assert after["weights"] == math.ceil(before["weights"] / 8)
    assert before["gathered"] == 0 < after["gathered"] == 2 * before["weights"]  # with gradients: this backbone has no blocks of a name
    peaks = shared.data["finetune"]["peak_bytes"]
    assert peaks["whole"] == peaks["alone"] == before["peak"]
    assert peaks["spread"] == after["peak"]
    titles = [table.title for table in shared.tables]
    assert "Each of 8 processes on 2 machines" in titles
    assert titles[2].startswith("Memory of each of 8 processes")
    assert shared.data["mig"]["memory_bytes"]["counting"] < alone.data["mig"]["memory_bytes"]["counting"]


def test_stages_that_leave_processes_idle_are_named(clinic: Any, tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("num_processes: 2\nuse_cpu: true\n")
    result = clinic("plan", "finetune.batch=8", "finetune.micro_batch=8", "pretrain-attn.micro_batch=8", f"plan.launch={file}")
    notes = next(table.notes for table in result.tables if table.title == "Each of 2 processes")
    assert any("2 processes on one machine share its cores" in note for note in notes)
    assert notes[-1].endswith("gives each process work in every step: finetune")
    assert result.data["finetune"]["hours"] > 0


def test_twenty_steps_are_measured_when_asked(clinic: Any) -> None:
    result = clinic("plan", "plan.probe=true")
    assert any("measured: 20 steps" in note for note in result.tables[-1].notes)
    assert any("500 labels was scored" in note for note in result.tables[-1].notes)
    assert result.data["predict"]["hours"] > 0


@pytest.mark.slow
def test_seven_billion_parameters_are_planned_in_seconds_without_weights(clinic: Any, seven: Path) -> None:
    started = time.process_time()
    backbone = f"model.backbone={{name: mistral, model: {seven}, max_tokens: 512}}"
    found = clinic("plan", backbone, "model.decoder=label-attention", "finetune.unfreeze=all").data["finetune"]
    assert time.process_time() - started < 120  # far less where the machine is not shared
    held = found["parameters"]["backbone"]
    assert 7.10e9 < held["parameters"] < 7.12e9
    linear = held["parameters"] - 32768 * 4096 - 65 * 4096  # embedding and norms stay in fp32
    assert held["bytes"] == pytest.approx(0.5159 * linear + 4 * (32768 * 4096 + 65 * 4096), rel=1e-3)
    ranks = 32 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024))  # q and o; k and v are narrower
    assert found["parameters"]["adapter"]["parameters"] == found["parameters"]["adapter"]["trainable"] == ranks


EXPERTS = {"moe_intermediate_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
LATENT = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config", "values"),
    [
        ("deepseek", DeepseekV3Config, {**EXPERTS, **LATENT, "num_key_value_heads": 4, "first_k_dense_replace": 1}),
        ("phi3", Phi3Config, {"pad_token_id": 0, "num_key_value_heads": 2}),
        ("modernbert", ModernBertConfig, {"pad_token_id": 0}),
    ],
)
def test_every_kind_of_architecture_can_be_followed_on_shapes(
    clinic: Any, small_model: Callable[..., Path], name: str, config: Any, values: dict[str, int]
) -> None:
    backbone = f"model.backbone={{name: {name}, model: {small_model(config, **values)}, max_tokens: 16}}"
    found = clinic("plan", backbone, "finetune.unfreeze=all").data["finetune"]
    assert found["memory_bytes"]["activations"] > 0
    assert found["operations"]["epoch"] > 0


def test_what_does_not_fit_is_told_with_the_knobs_that_help(clinic: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clinic("mig", "mig.k=5")
    first = clinic("plan").data["finetune"]["memory_bytes"]["peak"]
    monkeypatch.setattr(plan, "_free_memory", lambda hardware, sharing: first // 2)
    result = clinic("plan")
    changes = result.data["finetune"]["changes"]
    assert changes[0]["knob"].startswith("--micro-batch ")
    assert changes[-1]["peak"] < first
    assert any("finetune does not fit: --micro-batch" in note for table in result.tables for note in table.notes)
