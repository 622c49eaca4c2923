from __future__ import annotations

import pytest

from plant_cli.api import BackboneSpec, Choice, ModelSection, Options, choice, option
from plant_cli.registry import Registry
from plant_cli.runs.steps import component_kind, find_choices, write_out


class Several(Options):
    many: list[Choice] = choice("backbone", "tiny", "Some backbones.")
    maybe: Choice | None = choice("backbone", "tiny", "A backbone or none.")
    plain: int = option(1, "A number.")


@pytest.fixture
def several() -> Several:
    return Several.model_validate({"many": ["tiny", {"name": "big", "heads": 2}], "maybe": None})


def test_kinds_come_from_the_options_model() -> None:
    assert component_kind(ModelSection, "backbone") is BackboneSpec
    assert component_kind(Several, "plain") is None
    assert component_kind(Several, "absent") is None


def test_choices_are_found_in_lists_too(several: Several) -> None:
    assert [(field, chosen.name) for field, _, chosen in find_choices(several)] == [("many", "tiny"), ("many", "big")]


def test_components_are_written_out_in_full(several: Several, registry: Registry) -> None:
    assert write_out(several, registry) == {
        "many": [{"name": "tiny", "layers": 2, "width": 64}, {"name": "big", "heads": 2}],
        "maybe": None,
        "plain": 1,
    }


def test_without_a_registry_only_what_was_given_is_written(several: Several) -> None:
    assert write_out(several, None)["many"] == [{"name": "tiny"}, {"name": "big", "heads": 2}]
