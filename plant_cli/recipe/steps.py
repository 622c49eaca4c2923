"""The validated steps of an experiment: which stage, under which tag, with which options and shared sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from plant_cli.api import (
    ComponentError,
    Components,
    DataSection,
    MachineSection,
    ModelSection,
    Options,
    RecipeError,
    StageSpec,
    UsageError,
    near_names,
)
from plant_cli.api.sections import SHARED_SECTIONS
from plant_cli.base.names import NAME_RULE, names_folder
from plant_cli.recipe.components import component_kind, find_choices, write_out
from plant_cli.recipe.faults import explain
from plant_cli.recipe.layers import FLAGS, Layer, merge

OptionsT = TypeVar("OptionsT", bound=Options)
OWN = "options"  # where a step's layer keeps the options of the stage itself


@dataclass(frozen=True, kw_only=True)
class Step:
    """One stage to be run.

    Args:
        spec: the stage.
        tag: the variant, or None.
        options: the stage's validated options.
        data, model, machine: the shared sections as this step sees them.
        layer: the given values with their origins, under `options`, `data`, `model`, `machine`.
        values: all options written out, components with all theirs.
        sections: the shared sections that this stage uses, written out; none for an action.
    """

    spec: StageSpec
    tag: str | None
    options: Options
    data: DataSection
    model: ModelSection
    machine: MachineSection
    layer: Layer
    values: Mapping[str, Any]
    sections: Mapping[str, Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The recipe section and the folder: `finetune` or `finetune-baseline`."""
        return join_tag(self.spec.name, self.tag)


def join_tag(stage: str, tag: str | None) -> str:
    """`finetune` and `baseline` make `finetune-baseline`."""
    return stage if tag is None else f"{stage}-{tag}"


def split_section(section: str, layer: Layer, components: Components) -> tuple[StageSpec, str | None]:
    """The stage and the tag that a section's name stands for: the longest stage name that begins it.

    Raises:
        RecipeError: no stage's name begins it, or what follows cannot be a tag.
    """
    stages = {spec.name: spec for spec in components.specs(StageSpec)}
    if section in stages:
        return stages[section], None
    parts = section.split("-")
    for size in range(len(parts) - 1, 0, -1):
        stage, tag = "-".join(parts[:size]), "-".join(parts[size:])
        if stage in stages and tag:
            if not names_folder(tag):
                raise RecipeError(
                    f"the tag '{tag}' of the section '{section}' cannot name a folder",
                    where=layer.nearest((section,)),
                    expected=NAME_RULE,
                    todo=f"choose another one, for example {stage}-baseline",
                )
            return stages[stage], tag
    raise RecipeError(
        f"there is no stage or section '{section}'",
        where=layer.nearest((section,)),
        expected=near_names(section, [*stages, *SHARED_SECTIONS]),
        todo="correct the name; `plant --help` lists the stages",
    )


def check_sections(layer: Layer, components: Components) -> dict[str, tuple[StageSpec, str | None]]:
    """Stage and tag of each section that is not shared; `RecipeError` if one is neither."""
    return {section: split_section(section, layer, components) for section in layer.values if section not in SHARED_SECTIONS}


def resolve_steps(recipe: Layer, over: Layer, components: Components) -> list[Step]:
    """All steps of a recipe, in its order, but for stages that it names only after those that they feed (`StageSpec.feeds`).

    Args:
        recipe: the recipe; its sections are the steps.
        over: `--set` and flags: they change steps but add none. Values for `finetune` reach `finetune-baseline` too, but for what its own
            section gives.
        components: the registry.
    """
    steps = check_sections(recipe, components)
    named = {*SHARED_SECTIONS, *steps, *(spec.name for spec, _ in steps.values())}
    for section in over.values:
        if section not in named:
            raise RecipeError(
                f"the recipe has no section '{section}'",
                where=over.nearest((section,)),
                expected=near_names(section, named),
                todo="correct the name, or add the section to the recipe",
            )
    layer = merge(recipe, over)
    return [resolve_step([layer], spec, tag, components) for spec, tag in _order(list(steps.values()))]


def _order(steps: Sequence[tuple[StageSpec, str | None]]) -> list[tuple[StageSpec, str | None]]:
    """Stages and tags in the order given; where a stage stands before all sections of one that feeds it, these are brought forward."""
    ordered: dict[str, tuple[StageSpec, str | None]] = {}
    begun: set[str] = set()

    def place(spec: StageSpec, tag: str | None) -> None:
        begun.add(spec.name)
        for other, own in [found for found in steps if spec.name in found[0].feeds and found[0].name not in begun]:
            place(other, own)
        ordered.setdefault(join_tag(spec.name, tag), (spec, tag))

    for spec, tag in steps:
        place(spec, tag)
    return list(ordered.values())


