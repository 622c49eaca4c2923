from __future__ import annotations

import pytest
from plant_tiny.plugin import TinyOptions

from plant_cli.api import Choice, ComponentError, ModelSection
from plant_cli.model.design import find_design
from plant_cli.registry import installed


def test_the_section_names_every_option_however_few_were_given() -> None:
    few = ModelSection(backbone=Choice(name="tiny", options={"hidden": 16}), decoder=Choice(name="label-attention"))
    found = find_design(few, installed().resolve)
    assert found.section.backbone.options == TinyOptions(hidden=16).model_dump(mode="json")
    assert found.section.decoder.options.keys() >= {"heads", "pool"}
    again = find_design(found.section, installed().resolve)
    assert again == found
    assert list(again.section.backbone.options) == list(found.section.backbone.options)


def test_a_backbone_is_described_by_its_name_and_all_its_options() -> None:
    described = find_design(ModelSection(backbone=Choice(name="tiny")), installed().resolve).describe_backbone()
    assert described == {"name": "tiny", **TinyOptions().model_dump(mode="json")}


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(ComponentError, match="tinny"):
        find_design(ModelSection(backbone=Choice(name="tinny")), installed().resolve)
