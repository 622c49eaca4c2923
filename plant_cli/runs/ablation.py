"""Named changes against a full setup: a recipe whose `changes` are written out as tagged stages, compared with the untagged ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from plant_cli.api import Components, RecipeError, StageSpec
from plant_cli.api.context import join_tag
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.runs.recipes import RecipeLayer, merge_layers, nest
from plant_cli.runs.steps import Step, resolve_steps

NAMED_CHANGES = "changes"  # the section of a recipe that names them
_FULL = "full"  # how the unchanged system is called in tables


def expand_changes(recipe: RecipeLayer, components: Components) -> RecipeLayer:
    """The recipe with the stages of each change in its section `changes`; the recipe itself if it has none.

    A change is a small recipe: `{no boost: {model: {decoder: {boost: false}}}}`. It repeats the stages that it concerns, and those that
    read them, under a tag made of its name; all others are shared. `data: {train_share: 0.1}` gives fewer training documents to the
    stages that learn from them; nothing else of the corpus can change. A comparison of all systems comes last, with the options of its
    section if the recipe has one. `RecipeError` if a change names what the recipe does not run, changes nothing, or has the name of
    another one.
    """
    if NAMED_CHANGES not in recipe.values:
        return recipe
    changes = recipe.values[NAMED_CHANGES]
    comparisons = [spec.name for spec in components.specs(StageSpec) if spec.compares]
    unnamed = [
        name
        for name in comparisons
        if name in recipe.values and recipe.find((name, "systems")) is None
    ]
    full = recipe.without(NAMED_CHANGES, *unnamed)
    steps = resolve_steps(full, RecipeLayer(), components)
    first = [
        step for step in steps if step.tag is None and step.spec.writes and not step.spec.compares
    ]
    if not isinstance(changes, dict) or not changes:
        raise _refuse(
            recipe,
            (NAMED_CHANGES,),
            f"the section '{NAMED_CHANGES}' names no change",
            "a name for each, and below it what changes",
        )
    layers, systems = [full], {step.name: _FULL for step in first if step.spec.system == "trains"}
    for name, change in changes.items():
        tag = re.sub(r"[^a-z0-9]+", "-", str(name).lower()).strip("-")
        _check(recipe, str(name), change, [step.name for step in first], tag)
        copies = _copy(recipe, str(name), first, change, tag)
        if not tag or copies.values.keys() & merge_layers(*layers).values.keys():
            raise _refuse(
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
    origin = recipe.nearest((NAMED_CHANGES,))
    for step in [step for step in steps if step.spec.compares]:
        listed = dict.fromkeys([*step.layer.find(("options", "systems")), *systems])
        layers += _compare(step.name, listed, systems, origin)
    if not any(step.spec.compares for step in steps):
        layers += [
            layer
            for name in unnamed or comparisons[:1]
            for layer in _compare(name, systems, systems, origin)
        ]
    return merge_layers(*layers, recipe.only(unnamed))


def _compare(
    section: str, listed: Iterable[str], names: Mapping[str, str], origin: str
) -> list[RecipeLayer]:
    shown = [names.get(system, system) for system in listed]
    return [
        nest((section, "systems"), list(listed), origin),
        nest((section, "names"), shown, origin),
    ]


def _check(recipe: RecipeLayer, name: str, change: Any, stages: Collection[str], tag: str) -> None:
    known = [*stages, *SHARED_SECTIONS]
    if not isinstance(change, dict) or not change:
        raise _refuse(
            recipe,
            (NAMED_CHANGES, name),
            f"the change '{name}' is {change!r}",
            "sections of the recipe with the values that differ",
        )
    for section in change:
        if section not in known:
            raise _refuse(
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
        raise _refuse(recipe, (NAMED_CHANGES, name, "data", other), what, expected)


def _copy(
    recipe: RecipeLayer, name: str, steps: Sequence[Step], change: dict[str, Any], tag: str
) -> RecipeLayer:
    """The sections of the stages that a change concerns, each with its part of the change and the tags of what it reads."""
    origin, layers, copied = recipe.nearest((NAMED_CHANGES, name)), [], set()
    shared = [section for section in SHARED_SECTIONS if section in change]
    for step in steps:
        read = [stage for stage in step.spec.reads if stage in copied]
        used = [
            section
            for section in shared
            if section in step.spec.sections and (section != "data" or step.spec.learns)
        ]
        judged = step.spec.judges and any(
            other.spec.system == "trains" and other.name in copied for other in steps
        )
        if not (read or used or judged or step.name in change):
            continue
        copied.add(step.name)
        section = join_tag(step.name, tag)
        layers += [
            nest((section,), {}, origin),
            *(nest((section, step.spec.reads[stage]), tag, origin) for stage in read),
        ]
        layers += [recipe.moved((NAMED_CHANGES, name, part), section, part) for part in used]
        layers.append(recipe.moved((NAMED_CHANGES, name, step.name), section))
    return merge_layers(*layers)


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
    raise _refuse(
        recipe,
        (NAMED_CHANGES, name),
        f"the change '{name}' changes nothing",
        "another value than the recipe has without it",
    )


def _refuse(recipe: RecipeLayer, path: tuple[str, ...], what: str, expected: str) -> RecipeError:
    todo = "`changes: {uniform attention: {finetune: {init: random}}}` is one; correct it, or leave it out"
    return RecipeError(what, where=recipe.nearest(path), expected=expected, todo=todo)
