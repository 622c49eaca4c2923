"""Tuning: what is tried for every system of a comparison, and the recipe of the values that were
chosen for each.

The section `tune` of a recipe names values to try; `plant ablate` tries them for the full setup and
for each of its changes alike. What was chosen stands below `tune.chosen`, by system; a recipe with
it is the final experiment. Stages are named by their values, so that trials share what they have in
common, and the stages of the chosen trial are those of the final system.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plant_cli.api import Components, RecipeError, option
from plant_cli.api.context import join_tag
from plant_cli.api.options import SHARED_SECTIONS, Options
from plant_cli.data.files import hash_json
from plant_cli.runs.ablation import (
    FULL,
    NAMED_CHANGES,
    TUNING,
    check_change,
    compare_all,
    find_first,
    find_unnamed,
    make_tag,
    refuse,
)
from plant_cli.runs.recipes import RecipeLayer, merge_layers, nest
from plant_cli.runs.steps import Step, build_options, resolve_step, resolve_steps

Values = dict[str, Any]  # of a trial, by key: {"finetune.rate_head": 0.001}


class TuneOptions(Options):
    """The section `tune` of a recipe."""

    over: dict[str, Any] = option(
        {}, "What is tried: sections as in the recipe, with a list in the place of each value."
    )
    trials: int | None = option(
        None, "Trials of each system, at most (default: all combinations).", ge=1
    )
    metric: str = option("MAP", "The figure of validation that should be high.")
    chosen: dict[str, dict[str, Any]] = option(
        {}, "The values that were chosen, by system: sections as in the recipe."
    )


def read_tuning(recipe: RecipeLayer) -> TuneOptions | None:
    """The section `tune`; None where there is none."""
    return build_options(TuneOptions, recipe, TUNING, TUNING) if TUNING in recipe.values else None


def flatten(values: Mapping[str, Any], *path: str) -> Iterator[tuple[str, Any]]:
    """The values of nested sections by keys such as `finetune.rate_head`."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flatten(value, *path, name)
        else:
            yield ".".join((*path, name)), value


def unflatten(values: Mapping[str, Any], origin: str = TUNING) -> RecipeLayer:
    """The sections of values by such keys."""
    return merge_layers(*(nest(tuple(key.split(".")), one, origin) for key, one in values.items()))


def name_choice(chosen: Mapping[str, Values]) -> str:
    """The text of `--set` that chooses values for systems."""
    sections = {name: unflatten(values).values for name, values in chosen.items()}
    return f"{TUNING}.chosen={json.dumps(sections)}"


