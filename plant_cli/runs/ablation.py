"""Named changes against a full setup: a recipe whose `changes` are written out as tagged
stages, compared with the untagged ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from plant_cli.api import Components, RecipeError, StageSpec
from plant_cli.api.context import join_tag
from plant_cli.api.options import SHARED_SECTIONS, Options
from plant_cli.runs.recipes import RecipeLayer, merge_layers, nest
from plant_cli.runs.steps import Step, resolve_steps

NAMED_CHANGES = "changes"  # the section of a recipe that names them
TUNING = "tune"  # the section that says what `plant ablate` tunes, for all systems alike
FULL = "full"  # how the unchanged system is called in tables


def expand_changes(recipe: RecipeLayer, components: Components) -> RecipeLayer:
    """The recipe with the stages of each change in its section `changes`; the recipe itself if it
    has none.

    A change is a small recipe: `{no boost: {model: {decoder: {boost: false}}}}`. It repeats the
    stages that it concerns, and those that read them, under a tag made of its name; all others are
    shared. `data: {train_share: 0.1}` gives fewer training documents to the stages that learn from
    them; nothing else of the corpus can change. A comparison of all systems comes last, with the
    options of its section if the recipe has one. `RecipeError` if a change names what the recipe
    does not run, changes nothing, or has the name of another one.
    """
    if TUNING in recipe.values:
        recipe = recipe.without(TUNING)
    if NAMED_CHANGES not in recipe.values:
        return recipe
    changes = recipe.values[NAMED_CHANGES]
    unnamed = find_unnamed(recipe, components)
    full = recipe.without(NAMED_CHANGES, *unnamed)
    steps = resolve_steps(full, RecipeLayer(), components)
    first = find_first(steps)
    if not isinstance(changes, dict) or not changes:
        raise refuse(
            recipe,
            (NAMED_CHANGES,),
            f"the section '{NAMED_CHANGES}' names no change",
            "a name for each, and below it what changes",
        )
    layers, systems = [full], {step.name: FULL for step in first if step.spec.system == "trains"}
    for name, change in changes.items():
        tag = make_tag(str(name))
        check_change(recipe, str(name), change, [step.name for step in first])
        copies = _copy(recipe, str(name), first, change, tag)
        if not tag or copies.values.keys() & merge_layers(*layers).values.keys():
            raise refuse(
                recipe,
                (NAMED_CHANGES, name),
                f"the change '{name}' has the tag '{tag}', which is taken",
                "a name of its own",
            )
        _require_difference(
            recipe,
            str(name),
            steps,
            resolve_steps(merge_layers(full, copies), RecipeLayer(), components),
            tag,
        )
        layers.append(copies)
        systems |= {
            join_tag(step.name, tag): str(name) for step in first if step.spec.system == "trains"
        }
    return merge_layers(*layers, *compare_all(recipe, steps, systems, components))


def make_tag(name: str) -> str:
    """The tag of the stages of a change."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def find_unnamed(recipe: RecipeLayer, components: Components) -> list[str]:
    """The comparisons in a recipe that name no systems: all are meant."""
    comparisons = [spec.name for spec in components.specs(StageSpec) if spec.compares]
    return [
        name
        for name in comparisons
        if name in recipe.values and recipe.find((name, "systems")) is None
    ]


def find_first(steps: Sequence[Step]) -> list[Step]:
    """The stages of the unchanged system."""
    return [
        step for step in steps if step.tag is None and step.spec.writes and not step.spec.compares
    ]


def compare_all(
    recipe: RecipeLayer,
    steps: Sequence[Step],
    systems: Mapping[str, str],
    components: Components,
    without: Collection[str] = (),
) -> list[RecipeLayer]:
    """The sections that compare systems (folder and name as shown), with the options of the
    recipe; `without` some that it names.
    """
    origin, unnamed = recipe.nearest((NAMED_CHANGES,)), find_unnamed(recipe, components)
    compares = [step for step in steps if step.spec.compares]
    layers = []
    for step in compares:
        named = [one for one in step.layer.find(("options", "systems")) if one not in without]
        layers += _compare(step.name, dict.fromkeys([*named, *systems]), systems, origin)
    if not compares:
        comparisons = [spec.name for spec in components.specs(StageSpec) if spec.compares]
        for name in unnamed or comparisons[:1]:
            layers += _compare(name, systems, systems, origin)
    return [*layers, recipe.only(unnamed)]


