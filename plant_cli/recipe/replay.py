"""Writing steps that were run as a recipe that runs them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plant_cli.recipe.syntax import dump_yaml

Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class DoneStep:
    """A step as it was run, with every value written out.

    Args:
        section: its name in a recipe (`finetune-baseline`).
        stage: its stage (`finetune`).
        options: the stage's options.
        sections: the shared sections that it used.
    """

    section: str
    stage: str
    options: Mapping[str, Any]
    sections: Sections


def write_recipe(summary: str, steps: Sequence[DoneStep]) -> str:
    """A recipe in YAML that resolves to exactly these steps.

    The shared sections are those of the latest untagged step; a step that used other values holds them in its own section.
    """
    shared: dict[str, Mapping[str, Any]] = {}
    for step in sorted(steps, key=lambda step: step.section == step.stage):  # tagged variants first: the main line wins
        shared.update(step.sections)
    by_section = {step.section: step for step in steps}
    values: dict[str, Any] = {"summary": summary, **{name: dict(shared[name]) for name in sorted(shared)}}
    for step in steps:
        main = by_section.get(step.stage, step)
        inherited = shared if main is step else {**shared, **main.sections}  # a tagged section inherits the overrides too
        own = {name: dict(section) for name, section in step.sections.items() if section != inherited[name]}
        options = step.options if main is step else {key: _undo(main.options.get(key), value) for key, value in step.options.items()}
        values[step.section] = {**options, **own}
    return dump_yaml(values)


def _undo(inherited: Any, value: Any) -> Any:
    """A value to be merged with an inherited one so that it is what comes out: keys of a mapping that it lacks are null."""
    if not (isinstance(inherited, dict) and isinstance(value, dict)) or "name" in value:  # a component is written out in full
        return value
    return {**dict.fromkeys(inherited.keys() - value.keys()), **{key: _undo(inherited.get(key), one) for key, one in value.items()}}
