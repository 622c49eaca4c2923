"""The family `modernbert` on a small random model."""

from collections.abc import Callable
from pathlib import Path

import pytest
from plant_modernbert.plugin import MODERNBERT
from transformers import ModernBertConfig


@pytest.mark.parametrize("quantization", ["nf4", "none"])
def test_it_learns_is_saved_and_comes_back(small_model: Callable[..., Path], learns: Callable[..., set[str]], quantization: str) -> None:
    folder = small_model(ModernBertConfig, pad_token_id=0, local_attention=16, reference_compile=False)
    assert learns(MODERNBERT.spec(), folder, adapter="lora", quantization=quantization) == {"Wqkv", "Wo"}


def test_it_is_trained_whole_unless_asked() -> None:
    options = MODERNBERT.options()()
    assert (options.model, options.adapter, options.quantization) == ("answerdotai/ModernBERT-base", "full", "none")