def name_systems(recipe: RecipeLayer) -> list[str]:
    """The full setup and its changes."""
    return [FULL, *map(str, recipe.values.get(NAMED_CHANGES) or {})]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The recipe of systems with the values that were chosen for each."""

    layer: RecipeLayer
    needed: frozenset[str]  # names of the steps that these systems need
    folders: Mapping[str, str]  # of the stage that trains each system, by its name
    used: Mapping[str, Values]  # the values that each system makes use of


def expand_chosen(recipe: RecipeLayer, over: RecipeLayer, components: Components) -> Chosen | None:
    """The recipe with the stages of each system under `tune.chosen`; None where nothing was
    chosen. `over` is the command line.
    """
    options = read_tuning(recipe)
    if options is None or not options.chosen:
        return None
    recipe = recipe.without(TUNING)
    full = recipe.without(NAMED_CHANGES, *find_unnamed(recipe, components))
    steps = resolve_steps(full, over, components)
    first = find_first(steps)
    trains = next((step for step in first if step.spec.system == "trains"), None)
    if trains is None:
        raise RecipeError(
            "the recipe trains nothing",
            where=recipe.summary or "the sections of the recipe",
            expected="a section `finetune`",
            todo="`plant recipe show recommended` shows an example",
        )
    layers, systems, needed, used = [full], dict[str, str](), set[str](), dict[str, Values]()
    for name, values in options.chosen.items():
        change = _find_change(recipe, name, first)
        copies = _Copies(merge_layers(full, over), first, make_tag(name), components)
        copies.make(change, RecipeLayer(values))
        layers.append(copies.layer)
        systems[join_tag(trains.name, copies.made[trains.name].tag)] = name
        needed |= copies.find_needed(trains.name)
        used[name] = copies.find_used(trains.name)
    if len(systems) > 1:
        layers += compare_all(recipe, steps, systems, components, without=[trains.name])
    layer = merge_layers(*layers)
    others = resolve_steps(layer, over, components)
    needed |= {step.name for step in others if step.spec.compares or not step.spec.writes}
    folders = {name: folder for folder, name in systems.items()}
    return Chosen(layer=layer, needed=frozenset(needed), folders=folders, used=used)


def _find_change(recipe: RecipeLayer, name: str, first: Sequence[Step]) -> RecipeLayer:
    if name == FULL:
        return RecipeLayer()
    change = (recipe.values.get(NAMED_CHANGES) or {}).get(name)
    if change is None:
        raise refuse(
            recipe,
            (NAMED_CHANGES,),
            f"values were chosen for '{name}', which is no change of the recipe",
            f"one of {', '.join(name_systems(recipe))}",
        )
    check_change(recipe, name, change, [step.name for step in first])
    return RecipeLayer(change)


@dataclass(frozen=True, kw_only=True)
class _Copy:
    """A stage of one system."""

    step: Step  # with the values of the system
    tag: str | None  # of its section
    changed: bool  # it, or what it reads, differs from the full setup
    matter: dict[str, Any]  # chosen values that concern it, or what it reads, by stage
    sources: frozenset[str]  # the stages that it reads
    given: RecipeLayer  # the chosen values that it makes use of


class _Copies:
    """The stages of one system, each under a tag that names its change and the chosen values
    that concern it.
    """

    def __init__(
        self, full: RecipeLayer, first: Sequence[Step], tag: str, components: Components
    ) -> None:
        self._full, self._first, self._tag, self._components = full, first, tag, components
        self.made: dict[str, _Copy] = {}
        self.layer = RecipeLayer()

    def make(self, change: RecipeLayer, values: RecipeLayer) -> None:
        """Go through all stages in their order."""
        for step in self._first:
            mine = _part(change, step, step.name)
            base = self._resolve(step, mine)
            tuned = _drop_ignored(_part(values, step, step.name), base)
            final = self._resolve(step, mine, tuned)
            is_tuned = (final.values, final.sections) != (base.values, base.sections)
            read = self._find_read(step, base)
            matter = {stage: one for source in read for stage, one in source.matter.items()}
            if is_tuned:
                matter[step.name] = tuned.values[step.name]
            changed = bool(mine.values) or any(source.changed for source in read)
            trial = f"trial-{hash_json(matter)[:8]}" if matter else None
            tag = "-".join(filter(None, [self._tag if changed else None, trial])) or None
            sources = frozenset(
                other.name
                for other in self._first
                if (step.name in other.spec.feeds or other.name in step.spec.reads)
                and final.options.reads_stage(other.name)
            )
            self.made[step.name] = _Copy(
                step=final,
                tag=tag,
                changed=changed,
                matter=matter,
                sources=sources,
                given=tuned,
            )
            if tag is not None:
                self._write(step, tag, change, tuned)

    def _resolve(self, step: Step, *parts: RecipeLayer) -> Step:
        return resolve_step([merge_layers(self._full, *parts)], step.spec, None, self._components)

    def _find_read(self, step: Step, base: Step) -> list[_Copy]:
        """The stages that it reads by their tags; those that judge or score follow the one that
        trains.
        """
        if step.spec.judges or step.spec.system == "scores":
            return [one for one in self.made.values() if one.step.spec.system == "trains"]
        stages = [stage for stage in step.spec.reads if base.options.reads_stage(stage)]
        return [self.made[stage] for stage in stages if stage in self.made]

    def _write(self, step: Step, tag: str, change: RecipeLayer, tuned: RecipeLayer) -> None:
        section = join_tag(step.name, tag)
        links = [
            nest((section, link), self.made[stage].tag, TUNING)
            for stage, link in step.spec.reads.items()
            if stage in self.made
            and self.made[stage].tag is not None
            and self.made[step.name].step.options.reads_stage(stage)
        ]
        self.layer = merge_layers(
            self.layer,
            nest((section,), {}, TUNING),
            *links,
            _part(change, step, section),
            tuned.moved((step.name,), section),
        )

    def find_needed(self, system: str) -> set[str]:
        """Names of the steps that the system needs, and of those that judge it."""
        judges = [
            one.step.name
            for one in self.made.values()
            if one.step.spec.judges or one.step.spec.system == "scores"
        ]
        return {join_tag(name, self.made[name].tag) for name in self._trace([system, *judges])}

    def find_used(self, system: str) -> Values:
        """The chosen values of the stages that the system needs."""
        stages = self._trace([system])
        given = [one.given for name, one in self.made.items() if name in stages]
        used = merge_layers(*given)
        values: Values = {}
        for stage, part in used.values.items():
            for key, value in flatten(part):
                shared = key.partition(".")[0] in SHARED_SECTIONS
                values[key if shared else f"{stage}.{key}"] = value
        return values

    def _trace(self, stages: Sequence[str]) -> set[str]:
        """Some stages and all that they are made from."""
        wanted, found = [*stages], set[str]()
        while wanted:
            stage = wanted.pop()
            if stage not in found:
                found.add(stage)
                wanted += self.made[stage].sources
        return found


def _part(layer: RecipeLayer, step: Step, section: str) -> RecipeLayer:
    """What concerns a stage, in one section."""
    shared = (
        layer.moved((name,), section, name)
        for name in SHARED_SECTIONS
        if name in step.spec.sections and (name != "data" or step.spec.learns)
    )
    return merge_layers(*shared, layer.moved((step.name,), section))


def _drop_ignored(part: RecipeLayer, step: Step) -> RecipeLayer:
    """Without the options that the stage makes no use of."""
    values = part.values.get(step.name, {})
    kept = {key: value for key, value in values.items() if not step.options.ignores(key)}
    return RecipeLayer({step.name: kept} if kept else {})