def _compare(
    section: str, listed: Iterable[str], names: Mapping[str, str], origin: str
) -> list[RecipeLayer]:
    shown = [names.get(system, system) for system in listed]
    return [
        nest((section, "systems"), list(listed), origin),
        nest((section, "names"), shown, origin),
    ]


def check_change(recipe: RecipeLayer, name: str, change: Any, stages: Collection[str]) -> None:
    """Refuse what is no change: it names sections and values of the recipe."""
    known = [*stages, *SHARED_SECTIONS]
    if not isinstance(change, dict) or not change:
        raise refuse(
            recipe,
            (NAMED_CHANGES, name),
            f"the change '{name}' is {change!r}",
            "sections of the recipe with the values that differ",
        )
    for section in change:
        if section not in known:
            raise refuse(
                recipe,
                (NAMED_CHANGES, name, section),
                f"the change '{name}' is of '{section}'",
                f"one of {', '.join(known)}",
            )
    other = next((key for key in change.get("data") or {} if key != "train_share"), None)
    if other is not None:
        what, expected = (
            f"the change '{name}' is of data.{other}",
            "data.train_share: labels, validation and test are those of the run",
        )
        raise refuse(recipe, (NAMED_CHANGES, name, "data", other), what, expected)


def _copy(
    recipe: RecipeLayer, name: str, steps: Sequence[Step], change: dict[str, Any], tag: str
) -> RecipeLayer:
    """The sections of the stages that a change concerns, each with its part of the change and
    the tags of what it reads.
    """
    origin, layers, copied = recipe.nearest((NAMED_CHANGES, name)), [], set[str]()
    changed = [
        (step, step.options.model_copy(update=change.get(step.name) or {})) for step in steps
    ]
    trained = {step.name for step in steps if step.spec.system == "trains"}
    for step, options in changed:
        if _is_idle(step, changed):
            continue
        read = list(filter(options.reads_stage, filter(copied.__contains__, step.spec.reads)))
        used = _find_used(step, change)
        judged = step.spec.judges and trained & copied
        if read or used or judged or step.name in change:
            copied.add(step.name)
            section = join_tag(step.name, tag)
            layers += [
                nest((section,), {}, origin),
                *(nest((section, step.spec.reads[stage]), tag, origin) for stage in read),
                *(recipe.moved((NAMED_CHANGES, name, part), section, part) for part in used),
                recipe.moved((NAMED_CHANGES, name, step.name), section),
            ]
    return merge_layers(*layers)


def _is_idle(step: Step, changed: Iterable[tuple[Step, Options]]) -> bool:
    """Whether stages could read what a step makes, and none of them does."""
    readers = [options for other, options in changed if step.name in other.spec.reads]
    return bool(readers) and not any(options.reads_stage(step.name) for options in readers)


def _find_used(step: Step, change: Mapping[str, Any]) -> list[str]:
    """The shared sections of a change that a step depends on."""
    known = [one for one in SHARED_SECTIONS if one in change and one in step.spec.sections]
    return [one for one in known if one != "data" or step.spec.learns]


def _require_difference(
    recipe: RecipeLayer, name: str, before: Sequence[Step], after: Sequence[Step], tag: str
) -> None:
    """Refuse a change after which every stage has the values that it had."""
    known = {step.name: step for step in before}
    for step in after:
        if step.tag == tag and (original := known.get(step.spec.name)) is not None:
            linked = set(step.spec.reads.values())
            now, then = (
                {k: v for k, v in one.values.items() if k not in linked} for one in (step, original)
            )
            if now != then or step.sections != original.sections:
                return
    raise refuse(
        recipe,
        (NAMED_CHANGES, name),
        f"the change '{name}' changes nothing",
        "another value than the recipe has without it",
    )


def refuse(recipe: RecipeLayer, path: tuple[str, ...], what: str, expected: str) -> RecipeError:
    """The error for a section `changes` that cannot be, with its place."""
    todo = (
        "`changes: {uniform attention: {finetune: {init: random}}}` is one; correct it, or "
        "leave it out"
    )
    return RecipeError(what, where=recipe.nearest(path), expected=expected, todo=todo)
