"""`plant ablate RECIPE`: what each part of a setup adds, in one table of the setup and its
named changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plant_cli.api import Column, RecipeError, Request, Result, StageContext, Table, UsageError
from plant_cli.data.files import read_json, replacing, write_json
from plant_cli.evaluation.comparison import SIGNIFICANCE, make_overview
from plant_cli.runs.ablation import NAMED_CHANGES, TUNING
from plant_cli.runs.machine import describe_origin
from plant_cli.runs.recipe_runs import make_request, report_recipe
from plant_cli.runs.recipes import RecipeLayer, dump_yaml, load_recipe, merge_layers, parse_sets
from plant_cli.runs.runner import RequestRunner
from plant_cli.runs.tuning import (
    TuneOptions,
    flatten,
    name_choice,
    name_systems,
    read_tuning,
    unflatten,
)
from plant_study import AblateOptions
from plant_study.sweep import SWEEP_METRICS
from plant_study.trials import (
    Proposal,
    Search,
    Trial,
    propose_trials,
    require_measured,
    run_trials,
    show_value,
)

_BETWEEN = re.compile(r",(?=\s*[\w-]+\.[\w.-]+=)")  # two values; a list has commas, too
TRIALS_FILE = "tuning.json"  # what was tried and chosen, in the run folder
TUNED = "tuned.yaml"  # the recipe with the chosen values, in the run folder


def run(context: StageContext, options: AblateOptions) -> Result:
    """Run the recipe with all its changes, skip what is done, and show all systems in one table.

    What the recipe's section `tune` names is first tuned for each system, with the same trials, on
    validation.
    """
    changes = [one for text in options.change for one in _read_change(text)]
    recipe = merge_layers(
        load_recipe(options.recipe),
        parse_sets([*context.request.sets, *changes]).only({NAMED_CHANGES, TUNING}),
    )
    if NAMED_CHANGES not in recipe.values:
        raise UsageError(
            f"the recipe '{options.recipe}' names no changes",
            where=f"plant ablate {options.recipe}",
            expected=f"a section '{NAMED_CHANGES}' in it, or --change",
            todo="name one: --change 'uniform attention: finetune.init=random'",
        )
    request = make_request(context.request, options, changes)
    recipe = merge_layers(recipe, parse_sets(request.sets).only({TUNING}))
    tables, data = [], {}
    if (tuning := read_tuning(recipe)) is not None:
        tuned = _tune(context, request, recipe, tuning)
        request = replace(request, sets=(*request.sets, name_choice(tuned["chosen"])))
        tables, data = [tuned["table"]], {"tuning": tuned["data"]}
    done = report_recipe(context.runner, request)
    folder = next(name for name in reversed(done.data) if name.startswith("significance"))
    compared = read_json(context.run_path / folder / SIGNIFICANCE, "the comparison")
    given = (compared[key] for key in ("comparisons", "names", "notes"))
    table = make_overview(*given, paper=False, spreads=compared.get("spreads", ()))
    return Result(
        tables=[*tables, table, done.tables[-1]],
        data={"comparison": compared, "steps": done.data, **data},
        summary=done.summary,
    )


def _tune(
    context: StageContext, request: Request, recipe: RecipeLayer, tuning: TuneOptions
) -> dict[str, Any]:
    """Try the same values on every system for which none were chosen yet; the table of it, its
    JSON, and all choices.
    """
    require_measured(tuning.metric, SWEEP_METRICS)
    space = _read_space(recipe, tuning)
    wanted = [name for name in name_systems(recipe) if name not in tuning.chosen]

    def give() -> Iterator[Proposal]:
        for name in wanted:
            for values, tell in propose_trials(
                space, tuning.trials, context.machine.seed, request.jobs
            ):
                yield name, values, tell

    runner = RequestRunner(replace(request, seeds=1, resume=True))
    search = Search(metric=tuning.metric, figures=SWEEP_METRICS)
    trials: list[Trial] = []
    if wanted:
        with runner.working("an ablation") as workers:
            trials, _ = run_trials(runner, workers, give(), search)
    best = {name: _find_best(name, trials) for name in wanted}
    chosen = {name: dict(flatten(values)) for name, values in tuning.chosen.items()}
    chosen |= {name: trial.used for name, trial in best.items()}
    made = describe_origin()
    data = {
        **made,
        "metric": tuning.metric,
        "seed": context.machine.seed,
        "systems": {
            name: {
                "chosen": best[name].used,
                "figure": best[name].figure,
                "trials": [
                    {
                        "values": one.values,
                        "figure": one.figure,
                        "epochs": one.epochs,
                        "folder": one.folder,
                    }
                    for one in trials
                    if one.system == name
                ],
            }
            for name in wanted
        },
    }
    if wanted:
        write_json(context.run_path / TRIALS_FILE, data)
        _write_tuned(context.run_path / TUNED, str(request.recipe), chosen)
    return {"chosen": chosen, "data": data, "table": _tabulate(best, trials, tuning.metric)}


def _read_space(recipe: RecipeLayer, tuning: TuneOptions) -> dict[str, Any]:
    space = dict(flatten(tuning.over))
    for key, tried in space.items():
        if not isinstance(tried, list) or not tried or "." not in key or key.startswith("data."):
            raise RecipeError(
                f"the section '{TUNING}' gives nothing to try for '{key}'",
                where=recipe.nearest((TUNING, "over", *key.split("."))),
                expected="a list of values of a stage or of the model: `finetune: {epochs: [8, "
                "24]}`",
                todo="write it like that; another corpus needs another run",
            )
    return space


def _find_best(name: str, trials: Sequence[Trial]) -> Trial:
    """The trial of a system with the highest figure; the first of equals, which is the smallest
    change.
    """
    own = [trial for trial in trials if trial.system == name]
    judged = [trial for trial in own if trial.figure is not None]
    if not judged:
        raise next(trial.error for trial in own if trial.error is not None)
    return max(judged, key=lambda trial: trial.figure or 0.0)


def _write_tuned(path: Path, recipe: str, chosen: Mapping[str, Mapping[str, Any]]) -> None:
    file = Path(recipe)
    content = {
        "summary": f"{recipe} with the values that were best for each system on validation.",
        "extends": str(file.absolute()) if file.is_file() else recipe,
        TUNING: {
            "chosen": {name: unflatten(dict(values)).values for name, values in chosen.items()}
        },
    }
    with replacing(path) as partial:
        partial.write_text(dump_yaml(content), encoding="utf-8")


def _tabulate(best: Mapping[str, Trial], trials: Sequence[Trial], metric: str) -> Table:
    rows: list[list[str | int | float | None]] = []
    for name, trial in best.items():
        own = [one for one in trials if one.system == name]
        values = ", ".join(f"{key}={show_value(value)}" for key, value in trial.used.items())
        rows.append([name, len(own), sum(one.epochs for one in own), values, trial.figure])
    return Table(
        title=f"Tuned on validation, {len(best)} systems",
        columns=[
            Column(name="system"),
            Column(name="trials", kind="count"),
            Column(name="epochs", kind="count"),
            Column(name="chosen"),
            Column(name=metric, kind="points"),
        ],
        rows=rows,
        notes=[
            "every system was given the same values to try; trials that differ in values that a "
            "system makes no use of are one",
            "one seed; the best of many trials is partly luck; test was read after all choices",
            f"{TRIALS_FILE} has all trials, {TUNED} is the recipe with these values",
        ],
    )


def _read_change(text: str) -> Iterator[str]:
    """The `--set` texts of a change that is written as `name: section.key=value,
    section.key=value`.
    """
    name, _, values = text.partition(":")
    if not values.strip() or "." in name or "=" in name:
        raise UsageError(
            f"'{text}' is no change",
            where="--change",
            expected="a name without a point or `=`, a colon, and values: 'one head: "
            "model.decoder.heads=1'",
            todo="write it like that",
        )
    yield from (
        f"{NAMED_CHANGES}.{name.strip()}.{value.strip()}" for value in _BETWEEN.split(values)
    )