def resolve_step(layers: Sequence[Layer], spec: StageSpec, tag: str | None, components: Components) -> Step:
    """One step from layers, of which later ones win.

    In each layer a tagged section inherits the keys of the untagged one, and `data`, `model` and `machine` inside a stage's section
    override the shared sections for that step alone.

    Args:
        layers: such as a recipe and the command line, if the command is for this step alone.
        spec: the stage.
        tag: the variant, or None.
        components: the registry.

    Raises:
        RecipeError: an unknown key, a missing value or one of the wrong type, with its origin.
        ComponentError: an unknown component, or an option that it does not take.
        UsageError: a tag that cannot name a folder, or options that cannot be meant (`Options.check_values`).
    """
    if tag is not None and not names_folder(tag):
        raise UsageError(
            f"the tag '{tag}' cannot name a folder", where=f"--tag {tag}", expected=NAME_RULE, todo="choose another, such as --tag baseline"
        )
    shown = join_tag(spec.name, tag)
    given = merge(*(_gather(layer, spec, shown) for layer in layers))
    options = _build(spec.options, given, OWN, shown)
    data = _build(DataSection, given, "data", "data")
    model = _build(ModelSection, given, "model", "model")
    machine = _build(MachineSection, given, "machine", "machine")
    if spec.needs_run:
        options, data = options.located(), data.located()
    _check_values(options, given, shown)
    sections: dict[str, Options] = {"data": data, "model": model, "machine": machine}
    used = spec.sections if spec.writes else ()  # an action records nothing, and may hand its flags on
    for part, section_options in [(OWN, options), *((name, sections[name]) for name in used)]:
        _check_components(section_options, given, part, shown if part == OWN else part, components)
    return Step(
        spec=spec,
        tag=tag,
        options=options,
        data=data,
        model=model,
        machine=machine,
        layer=given,
        values=write_out(options, components),
        sections={name: write_out(sections[name], components) for name in used},
    )


def _gather(layer: Layer, spec: StageSpec, shown: str) -> Layer:
    """What a layer says of a step: options of the stage under `OWN`, and the shared sections."""
    for section in (spec.name, shown, *SHARED_SECTIONS):
        _require_mapping(layer, section)
    own = merge(*(layer.moved((section,), OWN) for section in dict.fromkeys([spec.name, shown])))
    shared = Layer()
    for section in SHARED_SECTIONS:
        shared = merge(shared, layer.moved((section,), section))
        if section not in spec.options.model_fields:
            inner = own.moved((OWN, section), section)
            _require_mapping(inner, section)
            shared, own = merge(shared, inner), own.without((OWN, section))
    return merge(own, shared)


def _require_mapping(layer: Layer, section: str) -> None:
    value = layer.values.get(section, {})
    if not isinstance(value, dict):
        raise RecipeError(
            f"the section '{section}' is {value!r}",
            where=layer.nearest((section,)),
            expected="a mapping of options",
            todo=f"write `{section}:` and its options indented below, one per line",
        )


def _build(model: type[OptionsT], layer: Layer, part: str, shown: str) -> OptionsT:
    values = {key: _named(model, key, value) for key, value in layer.values.get(part, {}).items()}
    try:
        return model(**values)
    except ValidationError as error:
        raise explain(error, model, layer, part, shown) from error


def _check_values(options: Options, layer: Layer, shown: str) -> None:
    try:
        options.check_values()
    except UsageError as error:
        origin = layer.origins.get((OWN,), FLAGS)
        if origin == FLAGS:
            raise
        raise UsageError(error.what, where=f"{error.where} ({origin}, {shown})", expected=error.expected, todo=error.todo) from error


def _named(model: type[Options], key: str, value: Any) -> Any:
    """Options given for the default component, without its name, get the name."""
    if component_kind(model, key) is None or not isinstance(value, dict) or "name" in value:
        return value
    default = model.model_fields[key].default
    return {"name": default.name, **value} if hasattr(default, "name") else value


def _check_components(options: Options, layer: Layer, part: str, shown: str, components: Components) -> None:
    for field, kind, chosen in find_choices(options):
        try:
            components.resolve(kind, chosen)
        except ComponentError as error:
            where = f"{error.where} ({layer.nearest((part, field))}, {shown}.{field})"
            raise ComponentError(error.what, where=where, expected=error.expected, todo=error.todo) from error
