"""`plant run --seeds N`: a recipe with the sections of training repeated for every seed, and the comparison of them all at its end."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api import Components, RecipeError, StageSpec
from plant_cli.recipe.layers import Layer, merge, nest
from plant_cli.recipe.steps import OWN, Step, join_tag
from plant_cli.runs.seeds import mark_seed, split_seed

TRAINING, COMPARISON = "finetune", "significance"


def repeat(recipe: Layer, steps: Sequence[Step], count: int, components: Components) -> Layer:
    """The recipe for `count` seeds: `finetune` for the first, `finetune-seed2` and so on for the others, with their own `machine.seed`.

    Comparisons go to the end as `significance-seedsN`; a recipe without any is given one over all its systems.

    Args:
        recipe: the sections with everything that was given over them.
        steps: the steps that it resolves to.
        count: how many seeds, 2 or more.
        components: the registry.

    Raises:
        RecipeError: nothing in the recipe depends on the seed, or its stages have different ones.
    """
    repeated = [step for step in steps if step.spec.seeded and split_seed(step.tag)[1] is None]
    first = _first_seed(repeated)
    origin = f"--seeds {count}"
    copies = [
        _copy(recipe, step, mark_seed(step.tag, seed), ("machine", "seed"), seed, origin)
        for seed in range(first + 1, first + count)
        for step in repeated
    ]
    compared = [step for step in steps if step.spec.name == COMPARISON and "seeds" not in step.layer.values.get(OWN, {})]
    moved = {step.name for step in compared}
    over = f"seeds{count}"
    ends = [_copy(recipe, step, join_tag(step.tag, over) if step.tag else over, ("seeds",), count, origin) for step in compared]
    if not any(step.spec.name == COMPARISON for step in steps) and COMPARISON in {spec.name for spec in components.specs(StageSpec)}:
        ends = [_compare_all(repeated, join_tag(COMPARISON, over), count, origin)]
    kept = recipe.only(dict.fromkeys(name for name in recipe.values if name not in moved))
    return merge(kept, *(copy for copy in copies if not copy.values.keys() & recipe.values.keys()), *ends)


def _first_seed(repeated: Sequence[Step]) -> int:
    seeds = {step.name: step.machine.seed for step in repeated}
    if not seeds:
        raise RecipeError(
            "nothing in the recipe depends on the seed",
            where="--seeds",
            expected="stages that train, such as `finetune`",
            todo="leave --seeds out",
        )
    if len(set(seeds.values())) > 1:
        raise RecipeError(
            "the stages of the recipe have different seeds",
            where=", ".join(f"{name}: {seed}" for name, seed in seeds.items()),
            expected="one seed for all, from which --seeds counts on",
            todo="give the seed in the shared section `machine` alone",
        )
    return next(iter(seeds.values()))


def _copy(recipe: Layer, step: Step, tag: str, key: tuple[str, ...], value: int, origin: str) -> Layer:
    """A step's section, with what it inherits, under another tag and with one value of its own."""
    section = join_tag(step.spec.name, tag)
    given = [recipe.moved((name,), section) for name in dict.fromkeys([step.spec.name, step.name])]
    return merge(*given, nest((section, *key), value, origin))


def _compare_all(repeated: Sequence[Step], section: str, count: int, origin: str) -> Layer:
    systems = [step.name for step in repeated if step.spec.name == TRAINING]
    if not systems:
        return Layer()
    return merge(nest((section, "systems"), systems, origin), nest((section, "seeds"), count, origin))
