"""Families of metrics with their options, as several stages ask for them."""

from __future__ import annotations

import pytest

from plant_cli.api import ComponentError, MetricSpec
from plant_cli.evaluation.systems import choose_families
from plant_cli.registry import installed
from plant_cli.testing.contexts import make_context


def test_families_get_their_options_and_those_without_have_their_defaults() -> None:
    found = {spec.name: options for spec, options in choose_families(make_context(components=installed()), {"propensity": {"a": 0.5}})}
    assert list(found) == [spec.name for spec in installed().specs(MetricSpec)]
    assert found["propensity"].model_dump()["a"] == 0.5
    assert all(not options.model_fields_set for name, options in found.items() if name != "propensity")


def test_options_of_a_family_that_does_not_exist_are_refused() -> None:
    with pytest.raises(ComponentError, match="oops"):
        choose_families(make_context(components=installed()), {"oops": {}})
