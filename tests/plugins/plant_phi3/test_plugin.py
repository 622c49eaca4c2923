"""The family `phi3` on a small random model."""

from collections.abc import Callable
from pathlib import Path

from plant_phi3.plugin import PHI3
from transformers import Phi3Config


def test_it_learns_in_four_bits_is_saved_and_comes_back(small_model: Callable[..., Path], learns: Callable[..., set[str]]) -> None:
    folder = small_model(Phi3Config, num_key_value_heads=2, pad_token_id=0)
    assert learns(PHI3.spec(), folder) == {"qkv_proj", "o_proj"}


def test_the_long_one_has_a_name() -> None:
    found, revision = PHI3.find("mini-128k")
    assert found == "microsoft/Phi-3-mini-128k-instruct"
    assert revision
