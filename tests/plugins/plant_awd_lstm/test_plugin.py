"""What the plugin registers; the published checks run on a backbone with a language model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plant_awd_lstm import AwdLstmOptions, PretrainLmOptions, plant_register_backbones, plant_register_stages
from plant_awd_lstm.language_model import fit_vocabulary
from plant_awd_lstm.lstm_backbone import load

from plant_cli.api import BackboneSpec, ComponentError, MachineSection
from plant_cli.testing import backbone_checks as backbones
from plant_cli.testing.checklist import checks_of


@pytest.mark.parametrize("check", checks_of(BackboneSpec), ids=lambda check: check.__name__)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_it_is_a_backbone(check: Callable[[Any], None], direction: str, language_model: Callable[..., Path]) -> None:
    """By default it has no language model, and the published checks are passed over."""
    (spec,) = plant_register_backbones()
    folder = language_model(words=fit_vocabulary(backbones.TEXTS, min_count=1, max_words=99))
    chosen = {"language_model": str(folder), "direction": direction, "max_tokens": 50, "window": 7}
    loaded = []

    def load_chosen(options: Any, machine: MachineSection) -> Any:
        loaded.append(load(options.model_copy(update=chosen), machine))
        return loaded[-1]

    check(replace(spec, load=load_chosen))
    assert loaded or check is backbones.languages_are_codes


def test_without_a_language_model_it_says_what_to_run() -> None:
    with pytest.raises(ComponentError, match="no language model") as caught:
        load(AwdLstmOptions(), MachineSection())
    assert "plant pretrain-lm" in caught.value.todo


def test_the_stage_makes_what_the_backbone_starts_from() -> None:
    (backbone,), (stage,) = plant_register_backbones(), plant_register_stages()
    assert backbone.start is not None
    assert backbone.start.stage == stage.name
    assert backbone.start.option in backbone.options.model_fields


def test_sizes_are_those_of_the_paper_by_default() -> None:
    options = PretrainLmOptions()
    assert (options.embedding, options.hidden, options.layers, options.window) == (400, 1152, 3, 72)
