"""The two generic backbones: any model, which must be named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from plant_huggingface.plugin import CAUSAL, ENCODER
from pydantic import ValidationError
from transformers import BertConfig, Phi3Config

from plant_cli.api import BackboneSpec
from plant_cli.registry import installed


def test_any_encoder(small_model: Callable[..., Path], learns: Callable[..., set[str]]) -> None:
    assert learns(ENCODER.spec(), small_model(BertConfig), adapter="lora") == {"query", "key", "value", "dense"}


def test_any_causal_model(small_model: Callable[..., Path], learns: Callable[..., set[str]]) -> None:
    folder = small_model(Phi3Config, num_key_value_heads=2, pad_token_id=0)
    assert learns(CAUSAL.spec(), folder, quantization="none") == {"qkv_proj", "o_proj"}


@pytest.mark.parametrize("family", [ENCODER, CAUSAL], ids=["encoder", "causal"])
def test_the_model_must_be_named(family: object) -> None:
    with pytest.raises(ValidationError, match="model"):
        family.options()()  # type: ignore[attr-defined]


def test_both_are_registered() -> None:
    names = {spec.name for spec in installed().specs(BackboneSpec)}
    assert {"hf-encoder", "hf-causal", "mistral", "llama3", "deepseek", "phi3", "modernbert"} <= names
