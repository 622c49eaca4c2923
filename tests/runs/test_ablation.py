"""Changes of a recipe, written out as the stages that they concern."""

from __future__ import annotations

from typing import Any

import pytest

from plant_cli.api import RecipeError
from plant_cli.registry import installed
from plant_cli.runs.ablation import expand_changes
from plant_cli.runs.recipes import RecipeLayer, parse_yaml
from plant_cli.runs.steps import resolve_steps

FULL = """
mig: {k: 10}
pretrain-attn: {}
finetune: {epochs: 4}
eval: {bootstrap: 100}
changes:
"""
CHANGED: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "of stage 2 alone": (
        "Few epochs: {finetune: {epochs: 1}}",
        {
            "finetune-few-epochs": {"epochs": 1, "planted": None},
            "eval-few-epochs": {"bootstrap": 100},
        },
    ),
    "of relevance, and so of all that reads it": (
        "random: {mig: {signal: random}}",
        {
            "mig-random": {"k": 10},
            "pretrain-attn-random": {"relevance": "random"},
            "finetune-random": {"planted": "random", "epochs": 4},
            "eval-random": {},
        },
    ),
    "of the model, which both stages of training have": (
        "one head: {model: {decoder: {heads: 1}}, finetune: {epochs: 2}}",
        {
            "pretrain-attn-one-head": {"relevance": None},
            "finetune-one-head": {"planted": "one-head", "epochs": 2},
            "eval-one-head": {},
        },
    ),
    "of a model that is not planted: its attention is not planted for nothing": (
        "wide: {model: {decoder: {init_scale: 1.0}}, finetune: {init: random, head: random, scorers: none}}",
        {"finetune-wide": {"planted": None, "init": "random"}, "eval-wide": {}},
    ),
    "of the size of train, without those that only score and measure": (
        "few: {data: {train_share: 0.1}}",
        {
            "mig-few": {"k": 10},
            "pretrain-attn-few": {"relevance": "few"},
            "finetune-few": {"planted": "few"},
            "eval-few": {},
        },
    ),
}


def expand(text: str) -> RecipeLayer:
    return expand_changes(parse_yaml(text, "r.yaml"), installed())


@pytest.mark.parametrize("change", CHANGED)
def test_a_change_repeats_the_stages_that_it_concerns(change: str) -> None:
    text, wanted = CHANGED[change]
    steps = {
        step.name: step
        for step in resolve_steps(expand(f"{FULL}  {text}\n"), RecipeLayer(), installed())
    }
    assert set(steps) - {"mig", "pretrain-attn", "finetune", "eval", "significance"} == set(wanted)
    for name, values in wanted.items():
        assert {key: steps[name].values[key] for key in values} == values, name
        assert steps[name].data.train_share == (
            0.1 if steps[name].tag == "few" and steps[name].spec.learns else 1
        )
    assert steps["finetune"].values["epochs"] == 4
    system = next(name for name in wanted if name.startswith("finetune"))
    assert steps["significance"].values["systems"] == ["finetune", system]
    assert steps["significance"].values["names"] == ["full", text.partition(":")[0]]


def test_a_component_of_the_model_differs_in_the_copies_alone() -> None:
    steps = {
        step.name: step
        for step in resolve_steps(
            expand(f"{FULL}  one head: {{model: {{decoder: {{heads: 1}}}}}}"),
            RecipeLayer(),
            installed(),
        )
    }
    assert steps["finetune-one-head"].sections["model"]["decoder"]["heads"] == 1
    assert steps["finetune"].sections["model"]["decoder"]["heads"] > 1


def test_a_comparison_of_the_recipe_takes_the_changed_systems_too() -> None:
    text = FULL.replace(
        "changes:", "significance: {systems: [finetune, other.parquet], bootstrap: 50}\nchanges:"
    )
    recipe = expand(f"{text}  fast: {{finetune: {{epochs: 1}}}}")
    assert recipe.values["significance"]["systems"] == [
        "finetune",
        "other.parquet",
        "finetune-fast",
    ]
    assert recipe.values["significance"]["names"] == ["full", "other.parquet", "fast"]


def test_a_comparison_may_give_its_options_alone() -> None:
    text = FULL.replace("changes:", "significance: {bootstrap: 50}\nchanges:")
    recipe = expand(f"{text}  fast: {{finetune: {{epochs: 1}}}}")
    assert recipe.values["significance"] == {
        "bootstrap": 50,
        "systems": ["finetune", "finetune-fast"],
        "names": ["full", "fast"],
    }


def test_a_comparison_that_is_no_section_is_refused() -> None:
    text = FULL.replace("changes:", "significance: 3\nchanges:")
    with pytest.raises(RecipeError, match="the section 'significance' is 3"):
        resolve_steps(
            expand(f"{text}  fast: {{finetune: {{epochs: 1}}}}"), RecipeLayer(), installed()
        )


def test_a_recipe_without_changes_is_itself() -> None:
    recipe = parse_yaml("mig: {}", "r.yaml")
    assert expand_changes(recipe, installed()) is recipe
