"""A design is what a model section names, with all options."""

from __future__ import annotations

import pytest

from plant_cli.api import Choice, ComponentError, ModelSection
from plant_cli.model.design import find_design
from plant_cli.registry import installed


def test_designs_are_equal_however_few_options_are_named() -> None:
    short = find_design(ModelSection(backbone=Choice(name="tiny")), installed().resolve)
    options = short.describe_backbone()
    whole = find_design(ModelSection(backbone=Choice.model_validate(options)), installed().resolve)
    assert options["name"] == "tiny"
    assert options["hidden"] > 0
    assert (short.backbone, short.decoder) == (whole.backbone, whole.decoder)


def test_an_unknown_component_is_refused() -> None:
    with pytest.raises(ComponentError, match="tinny"):
        find_design(ModelSection(backbone=Choice(name="tinny")), installed().resolve)
