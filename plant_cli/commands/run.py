"""`plant run RECIPE`: run all steps of an experiment and skip those that have not changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from plant_cli.api import Column, RecipeError, Request, Result, Runner, StageContext, Table
from plant_cli.commands.command_options import RunOptions
from plant_cli.data.records import plain_values
from plant_cli.runs.recipes import load_recipe

TRIED = ("epochs=1", "batch=8")  # of each training, when a recipe is tried out on 16 documents
NUMBERS_SHOWN = 4  # numbers of a step that are shown


def run(context: StageContext, options: RunOptions) -> Result:
    """Run the steps of a recipe in order."""
    request = context.request
    sets = (*_smoke(options.recipe), *request.sets) if options.smoke else request.sets
    return report_recipe(context.runner, replace(request, recipe=options.recipe, seeds=options.seeds, sets=sets))


def _smoke(recipe: str) -> Iterator[str]:
    yield "data.documents=16"
    for section in load_recipe(recipe).values:
        if section.startswith(("pretrain-attn", "finetune")):
            yield from (f"{section}.{value}" for value in TRIED)


def report_recipe(runner: Runner, request: Request) -> Result:
    """Run all steps of the recipe and report the outcome of each."""
    shared = {section: given for section, given in request.flags.items() if section != "run"}
    outcomes = runner.run_recipe(replace(request, flags=shared))
    if not outcomes:
        raise RecipeError(
            f"the recipe '{request.recipe}' runs nothing",
            where=str(request.recipe),
            expected="a section for each stage, such as `mig:` or `finetune:`",
            todo="`plant recipe show quickstart` shows an example",
        )
    summaries = {o.name: plain_values(o.result.summary) for o in outcomes}
    numbers = {
        name: [
            f"{key} {show_number(key, value)}"
            for key, value in summary.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        for name, summary in summaries.items()
    }
    rows = [
        (o.name, "unchanged" if o.unchanged else "done", round(o.seconds, 1), ", ".join(numbers[o.name][:NUMBERS_SHOWN])) for o in outcomes
    ]
    columns = (Column(name="step"), Column(name="status"), Column(name="seconds", kind="exact"), Column(name="main numbers"))
    shown = [table for o in outcomes if not o.writes or o is outcomes[-1] for table in o.result.tables]
    return Result(
        tables=[*shown, Table(title=f"{request.recipe} in {request.run_path}", columns=columns, rows=rows)],
        data={o.name: {"unchanged": o.unchanged, "seconds": o.seconds, "summary": summaries[o.name]} for o in outcomes},
        next_step=outcomes[-1].result.next_step,
    )


def show_number(name: str, value: float) -> str:
    """A number of a summary: a metric, whose name has a capital as the field writes it, in points; others as they are."""
    return f"{100 * value:.1f}" if isinstance(value, float) and name != name.lower() and 0 <= value <= 1 else f"{value:.4g}"
