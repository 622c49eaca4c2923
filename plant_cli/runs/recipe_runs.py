"""Recipes that are run as a command asks: with seeds, jobs, or only tried out; and what their steps
came to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plant_cli.api import Column, Request, Result, Runner, Table
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.data.records import plain_values
from plant_cli.runs.ablation import NAMED_CHANGES, TUNING, expand_changes
from plant_cli.runs.recipe_options import RunOptions
from plant_cli.runs.recipes import RecipeLayer, load_recipe, merge_layers, parse_sets
from plant_cli.runs.steps import runs_nothing
from plant_cli.runs.tuning import TuneOptions, flatten, read_tuning

TRIED = ("epochs=1", "batch=8")  # of each training, when a recipe is tried out on 16 documents
NUMBERS_SHOWN = 4  # numbers of a step that are shown


def make_request(request: Request, options: RunOptions, sets: Sequence[str] = ()) -> Request:
    """The request that runs the recipe of the options; `sets` are values beside those of the
    command line.
    """
    sets = (*request.sets, *sets)
    if options.smoke:
        recipe = merge_layers(
            load_recipe(options.recipe), parse_sets(sets).only({NAMED_CHANGES, TUNING})
        )
        tuning = read_tuning(recipe)
        if tuning is None:
            sets = (*_smoke(expand_changes(recipe, request.registry)), *sets)
        else:  # the sections of its systems are named by what is chosen
            sets = (*_smoke(recipe.without(NAMED_CHANGES, TUNING)), *_shorten(tuning), *sets)
    flags = {
        section: given for section, given in request.flags.items() if section in SHARED_SECTIONS
    }
    return replace(
        request,
        recipe=options.recipe,
        seeds=options.seeds,
        jobs=options.jobs,
        sets=sets,
        flags=flags,
    )


def _shorten(tuning: TuneOptions) -> Iterator[str]:
    """The first value alone of all that are tried, and one epoch."""
    for key, values in flatten(tuning.over):
        first = 1 if key.endswith(".epochs") else values[0]
        yield f"{TUNING}.over.{key}={json.dumps([first])}"


def _smoke(recipe: RecipeLayer) -> Iterator[str]:
    yield "data.documents=16"
    for section, values in recipe.values.items():
        if section.startswith(("pretrain-attn", "finetune")):
            yield from (f"{section}.{value}" for value in TRIED)
        if isinstance(values, dict) and "train_share" in (
            values.get("data") or {}
        ):  # one document teaches nothing
            yield f"{section}.data.train_share=0.5"


def report_recipe(runner: Runner, request: Request) -> Result:
    """Run all steps of the recipe and report the outcome of each."""
    outcomes = runner.run_recipe(request)
    if not outcomes:
        raise runs_nothing(str(request.recipe))
    summaries = {o.name: plain_values(o.result.summary) for o in outcomes}
    rows = [
        (
            o.name,
            "unchanged" if o.unchanged else "done",
            round(o.seconds, 1),
            _show_numbers(summaries[o.name]),
        )
        for o in outcomes
    ]
    columns = (
        Column(name="step"),
        Column(name="status"),
        Column(name="seconds", kind="exact"),
        Column(name="main numbers"),
    )
    shown = [
        table for o in outcomes if not o.writes or o is outcomes[-1] for table in o.result.tables
    ]
    return Result(
        tables=[
            *shown,
            Table(title=f"{request.recipe} in {request.run_path}", columns=columns, rows=rows),
        ],
        data={
            o.name: {"unchanged": o.unchanged, "seconds": o.seconds, "summary": summaries[o.name]}
            for o in outcomes
        },
        next_step=outcomes[-1].result.next_step,
    )


def _show_numbers(summary: Mapping[str, Any]) -> str:
    numbers = {
        key: value
        for key, value in summary.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return ", ".join(
        f"{key} {show_number(key, value)}" for key, value in list(numbers.items())[:NUMBERS_SHOWN]
    )


def show_number(name: str, value: float) -> str:
    """A number of a summary: a metric, whose name has a capital as the field writes it, in
    points; others as they are.
    """
    return (
        f"{100 * value:.1f}"
        if isinstance(value, float) and name != name.lower() and 0 <= value <= 1
        else f"{value:.4g}"
    )
