"""The families of Hugging Face models on small random models: they learn, are saved and come
back.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from plant_backbones import FAMILIES, huggingface
from pydantic import ValidationError
from transformers import (
    BertConfig,
    DeepseekV3Config,
    LlamaConfig,
    MistralConfig,
    ModernBertConfig,
    Phi3Config,
    Qwen2Config,
)

from plant_cli.api import BackboneSpec, ComponentError, MachineSection
from plant_cli.registry import installed

BY_NAME = {family.name: family for family in FAMILIES}
DEEPSEEK = BY_NAME["deepseek"]
MAPS = {"q_proj", "k_proj", "v_proj", "o_proj"}
LATENT = {"q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"}
EXPERTS = {
    "moe_intermediate_size": 16,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
}
RANKS = {
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
SMALL = {**EXPERTS, **RANKS, "num_key_value_heads": 4, "first_k_dense_replace": 1}
MISTRAL = {"num_key_value_heads": 2, "head_dim": 8}
PHI3 = {"num_key_value_heads": 2, "pad_token_id": 0}
MODERNBERT = {"pad_token_id": 0, "local_attention": 16, "reference_compile": False}
CASES = [
    ("mistral", MistralConfig, MISTRAL, {}, MAPS),
    ("mistral", MistralConfig, MISTRAL, {"adapter": "dora"}, MAPS),
    ("mistral", MistralConfig, MISTRAL, {"quantization": "int8"}, MAPS),
    ("mistral", MistralConfig, MISTRAL, {"quantization": "none"}, MAPS),
    ("llama3", LlamaConfig, {"num_key_value_heads": 2}, {}, MAPS),
    ("deepseek", DeepseekV3Config, SMALL, {}, LATENT),
    (
        "deepseek",
        DeepseekV3Config,
        SMALL,
        {"quantization": "int8"},
        LATENT,
    ),  # products over four axes
    ("deepseek", Qwen2Config, {"num_key_value_heads": 2}, {}, MAPS),
    ("deepseek", LlamaConfig, {"num_key_value_heads": 2}, {}, MAPS),
    ("phi3", Phi3Config, PHI3, {}, {"qkv_proj", "o_proj"}),
    (
        "modernbert",
        ModernBertConfig,
        MODERNBERT,
        {"adapter": "lora", "quantization": "nf4"},
        {"Wqkv", "Wo"},
    ),
    (
        "modernbert",
        ModernBertConfig,
        MODERNBERT,
        {"adapter": "lora", "quantization": "none"},
        {"Wqkv", "Wo"},
    ),
    ("hf-encoder", BertConfig, {}, {"adapter": "lora"}, {"query", "key", "value", "dense"}),
    ("hf-causal", Phi3Config, PHI3, {"quantization": "none"}, {"qkv_proj", "o_proj"}),
]


@pytest.mark.parametrize(
    ("family", "config", "values", "options", "targets"),
    CASES,
    ids=lambda x: x if isinstance(x, str) else getattr(x, "__name__", ""),
)
def test_it_learns_is_saved_and_comes_back(
    small_model: Callable[..., Path],
    learns: Callable[..., set[str]],
    family: str,
    config: Any,
    values: dict[str, Any],
    options: dict[str, str],
    targets: set[str],
) -> None:
    assert learns(BY_NAME[family].spec(), small_model(config, **values), **options) == targets


def test_defaults_are_the_published_recipe_and_a_generic_family_asks_for_the_model() -> None:
    options = BY_NAME["mistral"].options()()
    assert (options.model, options.adapter, options.quantization) == (
        "mistralai/Mistral-7B-Instruct-v0.3",
        "lora",
        "nf4",
    )
    assert (
        options.lora_rank,
        options.lora_alpha,
        options.lora_dropout,
        options.gradient_checkpointing,
    ) == (16, 32.0, 0.05, None)
    options = BY_NAME["modernbert"].options()()
    assert (options.model, options.adapter, options.quantization) == (
        "answerdotai/ModernBERT-base",
        "full",
        "none",
    )
    for generic in ("hf-encoder", "hf-causal"):
        with pytest.raises(ValidationError, match="model"):
            BY_NAME[generic].options()()


def test_all_families_are_registered() -> None:
    assert {*BY_NAME, "minilm", "multilingual", "tiny"} <= {
        spec.name for spec in installed().specs(BackboneSpec)
    }


def test_experts_are_in_four_bits_too(small_model: Callable[..., Path]) -> None:
    folder = small_model(DeepseekV3Config, **SMALL)
    backbone: Any = DEEPSEEK.load(
        DEEPSEEK.options()(model=str(folder)), MachineSection(device="cpu")
    )
    parts = {name: p for name, p in backbone.module().named_parameters() if ".experts." in name}
    assert len(parts) == 2
    assert all(str(p.dtype) == "torch.uint8" for p in parts.values())


def test_weights_stored_in_fp8_are_not_quantised_again(small_model: Callable[..., Path]) -> None:
    folder = small_model(
        DeepseekV3Config,
        **SMALL,
        quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]},
    )
    with pytest.raises(ComponentError, match="stored in fp8") as caught:
        DEEPSEEK.load(DEEPSEEK.options()(model=str(folder)), MachineSection(device="cpu"))
    assert "bf16" in caught.value.todo


@pytest.mark.parametrize(
    "family", [family for family in FAMILIES if family.models], ids=lambda family: family.name
)
def test_published_models_have_names_and_a_pinned_commit(family: Any) -> None:
    first = next(iter(family.models.values()))
    assert family.options()().model == first.partition("@")[0]
    for name, published in family.models.items():
        model, revision = family.find(name)
        assert f"{model}@{revision}" == published
        assert len(revision or "") == 40


TOTALS = {  # parameters of the published weights, less the head over the vocabulary
    "7b-instruct": 7_248_023_552 - 32768 * 4096,
    "8b": 8_030_261_248 - 128256 * 4096,
    "r1-qwen-7b": 7_615_616_512 - 152064 * 3584,
    "r1-qwen-1.5b": 1_543_714_304,  # of Qwen 2.5, whose head is its embedding
    "r1-llama-8b": 8_030_261_248 - 128256 * 4096,
    "r1-qwen-14b": 14_770_033_664 - 152064 * 5120,
    "r1-qwen-32b": 32_763_876_352 - 152064 * 5120,
    "r1-llama-70b": 70_553_706_496 - 128256 * 8192,
    "mini-4k": 3_821_079_552 - 32064 * 3072,
    "mini-128k": 3_821_079_552 - 32064 * 3072,
}


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family in FAMILIES for name in family.shapes], ids=str
)
def test_shapes_of_published_models_are_known_without_a_hub(
    family: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface, "get_session", lambda: pytest.fail("the hub was asked"))
    with torch.device("meta"):
        backbone: Any = family.load(
            family.options()(model=name, quantization="none", adapter="none"), MachineSection()
        )
    assert sum(parameter.numel() for parameter in backbone.module().parameters()) == TOTALS[name]
    assert backbone.estimated
    assert (
        backbone.tokenize(["The patients had fever."]).ids[0].size == 6
    )  # The, pati, ents, had, feve, r.
