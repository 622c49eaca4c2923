"""Recipes as they are run: `plant run RECIPE`, `plant ablate RECIPE` with its named changes, and `plant quickstart`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plant_cli.api import BackboneSpec, Column, RecipeError, Request, Result, Runner, StageContext, Table, UsageError
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.commands.command_options import AblateOptions, QuickstartOptions, RunOptions
from plant_cli.data.files import read_json
from plant_cli.data.records import plain_values
from plant_cli.evaluation.comparison import SIGNIFICANCE, make_overview
from plant_cli.runs.ablation import NAMED_CHANGES, expand_changes
from plant_cli.runs.recipes import RecipeLayer, load_recipe, merge_layers, parse_sets

TRIED = ("epochs=1", "batch=8")  # of each training, when a recipe is tried out on 16 documents
NUMBERS_SHOWN = 4  # numbers of a step that are shown
BETWEEN_VALUES = re.compile(r",(?=\s*[\w-]+\.[\w.-]+=)")  # a list has commas, too
QUICKSTART = "quickstart"
ENCODER, SMALL_ENCODER = "minilm", "tiny"


def run(context: StageContext, options: RunOptions) -> Result:
    """Run the steps of a recipe in order."""
    return report_recipe(context.runner, make_request(context.request, options))


def make_request(request: Request, options: RunOptions, sets: Sequence[str] = ()) -> Request:
    """The request that runs the recipe of the options; `sets` are values beside those of the command line."""
    sets = (*request.sets, *sets)
    if options.smoke:
        recipe = expand_changes(merge_layers(load_recipe(options.recipe), parse_sets(sets).only({NAMED_CHANGES})), request.registry)
        sets = (*_smoke(recipe), *sets)
    flags = {section: given for section, given in request.flags.items() if section in SHARED_SECTIONS}
    return replace(request, recipe=options.recipe, seeds=options.seeds, jobs=options.jobs, sets=sets, flags=flags)


def _smoke(recipe: RecipeLayer) -> Iterator[str]:
    yield "data.documents=16"
    for section, values in recipe.values.items():
        if section.startswith(("pretrain-attn", "finetune")):
            yield from (f"{section}.{value}" for value in TRIED)
        if isinstance(values, dict) and "train_share" in (values.get("data") or {}):  # one document teaches nothing
            yield f"{section}.data.train_share=0.5"


def report_recipe(runner: Runner, request: Request) -> Result:
    """Run all steps of the recipe and report the outcome of each."""
    outcomes = runner.run_recipe(request)
    if not outcomes:
        raise RecipeError(
            f"the recipe '{request.recipe}' runs nothing",
            where=str(request.recipe),
            expected="a section for each stage, such as `mig:` or `finetune:`",
            todo="`plant recipe show quickstart` shows an example",
        )
    summaries = {o.name: plain_values(o.result.summary) for o in outcomes}
    rows = [(o.name, "unchanged" if o.unchanged else "done", round(o.seconds, 1), _show_numbers(summaries[o.name])) for o in outcomes]
    columns = (Column(name="step"), Column(name="status"), Column(name="seconds", kind="exact"), Column(name="main numbers"))
    shown = [table for o in outcomes if not o.writes or o is outcomes[-1] for table in o.result.tables]
    return Result(
        tables=[*shown, Table(title=f"{request.recipe} in {request.run_path}", columns=columns, rows=rows)],
        data={o.name: {"unchanged": o.unchanged, "seconds": o.seconds, "summary": summaries[o.name]} for o in outcomes},
        next_step=outcomes[-1].result.next_step,
    )


def _show_numbers(summary: Mapping[str, Any]) -> str:
    numbers = {key: value for key, value in summary.items() if isinstance(value, int | float) and not isinstance(value, bool)}
    return ", ".join(f"{key} {show_number(key, value)}" for key, value in list(numbers.items())[:NUMBERS_SHOWN])


def show_number(name: str, value: float) -> str:
    """A number of a summary: a metric, whose name has a capital as the field writes it, in points; others as they are."""
    return f"{100 * value:.1f}" if isinstance(value, float) and name != name.lower() and 0 <= value <= 1 else f"{value:.4g}"


def ablate(context: StageContext, options: AblateOptions) -> Result:
    """Run the recipe with all its changes, skip what is done, and show all systems in one table."""
    changes = [one for text in options.change for one in _read_change(text)]
    if not changes and NAMED_CHANGES not in load_recipe(options.recipe).values:
        raise UsageError(
            f"the recipe '{options.recipe}' names no changes",
            where=f"plant ablate {options.recipe}",
            expected=f"a section '{NAMED_CHANGES}' in it, or --change",
            todo="name one: --change 'uniform attention: finetune.init=random'",
        )
    done = report_recipe(context.runner, make_request(context.request, options, changes))
    folder = next(name for name in reversed(done.data) if name.startswith("significance"))
    compared = read_json(context.run_path / folder / SIGNIFICANCE, "the comparison")
    given = (compared[key] for key in ("comparisons", "names", "notes"))
    table = make_overview(*given, paper=False, spreads=compared.get("spreads", ()))
    return Result(tables=[table, done.tables[-1]], data={"comparison": compared, "steps": done.data}, summary=done.summary)


def _read_change(text: str) -> Iterator[str]:
    """The `--set` texts of a change that is written as `name: section.key=value, section.key=value`."""
    name, _, values = text.partition(":")
    if not values.strip() or "." in name or "=" in name:
        raise UsageError(
            f"'{text}' is no change",
            where="--change",
            expected="a name without a point or `=`, a colon, and values: 'one head: model.decoder.heads=1'",
            todo="write it like that",
        )
    yield from (f"{NAMED_CHANGES}.{name.strip()}.{value.strip()}" for value in BETWEEN_VALUES.split(values))


def quickstart(context: StageContext, options: QuickstartOptions) -> Result:
    """Run the recipe `quickstart` with the backbone that is installed."""
    if context.request.recipe is not None:
        raise UsageError(
            "quickstart always runs its own recipe",
            where=f"plant quickstart, --recipe {context.request.recipe}",
            expected="no other recipe",
            todo=f"`plant run {shlex.quote(context.request.recipe)}` runs that one",
        )
    backbone = options.backbone
    if backbone is None:  # the pretrained encoder if its weights are installed
        encoders = [spec for spec in context.components(BackboneSpec) if spec.name == ENCODER]
        backbone = ENCODER if any(spec.is_installed is None or spec.is_installed() for spec in encoders) else SMALL_ENCODER
    flags = {**context.request.flags, "model": {"backbone": backbone}}
    flags.pop("quickstart", None)
    request = replace(context.request, recipe=QUICKSTART, flags=flags)
    done = report_recipe(context.runner, request)
    return replace(
        done,
        next_step="on your own data: plant train data.parquet --run my-run   (`plant data check data.parquet` examines it first)",
    )
