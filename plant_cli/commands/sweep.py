"""`plant sweep RECIPE --over section.key=…`: which values of a recipe are best on validation."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from plant_cli.api import Column, ComponentError, Interrupted, PlantError, RecipeError, Request, Result, StageContext, Table, UsageError
from plant_cli.api.context import Cell
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.commands.command_options import SweepOptions
from plant_cli.data.files import hash_json, replacing
from plant_cli.evaluation.results import Bound
from plant_cli.report.drawing import draw_series, require_packages
from plant_cli.runs.ablation import NAMED_CHANGES, expand_changes
from plant_cli.runs.recipes import dump_yaml, load_recipe, merge_layers, nest, parse_command, parse_sets, parse_value
from plant_cli.runs.steps import Step, resolve_steps

Values = dict[str, Any]  # of a trial, by key: {"finetune.rate_head": 0.001}
LOGARITHMIC = 10  # the ratio of its ends from which a range is searched on a logarithmic scale
BEST = "best.yaml"  # the best recipe, in the run folder


@dataclass(frozen=True)
class Range:
    """All values between two numbers, which count; whole numbers if both are whole."""

    low: float
    high: float

    @property
    def logarithmic(self) -> bool:
        """Whether values are drawn on a logarithmic scale."""
        return self.low > 0 and self.high >= LOGARITHMIC * self.low


Space = dict[str, Range | list[Any]]  # what is tried for each key


@dataclass(kw_only=True)
class Trial:
    """The values of one training, and what came of it."""

    values: Values
    folder: str
    figure: float | None = None  # on validation
    seconds: float = 0.0
    error: PlantError | None = None


def run(context: StageContext, options: SweepOptions) -> Result:
    """Train with one set of values after the other, and show all with their figure on validation; what is done already is skipped.

    Raises:
        PlantError: every trial failed; it is the error of the first one.
    """
    if options.figures is not None:
        require_packages()
    space = _read_space(options)
    request = context.request
    flags = {section: given for section, given in request.flags.items() if section in SHARED_SECTIONS}
    request = replace(request, recipe=options.recipe, resume=True, flags=flags)
    deadline = float("inf") if options.hours is None else time.monotonic() + 3600 * options.hours
    proposals = _propose(space, options.trials, context.machine.seed)
    trials: dict[str, Trial] = {}
    values: Values | None = next(proposals)
    while values is not None and (not trials or time.monotonic() < deadline):
        trial = _try(context, request, options.metric, values)
        trials.setdefault(trial.folder, trial)
        outcome = f"{options.metric} {100 * trial.figure:.1f}" if trial.figure is not None else f"failed: {trial.error}"
        context.reporter.note(f"trial {len(trials)}: {', '.join(f'{key}={_show(value)}' for key, value in values.items())}: {outcome}")
        values = _send(proposals, trial.figure)
    ranked = sorted(trials.values(), key=lambda trial: -1.0 if trial.figure is None else trial.figure, reverse=True)
    if ranked[0].figure is None:
        raise next(trial.error for trial in trials.values() if trial.error is not None)
    best = context.run_path / BEST
    _write_best(best, options.recipe, ranked[0].values)
    files = [] if options.figures is None else _draw(Path(options.figures), ranked, options.metric)
    notes = [
        f"{options.metric} on validation, one seed: of many trials the best is partly luck; compare it on other seeds, and test it once"
    ]
    notes += [f"failed trials: {sum(trial.figure is None for trial in ranked)}"] if ranked[-1].figure is None else []
    notes += ["the hours were over before all trials"] if values is not None else []
    notes.append(f"the best values are in {best}: plant run {best}")
    columns = [*(Column(name=key, kind="exact") for key in space), Column(name=options.metric, kind="points")]
    columns += [Column(name="seconds", kind="count"), Column(name="folder"), Column(name="error")]
    rows: list[list[Cell]] = [
        [*map(_show, trial.values.values()), trial.figure, trial.seconds, trial.folder, "" if trial.error is None else trial.error.what]
        for trial in ranked
    ]
    return Result(
        tables=[Table(title=f"{len(trials)} trials of {options.recipe}", columns=columns, rows=rows, notes=notes)],
        data={
            "metric": options.metric,
            "best": ranked[0].values,
            "recipe": str(best),
            "trials": [{"values": trial.values, "figure": trial.figure, "folder": trial.folder} for trial in ranked],
            "files": files,
        },
        summary={options.metric: ranked[0].figure, "trials": len(trials)},
    )


def _read_space(options: SweepOptions) -> Space:
    space: Space = {}
    for text in options.over:
        key, _, given = text.partition("=")
        ends = [parse_value(end, "--over") for end in given.split("..")] if ".." in given else []
        if len(ends) == 2 and all(isinstance(end, int | float) for end in ends) and ends[0] < ends[1]:
            space[key] = Range(*ends)
        elif given and not ends:
            space[key] = parse_value(f"[{given}]", "--over")
        if key not in space or "." not in key or key.startswith("data."):
            raise UsageError(
                f"'{text}' gives nothing to try",
                where="--over",
                expected="a value of a stage or of the model, and what to try: finetune.rate_head=1e-4,1e-3 or 1e-5..1e-2",
                todo="write it like that; another corpus needs another run",
            )
    if not options.trials and any(isinstance(tried, Range) for tried in space.values()):
        raise UsageError("a range has no end of values", where="--over", expected="--trials with a range", todo="add --trials 20")
    return space


def _propose(space: Space, trials: int | None, seed: int) -> Generator[Values, float | None, None]:
    """The values of one trial after the other, to which its figure is sent back: all combinations, or as many as `trials`."""
    choices = {key: tried for key, tried in space.items() if isinstance(tried, list)}
    if len(choices) == len(space) and (trials is None or trials >= prod(map(len, choices.values()))):
        for combination in product(*choices.values()):
            yield dict(zip(choices, combination, strict=True))
        return
    if find_spec("optuna") is None:
        raise ComponentError(
            "the package optuna, which chooses the values of trials, is not installed",
            where="--trials",
            expected="the extra `sweep`, or values without ranges and trials for all combinations",
            todo="pip install 'plant-cli[sweep]'",
        )
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(trials or 0):
        trial = study.ask()
        values: Values = {}
        for key, tried in space.items():
            if isinstance(tried, list):
                values[key] = tried[trial.suggest_categorical(key, range(len(tried)))]  # optuna takes no lists as values
            elif isinstance(tried.low, int) and isinstance(tried.high, int):
                values[key] = trial.suggest_int(key, tried.low, tried.high, log=tried.logarithmic)
            else:
                values[key] = float(f"{trial.suggest_float(key, tried.low, tried.high, log=tried.logarithmic):.3g}")
        figure = yield values
        if figure is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, figure)


def _send(proposals: Generator[Values, float | None, None], figure: float | None) -> Values | None:
    """The next values; None after the last ones."""
    try:
        return proposals.send(figure)
    except StopIteration:
        return None


def _try(context: StageContext, request: Request, metric: str, values: Values) -> Trial:
    """Train with these values, or go on with a training with them; nothing but train and validation is read."""
    trial, started = Trial(values=values, folder=f"trial-{hash_json(values)[:8]}"), time.monotonic()
    try:
        steps, sets = _plan(request, values, trial.folder)
        trial.folder = steps[-1].name
        reached = [context.runner.run_stage(replace(request, sets=sets), step.spec.name, step.tag) for step in steps][-1]
    except Interrupted:
        raise
    except PlantError as error:
        trial.error = error
    else:
        trial.figure = _read_figure(reached.summary, metric)  # a wrong name is told after the first trial, not after the last
    trial.seconds = time.monotonic() - started
    return trial


def _plan(request: Request, values: Values, name: str) -> tuple[list[Step], Sequence[str]]:
    """The stages of a trial of this name up to the one that trains the system, and the `--set` texts with which they run."""
    recipe, over = load_recipe(str(request.recipe)).without(NAMED_CHANGES), parse_command(request.sets, request.flags)
    full = [step for step in resolve_steps(recipe, over, request.registry) if step.tag is None]
    system = next((step.spec.name for step in full if step.spec.system == "trains"), None)
    if system is None:
        raise RecipeError(
            f"the recipe '{request.recipe}' trains nothing",
            where=str(request.recipe),
            expected="a section `finetune`",
            todo="`plant recipe show recommended` shows an example",
        )
    sets = request.sets
    steps = {step.spec.name: step for step in full if step.spec.name == system or system in step.spec.feeds}
    chosen = merge_layers(*(nest(tuple(key.split(".")), value, "--over") for key, value in values.items()))
    other = {step.name: step for step in resolve_steps(merge_layers(recipe, chosen), over, request.registry)}
    if any((step.values, step.sections) != (other[step.name].values, other[step.name].sections) for step in full):  # else as it is
        sets = (*sets, *(f"{NAMED_CHANGES}.{name}.{key}={json.dumps(value)}" for key, value in values.items()))
        changed = expand_changes(merge_layers(recipe, parse_sets(sets).only({NAMED_CHANGES})), request.registry)
        copies = [step for step in resolve_steps(changed, over, request.registry) if step.tag == name]
        steps |= {step.spec.name: step for step in copies if step.spec.name in steps}
    return list(steps.values()), sets


def _read_figure(summary: Mapping[str, Any], metric: str) -> float:
    figure = summary.get(metric)
    if not isinstance(figure, float):
        raise UsageError(
            f"training does not measure '{metric}' on validation",
            where="--metric",
            expected=f"one of {', '.join(name for name, value in summary.items() if isinstance(value, float))}",
            todo="choose one of these",
        )
    return figure


def _write_best(path: Path, recipe: str, values: Values) -> None:
    """The recipe with the best values, by absolute path where it extends a file."""
    file = Path(recipe)
    layer = merge_layers(*(nest(tuple(key.split(".")), value, "") for key, value in values.items()))
    content = {
        "summary": f"{recipe} with the values that were best on validation.",
        "extends": str(file.absolute()) if file.is_file() else recipe,
    }
    with replacing(path) as partial:
        partial.write_text(dump_yaml({**content, **layer.values}), encoding="utf-8")


def _draw(folder: Path, trials: Sequence[Trial], metric: str) -> list[str]:
    """A figure for each value that is a number: what trials reached with it. The paths of its files, SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for key in trials[0].values:
        points = [(trial.values[key], Bound(value=100 * trial.figure)) for trial in trials if trial.figure is not None]
        if not all(isinstance(at, int | float) for at, _ in points):
            continue
        span = [at for at, _ in points]
        scale = "log" if Range(min(span), max(span)).logarithmic else "linear"
        settings = {"xlabel": key, "ylabel": f"{metric} on validation", "xscale": scale}
        (drawing,) = draw_series(key, f"{metric} by {key}", "One dot for each trial.", {"trials": points}, settings, line=False)
        svg, png = drawing.render()
        (folder / f"{key}.svg").write_text(svg, encoding="utf-8")
        (folder / f"{key}.png").write_bytes(png)
        files += [str(folder / f"{key}.{suffix}") for suffix in ("svg", "png")]
    return files


def _show(value: Any) -> Cell:
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else json.dumps(value)
