"""`plant recipe`: list, show, check and copy recipes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from plant_cli.api import Column, NoOptions, RecipeError, Result, StageContext, Table, UsageError
from plant_cli.commands.command_options import CopyOptions, NameOptions
from plant_cli.data.files import replacing
from plant_cli.runs.ablation import expand_changes
from plant_cli.runs.recipes import (
    RecipeLayer,
    find_recipe,
    load_recipe,
    read_recipe,
    shipped_recipes,
)
from plant_cli.runs.steps import Step, resolve_steps, runs_nothing


def list_recipes(context: StageContext, options: NoOptions) -> Result:
    """List the recipes that come with `plant`."""
    rows = [(name, load_recipe(str(path)).summary) for name, path in shipped_recipes().items()]
    table = Table(
        title="Shipped recipes",
        columns=(Column(name="recipe"), Column(name="what it does")),
        rows=rows,
    )
    return Result(
        tables=[table],
        next_step="`plant run NAME` runs one, `plant recipe copy NAME` gives you a file to change",
    )


def show_recipe(context: StageContext, options: NameOptions) -> Result:
    """Show every value of a recipe and where it comes from."""
    steps = _resolve(context, options.recipe)
    rows = [row for step in steps for row in _rows(step, step.name, "options", step.values)]
    for section in ("data", "model", "machine"):
        users = [step for step in steps if section in step.sections]
        distinct = {str(step.sections[section]): step for step in reversed(users)}
        for step in reversed(distinct.values()):
            shown = section if len(distinct) == 1 else f"{section} ({step.name})"
            rows += _rows(step, shown, section, step.sections[section])
    columns = (Column(name="key"), Column(name="value"), Column(name="from"))
    data = {step.name: {**step.values, **step.sections} for step in steps}
    return Result(tables=[Table(title=options.recipe, columns=columns, rows=rows)], data=data)


def check_recipe(context: StageContext, options: NameOptions) -> Result:
    """Validate a recipe without running it: every key, type, component and component option."""
    steps = _resolve(context, options.recipe)
    if not steps:
        raise runs_nothing(options.recipe)
    rows = [(step.name, step.spec.summary) for step in steps]
    table = Table(
        title=f"{options.recipe} is valid",
        columns=(Column(name="step"), Column(name="what it does")),
        rows=rows,
    )
    return Result(tables=[table], next_step=f"`plant run {shlex.quote(options.recipe)}` runs it")


def copy(context: StageContext, options: CopyOptions) -> Result:
    """Copy a recipe to a new file."""
    source = find_recipe(options.recipe)
    target = Path(options.file) if options.file is not None else Path(source.name)
    if target.exists():
        raise UsageError(
            f"'{target}' exists",
            where=str(target.absolute()),
            expected="a file that does not exist",
            todo=f"`plant recipe copy {shlex.quote(options.recipe)} OTHER.yaml`",
        )
    _require_base(source, target)
    with replacing(target) as temporary:
        temporary.write_bytes(source.read_bytes())
    return Result(
        data={"file": str(target)},
        next_step=f"change {target}, then `plant run {shlex.quote(str(target))}`",
    )


def _require_base(source: Path, target: Path) -> None:
    """Refuse a copy that would not find the recipe that it extends."""
    base = read_recipe(source).values.get("extends")
    if not isinstance(base, str):
        return
    try:
        find_recipe(base, target.absolute().parent)
    except RecipeError as error:
        raise UsageError(
            f"the copy would not find '{base}', which '{source}' extends",
            where=f"{target.absolute()}, key extends",
            expected="that recipe in the same position relative to the copy",
            todo=f"copy it there first, or copy '{source}' into its own folder, "
            f"{source.absolute().parent}",
        ) from error


def _resolve(context: StageContext, name: str) -> list[Step]:
    registry = context.request.registry
    return resolve_steps(expand_changes(load_recipe(name), registry), RecipeLayer(), registry)


def _rows(
    step: Step, shown: str, part: str, values: Any, path: tuple[str, ...] = ()
) -> list[tuple[str, str, str]]:
    rows = []
    for key, value in values.items():
        here = (*path, key)
        if isinstance(value, dict) and value:
            rows += _rows(step, shown, part, value, here)
        else:
            rows.append(
                (
                    ".".join((shown, *here)),
                    "" if value is None else str(value),
                    step.layer.origin((part, *here)),
                )
            )
    return rows
