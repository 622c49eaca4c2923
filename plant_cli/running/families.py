"""The families of metrics that a stage computes, with the options that its user gave them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plant_cli.api.context import StageContext
from plant_cli.api.options import Choice, Options
from plant_cli.api.specs import MetricSpec


def choose_families(context: StageContext, options: Mapping[str, Mapping[str, Any]]) -> list[tuple[MetricSpec, Options]]:
    """All registered families of metrics.

    Args:
        context: of the stage.
        options: those of some families, by name. A name that is not registered is looked up, too, which says what is wrong.

    Raises:
        ComponentError: there is no such family.
        RecipeError: an option of a family is not valid.
    """
    names = dict.fromkeys([*(spec.name for spec in context.components(MetricSpec)), *options])
    return [context.component(MetricSpec, Choice(name=name, options=dict(options.get(name, {})))) for name in names]
