"""Repetition over seeds: the tags of repeated stages, the inputs of a seed, and a recipe
repeated for several seeds.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from plant_cli.api import Components, RecipeError, StageSpec
from plant_cli.api.context import join_tag
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.runs.recipes import RecipeLayer, merge_layers, nest
from plant_cli.runs.steps import STAGE_OPTIONS, Step

_MARKED = re.compile(r"(?:(?P<tag>.+)-)?seed(?P<seed>\d+)")


def mark_seed(tag: str | None, seed: int) -> str:
    """The tag of a stage's repetition: `baseline` and 2 make `baseline-seed2`, no tag makes
    `seed2`.
    """
    return f"seed{seed}" if tag is None else f"{tag}-seed{seed}"


def split_seed(tag: str | None) -> tuple[str | None, int | None]:
    """A tag without its mark, and the seed that the mark names; None for a tag without one."""
    match = _MARKED.fullmatch(tag or "")
    return (match["tag"], int(match["seed"])) if match else (tag, None)


def find_input_tag(
    stages: Container[str], stage: str, tag: str | None, reader: str | None
) -> str | None:
    """The tag of the input for a stage with the tag `reader`: that of the same seed if a run, or
    names of steps, have it, else `tag`.

    A stage that does not depend on the seed, such as `mig`, is thus shared by all seeds.
    """
    seed = split_seed(reader)[1]
    if seed is None or split_seed(tag)[1] is not None:
        return tag
    seeded = mark_seed(tag, seed)
    return seeded if join_tag(stage, seeded) in stages else tag


def repeat(
    recipe: RecipeLayer, steps: Sequence[Step], count: int, components: Components
) -> RecipeLayer:
    """The recipe for `count` seeds: `finetune` for the first, `finetune-seed2` and so on for the
    others, each with its `machine.seed`.

    Comparisons go to the end as `significance-seedsN`; a recipe without one gets one over all its
    systems. `recipe` is merged with the command line, and resolves to `steps`.
    """
    repeated = [step for step in steps if step.spec.seeded and split_seed(step.tag)[1] is None]
    first = _first_seed(repeated)
    origin = f"--seeds {count}"
    copies = [
        _write_seeded(step, seed, origin)
        for seed in range(first + 1, first + count)
        for step in repeated
    ]
    compared, ends = _repeat_comparisons(steps, repeated, count, components)
    kept = [_write(step, step.name) for step in steps if step not in compared]
    names = {step.name for step in steps}
    return merge_layers(
        recipe.only(SHARED_SECTIONS),
        *kept,
        *(copy for copy in copies if not copy.values.keys() & names),
        *ends,
    )


def _repeat_comparisons(
    steps: Sequence[Step], repeated: Sequence[Step], count: int, components: Components
) -> tuple[list[Step], list[RecipeLayer]]:
    """The comparisons that take no seeds of their own, and the sections of all seeds that take
    their place; where a recipe compares nothing, one of all its systems.
    """
    origin, over = f"--seeds {count}", f"seeds{count}"
    if not any(step.spec.compares for step in steps):
        named = next((spec.name for spec in components.specs(StageSpec) if spec.compares), None)
        ends = [_compare_all(repeated, join_tag(named, over), count, origin)] if named else []
        return [], ends
    compared = [
        step
        for step in steps
        if step.spec.compares and "seeds" not in step.layer.values.get(STAGE_OPTIONS, {})
    ]
    return compared, [
        merge_layers(
            _write(step, copy := f"{step.name}-{over}"), nest((copy, "seeds"), count, origin)
        )
        for step in compared
    ]


def _write_seeded(step: Step, seed: int, origin: str) -> RecipeLayer:
    """The section of a step for another seed, under the tag of this seed."""
    copy = join_tag(step.spec.name, mark_seed(step.tag, seed))
    return merge_layers(_write(step, copy), nest((copy, "machine", "seed"), seed, origin))


def _first_seed(repeated: Sequence[Step]) -> int:
    seeds = {step.name: step.machine.seed for step in repeated}
    if not seeds:
        expected, todo = "stages that train, such as `finetune`", "leave --seeds out"
        raise RecipeError(
            "nothing in the recipe depends on the seed",
            where="--seeds",
            expected=expected,
            todo=todo,
        )
    if len(set(seeds.values())) > 1:
        raise RecipeError(
            "the stages of the recipe have different seeds",
            where=", ".join(f"{name}: {seed}" for name, seed in seeds.items()),
            expected="one seed for all, from which --seeds counts on",
            todo="give the seed in the shared section `machine` alone",
        )
    return next(iter(seeds.values()))


def _write(step: Step, section: str) -> RecipeLayer:
    """A section with all explicit values of a step, so that it inherits nothing else."""
    shared = (
        step.layer.moved((name,), section, name)
        for name in SHARED_SECTIONS
        if name not in step.spec.options.model_fields
    )
    return merge_layers(
        nest((section,), {}, step.layer.nearest((STAGE_OPTIONS,))),
        step.layer.moved((STAGE_OPTIONS,), section),
        *shared,
    )


def _compare_all(repeated: Sequence[Step], section: str, count: int, origin: str) -> RecipeLayer:
    systems = [step.name for step in repeated if step.spec.system == "trains"]
    if not systems:
        return RecipeLayer()
    return merge_layers(
        nest((section, "systems"), systems, origin), nest((section, "seeds"), count, origin)
    )
