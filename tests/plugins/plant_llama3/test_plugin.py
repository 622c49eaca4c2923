"""The family `llama3` on a small random model."""

from collections.abc import Callable
from pathlib import Path

from plant_llama3.plugin import LLAMA3
from transformers import LlamaConfig


def test_it_learns_in_four_bits_is_saved_and_comes_back(small_model: Callable[..., Path], learns: Callable[..., set[str]]) -> None:
    folder = small_model(LlamaConfig, num_key_value_heads=2)
    assert learns(LLAMA3.spec(), folder) == {"q_proj", "k_proj", "v_proj", "o_proj"}
