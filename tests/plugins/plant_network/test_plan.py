"""`plant plan` on a run, on a recipe and on a model of seven billion parameters that has only a
configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import run_at
from plant_network import plan
from transformers import DeepseekV3Config, MistralConfig, ModernBertConfig, Phi3Config

from plant_cli.api import Result
from plant_cli.data.files import read_json

SEVEN = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 14336,
    "vocab_size": 32768,
}


@pytest.fixture
def seven(small_model: Callable[..., Path]) -> Path:
    """Mistral-7B-Instruct-v0.3 by its configuration and a small tokenizer; no weights."""
    folder = small_model(MistralConfig, num_key_value_heads=2)
    (folder / "model.safetensors").unlink()
    MistralConfig(**SEVEN, num_key_value_heads=8, max_position_embeddings=32768).save_pretrained(
        folder
    )
    return folder


def test_parameters_are_those_of_the_network(clinic: Any) -> None:
    from plant_backbones import TinyOptions
    from plant_backbones.tiny import TinyBackbone

    clinic("mig", "mig.k=5")
    before = sorted(clinic.path.rglob("*"))
    parts = {part.pop("name"): part for part in clinic("plan").data["finetune"]["parts"]}
    assert sorted(clinic.path.rglob("*")) == before, "nothing is written to the run"
    backbone = TinyBackbone(TinyOptions(hidden=16, heads=2, layers=1, buckets=512)).module()
    assert parts["backbone"]["parameters"] == sum(p.numel() for p in backbone.parameters())
    assert parts["label tables"] == {
        "parameters": 3 * 12 * 16,
        "trained": 3 * 12 * 16,
        "size": 4 * 3 * 12 * 16,
    }
    assert (
        parts["label attention"]["parameters"] == 4 * (16 * 16 + 16) + 2 * 16
    )  # four maps, one layer norm
    assert parts["head, shared by all labels"]["parameters"] == 8 + 12  # projection and biases


def test_a_run_that_does_not_exist_yet_is_planned_from_the_source(clinic: Any) -> None:
    result = clinic("plan")
    assert not clinic.path.exists()
    assert list(result.data) == [*plan.STAGES, "free_bytes"]
    assert all(result.data[name]["hours"] > 0 for name in plan.STAGES)


def plan_recipe(clinic: Any, tmp_path: Path, text: str) -> Result:
    (tmp_path / "recipe.yaml").write_text(text)
    sets = [given for given in clinic.sets if given.startswith(("data.", "model.", "machine."))]
    return run_at(
        clinic.path, "plan", *sets, flags={"plan": {"recipe": str(tmp_path / "recipe.yaml")}}
    )


def test_a_recipe_is_planned_with_its_own_steps(clinic: Any, tmp_path: Path) -> None:
    found = plan_recipe(
        clinic,
        tmp_path,
        "mig: {}\nfinetune: {epochs: 3}\nfinetune-baseline: {init: random, head: random, scorers: none}\n",
    ).data
    assert list(found) == ["mig", "finetune", "finetune-baseline", "free_bytes"]
    assert [found[name]["work"]["epochs"] for name in ("finetune", "finetune-baseline")] == [3, 3]


def test_predictions_of_a_network_are_planned_beside_a_model_without_one(
    clinic: Any, tmp_path: Path
) -> None:
    result = plan_recipe(
        clinic,
        tmp_path,
        "finetune: {init: random, head: random, scorers: none}\n"
        "finetune-a: {network: false, scorers: [words, titles, neighbours, linear]}\n"
        "predict: {}\npredict-a: {}\n",
    )
    assert list(result.data) == ["finetune", "finetune-a", "predict", "free_bytes"]
    notes = " ".join(result.tables[-1].notes)
    assert "scorers fitted on at most 1,000 documents" in notes


def test_epochs_of_stage_1_are_planned_by_its_lists_unless_they_are_given(
    clinic: Any, tmp_path: Path
) -> None:
    found = plan_recipe(
        clinic,
        tmp_path,
        "mig: {}\npretrain-attn: {}\npretrain-attn-random: {start: random}\npretrain-attn-4: "
        "{epochs: 4}\n",
    ).data
    names = ("pretrain-attn", "pretrain-attn-random", "pretrain-attn-4")
    assert [found[name]["work"]["epochs"] for name in names] == [2, 10, 4]


def test_words_alone_are_planned_without_a_network(clinic: Any, tmp_path: Path) -> None:
    clinic("mig", "mig.k=5")
    counted = read_json(clinic.path / "mig" / "stage.json", "the record")["summary"]
    result = plan_recipe(clinic, tmp_path, "mig: {k: 5}\n")
    found = result.data["mig"]
    assert [row[0] for row in result.tables[0].rows][:2] == [
        "memory: process and texts",
        "memory: counting",
    ]
    assert found["work"]["documents"] == counted["documents"]
    assert found["work"]["kept words"] == counted["kept"] == 12 * 5
    assert 0 < found["hours"] < 0.1


def test_scores_of_all_labels_take_disk(clinic: Any) -> None:
    test = 18  # of 120 documents
    assert clinic("plan", "predict.auc=true").data["predict"]["disk"]["result"] == test * 4 * 12


@pytest.mark.slow
def test_seven_billion_parameters_are_planned_without_weights(clinic: Any, seven: Path) -> None:
    backbone = f"model.backbone={{name: mistral, model: {seven}, max_tokens: 512}}"
    found = clinic("plan", backbone, "model.decoder=label-attention", "finetune.unfreeze=all").data[
        "finetune"
    ]
    parts = {part["name"]: part for part in found["parts"]}
    held = parts["backbone"]
    assert 7.10e9 < held["parameters"] < 7.12e9
    linear = held["parameters"] - 32768 * 4096 - 65 * 4096  # embedding and norms stay in fp32
    assert held["size"] == pytest.approx(0.5159 * linear + 4 * (32768 * 4096 + 65 * 4096), rel=1e-3)
    assert found["hours"] is None, "a step of such a network is not tried on a processor"
    ranks = 32 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024))  # q and o; k and v are narrower
    assert parts["adapter"]["parameters"] == parts["adapter"]["trained"] == ranks


EXPERTS = {
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
}
LATENT = {
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config", "values"),
    [
        (
            "deepseek",
            DeepseekV3Config,
            {**EXPERTS, **LATENT, "num_key_value_heads": 4, "first_k_dense_replace": 1},
        ),
        ("phi3", Phi3Config, {"pad_token_id": 0, "num_key_value_heads": 2}),
        ("modernbert", ModernBertConfig, {"pad_token_id": 0}),
    ],
)
def test_every_kind_of_architecture_can_be_tried_with_made_up_weights(
    clinic: Any, small_model: Callable[..., Path], name: str, config: Any, values: dict[str, int]
) -> None:
    backbone = (
        f"model.backbone={{name: {name}, model: {small_model(config, **values)}, max_tokens: 16}}"
    )
    found = clinic("plan", backbone, "finetune.unfreeze=all").data["finetune"]
    assert found["memory"]["activations"] > 0
    assert found["work"]["operations"] > 0


def test_what_does_not_fit_is_reported_with_the_micro_batch_that_does(
    clinic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = clinic("plan", "finetune.micro_batch=8").data["finetune"]
    assert first["micro_batch"] == 8
    monkeypatch.setattr(
        "plant_network.planning.resident_memory", lambda: first["memory"]["process and texts"]
    )
    monkeypatch.setattr("plant_network.plan.free_memory", lambda hardware: first["peak_bytes"] - 1)
    result = clinic("plan", "finetune.micro_batch=8")
    assert 0 < result.data["finetune"]["micro_batch"] < 8
    assert any("finetune does not fit: --micro-batch " in note for note in result.tables[-1].notes)
