"""Recipes with chosen values: stages are shared and named by the values that concern them."""

from __future__ import annotations

import pytest

from plant_cli.api import RecipeError
from plant_cli.registry import installed
from plant_cli.runs.recipes import RecipeLayer, merge_layers, parse_sets, parse_yaml
from plant_cli.runs.tuning import (
    Chosen,
    expand_chosen,
    flatten,
    name_choice,
    read_tuning,
    unflatten,
)

RECIPE = """\
mig: {}
pretrain-attn: {}
finetune: {epochs: 4, scorers: none, head: random}
eval: {}
changes:
  uniform: {finetune: {init: random, head: random, scorers: none}}
  random relevance: {mig: {signal: random}}
  frequencies: {finetune: {network: false, scorers: [frequencies]}}
"""


def expand(**chosen: dict[str, object]) -> Chosen:
    recipe = parse_yaml(RECIPE, "r.yaml")
    found = expand_chosen(
        merge_layers(recipe, parse_sets([name_choice(chosen)])), RecipeLayer(), installed()
    )
    assert found is not None
    return found


def test_without_choices_there_is_nothing_to_expand() -> None:
    recipe = parse_yaml(f"{RECIPE}tune: {{over: {{finetune: {{epochs: [1, 2]}}}}}}", "r.yaml")
    assert expand_chosen(recipe, RecipeLayer(), installed()) is None
    options = read_tuning(recipe)
    assert options is not None
    assert dict(flatten(options.over)) == {"finetune.epochs": [1, 2]}
    assert unflatten({"a.b": 1, "a.c.d": 2}).values == {"a": {"b": 1, "c": {"d": 2}}}


def test_values_of_the_recipe_itself_need_no_copy() -> None:
    found = expand(full={"finetune.epochs": 4})
    assert found.folders == {"full": "finetune"}
    assert found.needed == {"mig", "pretrain-attn", "finetune", "eval"}


def test_trials_share_the_stages_that_a_value_does_not_concern() -> None:
    one, other = (
        expand(full={"finetune.epochs": epochs, "pretrain-attn.epochs": 2}) for epochs in (1, 2)
    )
    shared = {name for name in one.needed if name.startswith("pretrain-attn")}
    assert len(shared) == 1
    assert shared == {name for name in other.needed if name.startswith("pretrain-attn")}
    assert one.folders != other.folders
    section = one.layer.values[one.folders["full"]]
    assert section["epochs"] == 1
    assert section["planted"] == next(iter(shared)).removeprefix("pretrain-attn-")


def test_a_system_has_only_the_values_that_it_makes_use_of() -> None:
    chosen: dict[str, object] = {"finetune.epochs": 8, "pretrain-attn.epochs": 2}
    found = expand(uniform=chosen, frequencies=chosen)
    assert found.used == {"uniform": {"finetune.epochs": 8}, "frequencies": {}}
    assert found.folders["frequencies"] == "finetune-frequencies"
    assert not any(name.startswith("pretrain-attn") for name in found.needed)
    assert found.layer.values["significance"]["names"] == ["uniform", "frequencies"]


def test_a_change_of_relevance_keeps_its_stages_for_all_its_trials() -> None:
    found = expand(**{"random relevance": {"finetune.epochs": 8}})
    assert {"mig-random-relevance", "pretrain-attn-random-relevance"} <= found.needed
    folder = found.folders["random relevance"]
    assert folder.startswith("finetune-random-relevance-trial-")
    section = found.layer.values[folder]
    assert section["planted"] == section["relevance"] == "random-relevance"


def test_values_for_what_is_no_system_are_refused() -> None:
    with pytest.raises(RecipeError, match="'planted', which is no change of the recipe"):
        expand(planted={"finetune.epochs": 8})
