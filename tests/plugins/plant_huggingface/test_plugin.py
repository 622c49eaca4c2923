"""The two generic backbones: what their options say and what they hand to the kit."""

from __future__ import annotations

from typing import Any

import pytest
from plant_huggingface.plugin import CausalOptions, EncoderOptions, load_causal, load_encoder
from pydantic import ValidationError

from plant_cli.api import MachineSection
from plant_cli.kit import huggingface
from plant_cli.registry import installed


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr(huggingface, "HuggingFaceBackbone", lambda profile, options: seen.append((profile, options)))
    return seen


def test_each_kind_makes_its_profile(loaded: list[Any]) -> None:
    load_encoder(EncoderOptions(model="some/folder", revision="abc"), MachineSection())
    load_causal(CausalOptions(model="llama"), MachineSection())
    (encoder, _), (causal, options) = loaded
    assert (encoder.model, encoder.revision, encoder.kind) == ("some/folder", "abc", "encoder")
    assert "query" in encoder.adapter_targets
    assert (causal.kind, options.adapter) == ("causal", "lora")
    assert "q_proj" in causal.adapter_targets


def test_the_model_must_be_named() -> None:
    with pytest.raises(ValidationError, match="model"):
        EncoderOptions()


def test_both_are_registered() -> None:
    names = {spec.name for spec in installed().specs("backbone")}
    assert {"hf-encoder", "hf-causal"} <= names
