"""The family `deepseek`: its own architecture, and those of the models distilled from it, on small random models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plant_deepseek.plugin import DEEPSEEK
from transformers import DeepseekV3Config, LlamaConfig, Qwen2Config

from plant_cli.api import ComponentError, MachineSection

LATENT = {"q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"}
EXPERTS = {"moe_intermediate_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
RANKS = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
SMALL = {**EXPERTS, **RANKS, "num_key_value_heads": 4, "first_k_dense_replace": 1}


@pytest.mark.parametrize(
    ("config", "values", "targets"),
    [
        (DeepseekV3Config, SMALL, LATENT),
        (Qwen2Config, {"num_key_value_heads": 2}, {"q_proj", "k_proj", "v_proj", "o_proj"}),
        (LlamaConfig, {"num_key_value_heads": 2}, {"q_proj", "k_proj", "v_proj", "o_proj"}),
    ],
    ids=["v3", "distilled-qwen", "distilled-llama"],
)
def test_it_learns_in_four_bits_is_saved_and_comes_back(
    small_model: Callable[..., Path], learns: Callable[..., set[str]], config: Any, values: dict[str, int], targets: set[str]
) -> None:
    assert learns(DEEPSEEK.spec(), small_model(config, **values)) == targets


def test_it_learns_in_eight_bits(small_model: Callable[..., Path], learns: Callable[..., set[str]]) -> None:
    """Latent attention has products over four axes, which bitsandbytes alone does not take on a processor."""
    assert learns(DEEPSEEK.spec(), small_model(DeepseekV3Config, **SMALL), quantization="int8") == LATENT


def test_experts_are_in_four_bits_too(small_model: Callable[..., Path]) -> None:
    folder = small_model(DeepseekV3Config, **SMALL)
    backbone: Any = DEEPSEEK.load(DEEPSEEK.options()(model=str(folder)), MachineSection(device="cpu"))
    parts = {name: p for name, p in backbone.module().named_parameters() if ".experts." in name}
    assert len(parts) == 2
    assert all(str(p.dtype) == "torch.uint8" for p in parts.values())


def test_weights_stored_in_fp8_are_not_quantised_again(small_model: Callable[..., Path]) -> None:
    folder = small_model(DeepseekV3Config, **SMALL, quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
    with pytest.raises(ComponentError, match="stored in fp8") as caught:
        DEEPSEEK.load(DEEPSEEK.options()(model=str(folder)), MachineSection(device="cpu"))
    assert "bf16" in caught.value.todo


def test_distilled_models_have_names_and_a_pinned_commit() -> None:
    """The default is one that its default quantisation can take: V3 is stored in fp8."""
    assert DEEPSEEK.options()().model == "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"
    assert DEEPSEEK.find("v3")[0] == "deepseek-ai/DeepSeek-V3"
    for name, published in DEEPSEEK.models.items():
        found, revision = DEEPSEEK.find(name)
        assert f"{found}@{revision}" == published
        assert len(revision or "") == 40
