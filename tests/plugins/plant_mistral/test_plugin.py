"""The family `mistral` on a small random model."""

from collections.abc import Callable
from pathlib import Path

import pytest
from plant_mistral.plugin import MISTRAL
from transformers import MistralConfig


@pytest.mark.parametrize("options", [{}, {"adapter": "dora"}, {"quantization": "int8"}, {"quantization": "none"}], ids=str)
def test_it_learns_is_saved_and_comes_back(
    small_model: Callable[..., Path], learns: Callable[..., set[str]], options: dict[str, str]
) -> None:
    folder = small_model(MistralConfig, num_key_value_heads=2, head_dim=8)
    assert learns(MISTRAL.spec(), folder, **options) == {"q_proj", "k_proj", "v_proj", "o_proj"}


def test_the_default_is_the_published_recipe() -> None:
    options = MISTRAL.options()()
    assert (options.model, options.adapter, options.quantization) == ("mistralai/Mistral-7B-Instruct-v0.3", "lora", "nf4")
    assert (options.lora_rank, options.lora_alpha, options.lora_dropout, options.gradient_checkpointing) == (16, 32.0, 0.05, True)
