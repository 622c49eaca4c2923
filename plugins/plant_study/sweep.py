"""`plant sweep RECIPE --over section.key=…`: which values of a recipe are best on validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from plant_report.drawing import draw_series, require_packages

from plant_cli.api import Column, Result, StageContext, Table, UsageError
from plant_cli.api.context import Cell
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.data.files import replacing
from plant_cli.evaluation.results import Bound
from plant_cli.runs.ablation import FULL
from plant_cli.runs.recipes import dump_yaml, parse_value
from plant_cli.runs.runner import RequestRunner
from plant_cli.runs.tuning import Values, unflatten
from plant_cli.training.judging import NETWORK_METRICS
from plant_study import SweepOptions
from plant_study.trials import (
    Range,
    Search,
    Space,
    Trial,
    propose_trials,
    require_measured,
    run_trials,
    show_value,
)

SWEEP_METRICS = (*NETWORK_METRICS, *NETWORK_METRICS.values())  # higher is better in each
BEST = "best.yaml"  # the best recipe, in the run folder


def run(context: StageContext, options: SweepOptions) -> Result:
    """Train with many sets of values, and show all with their figure on validation; what is done
    already is skipped.

    Raises:
        UsageError: training does not measure the metric.
        PlantError: every trial failed; it is the error of the first one.
    """
    require_measured(options.metric, SWEEP_METRICS)
    if options.figures is not None:
        require_packages()
    space = _read_space(options)
    request = context.request
    flags = {
        section: given for section, given in request.flags.items() if section in SHARED_SECTIONS
    }
    request = replace(request, recipe=options.recipe, resume=True, flags=flags, jobs=options.jobs)
    proposals = (
        (FULL, values, tell)
        for values, tell in propose_trials(
            space, options.trials, context.machine.seed, options.jobs
        )
    )
    runner = RequestRunner(request)
    search = Search(metric=options.metric, figures=SWEEP_METRICS, hours=options.hours)
    with runner.working("a sweep") as workers:
        trials, over = run_trials(runner, workers, proposals, search)
    ranked = sorted(
        trials, key=lambda trial: -1.0 if trial.figure is None else trial.figure, reverse=True
    )
    best = context.run_path / BEST
    _write_best(best, options.recipe, ranked[0].values)
    files = [] if options.figures is None else _draw(Path(options.figures), ranked, options.metric)
    notes = [
        f"{options.metric} on validation, one seed: of many trials the best is partly luck; "
        "compare it on other seeds, and test it once"
    ]
    notes += (
        [f"failed trials: {sum(trial.figure is None for trial in ranked)}"]
        if ranked[-1].figure is None
        else []
    )
    notes += ["the hours were over before all trials"] if over else []
    notes.append(f"the best values are in {best}: plant run {best}")
    columns = [
        *(Column(name=key, kind="exact") for key in space),
        Column(name=options.metric, kind="points"),
    ]
    columns += [Column(name="seconds", kind="count"), Column(name="folder"), Column(name="error")]
    rows: list[list[Cell]] = [
        [
            *map(show_value, trial.values.values()),
            trial.figure,
            trial.seconds,
            trial.folder,
            "" if trial.error is None else trial.error.what,
        ]
        for trial in ranked
    ]
    return Result(
        tables=[
            Table(
                title=f"{len(trials)} trials of {options.recipe}",
                columns=columns,
                rows=rows,
                notes=notes,
            )
        ],
        data={
            "metric": options.metric,
            "best": ranked[0].values,
            "recipe": str(best),
            "trials": [
                {"values": trial.values, "figure": trial.figure, "folder": trial.folder}
                for trial in ranked
            ],
            "files": files,
        },
        summary={options.metric: ranked[0].figure, "trials": len(trials)},
    )


def _read_space(options: SweepOptions) -> Space:
    space: Space = {}
    for text in options.over:
        key, _, given = text.partition("=")
        tried = _read_tried(given)
        if tried is None or "." not in key or key.startswith("data."):
            raise UsageError(
                f"'{text}' gives nothing to try",
                where="--over",
                expected="a value of a stage or of the model, and what to try: "
                "finetune.rate_head=1e-4,1e-3 or 1e-5..1e-2",
                todo="write it like that; another corpus needs another run",
            )
        space[key] = tried
    if not options.trials and any(isinstance(tried, Range) for tried in space.values()):
        raise UsageError(
            "a range has no end of values",
            where="--over",
            expected="--trials with a range",
            todo="add --trials 20",
        )
    return space


def _read_tried(given: str) -> Range | list[Any] | None:
    """A range, `1e-5..1e-2`, or values; None if the text is neither."""
    if ".." not in given:
        listed: list[Any] | None = parse_value(f"[{given}]", "--over") if given else None
        return listed
    ends = [parse_value(end, "--over") for end in given.split("..")]
    numbers = [end for end in ends if isinstance(end, int | float)]
    rising = len(ends) == len(numbers) == 2 and numbers[0] < numbers[1]
    return Range(*numbers) if rising else None


def _write_best(path: Path, recipe: str, values: Values) -> None:
    """The recipe with the best values, by absolute path where it extends a file."""
    file = Path(recipe)
    layer = unflatten(values)
    content = {
        "summary": f"{recipe} with the values that were best on validation.",
        "extends": str(file.absolute()) if file.is_file() else recipe,
    }
    with replacing(path) as partial:
        partial.write_text(dump_yaml({**content, **layer.values}), encoding="utf-8")


def _draw(folder: Path, trials: Sequence[Trial], metric: str) -> list[str]:
    """A figure for each value that is a number: what trials reached with it. The paths of its
    files, SVG and PNG.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for key in trials[0].values:
        points = [
            (trial.values[key], Bound(value=100 * trial.figure))
            for trial in trials
            if trial.figure is not None
        ]
        if not all(isinstance(at, int | float) for at, _ in points):
            continue
        span = [at for at, _ in points]
        scale = "log" if Range(min(span), max(span)).logarithmic else "linear"
        settings = {"xlabel": key, "ylabel": f"{metric} on validation", "xscale": scale}
        (drawing,) = draw_series(
            key,
            f"{metric} by {key}",
            "One dot for each trial.",
            {"trials": points},
            settings,
            line=False,
        )
        svg, png = drawing.render()
        (folder / f"{key}.svg").write_text(svg, encoding="utf-8")
        (folder / f"{key}.png").write_bytes(png)
        files += [str(folder / f"{key}.{suffix}") for suffix in ("svg", "png")]
    return files
