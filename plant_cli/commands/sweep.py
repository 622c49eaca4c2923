"""`plant sweep RECIPE --over section.key=…`: which values of a recipe are best on validation."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from plant_cli.api import (
    Column,
    Interrupted,
    PlantError,
    RecipeError,
    Request,
    Result,
    StageContext,
    StepResult,
    Table,
    UsageError,
    missing_package,
)
from plant_cli.api.context import Cell
from plant_cli.api.options import SHARED_SECTIONS
from plant_cli.commands.command_options import SweepOptions
from plant_cli.data.files import hash_json, replacing
from plant_cli.evaluation.drawing import draw_series, require_packages
from plant_cli.evaluation.results import Bound
from plant_cli.runs.ablation import NAMED_CHANGES, expand_changes
from plant_cli.runs.recipes import (
    dump_yaml,
    load_recipe,
    merge_layers,
    nest,
    parse_command,
    parse_sets,
    parse_value,
)
from plant_cli.runs.runner import RequestRunner, run_stage_below
from plant_cli.runs.side_by_side import Workers
from plant_cli.runs.steps import Step, resolve_steps
from plant_cli.training.judging import NETWORK_METRICS

Values = dict[str, Any]  # of a trial, by key: {"finetune.rate_head": 0.001}
LOGARITHMIC = 10  # the ratio of its ends from which a range is searched on a logarithmic scale
SWEEP_METRICS = (*NETWORK_METRICS, *NETWORK_METRICS.values())  # higher is better in each
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
Tell = Callable[[float | None], None]  # takes the figure of a trial, or None after a failure


@dataclass(kw_only=True)
class Trial:
    """The values of one training, and what came of it."""

    values: Values
    tell: Tell
    folder: str
    request: Request
    steps: Sequence[Step] = ()  # that are left
    summary: Mapping[str, Any] = field(default_factory=dict)  # of the last one that is done
    figure: float | None = None  # on validation
    seconds: float = 0.0
    error: PlantError | None = None

    def follow(self, outcomes: Mapping[str, StepResult | PlantError]) -> bool:
        """Take what its steps came to; whether some are left."""
        while self.steps and (outcome := outcomes.get(self.steps[0].name)) is not None:
            if isinstance(outcome, PlantError):
                self.error, self.steps = outcome, ()
            else:
                self.summary, self.steps = outcome.result.summary, self.steps[1:]
        return bool(self.steps)


def run(context: StageContext, options: SweepOptions) -> Result:
    """Train with many sets of values, and show all with their figure on validation; what is done already is skipped.

    Raises:
        UsageError: training does not measure the metric.
        PlantError: every trial failed; it is the error of the first one.
    """
    _require_measured(options.metric, SWEEP_METRICS)
    if options.figures is not None:
        require_packages()
    space = _read_space(options)
    request = context.request
    flags = {
        section: given for section, given in request.flags.items() if section in SHARED_SECTIONS
    }
    request = replace(request, recipe=options.recipe, resume=True, flags=flags, jobs=options.jobs)
    proposals = _propose(space, options.trials, context.machine.seed, options.jobs)
    runner = RequestRunner(request)
    with runner.working("a sweep") as workers:
        trials, over = _run_trials(runner, workers, proposals, options)
    ranked = sorted(
        trials, key=lambda trial: -1.0 if trial.figure is None else trial.figure, reverse=True
    )
    best = context.run_path / BEST
    _write_best(best, options.recipe, ranked[0].values)
    files = [] if options.figures is None else _draw(Path(options.figures), ranked, options.metric)
    notes = [
        f"{options.metric} on validation, one seed: of many trials the best is partly luck; compare it on other seeds, and test it once"
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
            *map(_show, trial.values.values()),
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
        ends = [parse_value(end, "--over") for end in given.split("..")] if ".." in given else []
        if (
            len(ends) == 2
            and all(isinstance(end, int | float) for end in ends)
            and ends[0] < ends[1]
        ):
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
        raise UsageError(
            "a range has no end of values",
            where="--over",
            expected="--trials with a range",
            todo="add --trials 20",
        )
    return space


def _run_trials(
    runner: RequestRunner,
    workers: Workers,
    proposals: Iterator[tuple[Values, Tell]],
    options: SweepOptions,
) -> tuple[list[Trial], bool]:
    """Trials in the order in which they ended, as many at a time as there are jobs; and whether the hours were over before the last.

    A step that several trials share runs once. A trial that fails does not stop the others.
    """
    until, more, stop = (
        float("inf") if options.hours is None else time.monotonic() + 3600 * options.hours,
        True,
        None,
    )
    outcomes, began = dict[str, StepResult | PlantError](), dict[str, tuple[Trial, float]]()
    going, ended = list[Trial](), dict[str, Trial]()
    while True:
        while (
            more
            and len(going) < options.jobs
            and (time.monotonic() < until or not (ended or going))
        ):
            proposal = next(proposals, None)
            more = proposal is not None
            going += [] if proposal is None else [_open(runner.request, *proposal)]
        if not going:
            break
        for trial in going:
            if (
                trial.follow(outcomes)
                and stop is None
                and workers.room
                and (step := trial.steps[0]).name not in workers.at_work
            ):
                began[step.name] = trial, time.monotonic()
                workers.begin(step.name, run_stage_below, trial.request, step.spec.name, step.tag)
        if stop is not None and not workers.at_work:
            raise stop
        if not workers.at_work:
            runner.require_going_on(going[0].folder)
        for name, outcome in workers.wait():
            trial, started = began[name]
            trial.seconds += time.monotonic() - started
            if isinstance(outcome, Interrupted):
                stop = outcome
            elif isinstance(outcome, StepResult | PlantError):
                outcomes[name] = outcome
            else:
                raise outcome
        for trial in [trial for trial in going if not trial.follow(outcomes)]:
            going.remove(trial)
            if trial.error is None:
                _require_measured(
                    options.metric, [name for name in SWEEP_METRICS if name in trial.summary]
                )
                trial.figure = trial.summary[options.metric]
            trial.tell(trial.figure)
            ended.setdefault(trial.folder, trial)
            came = (
                f"{options.metric} {100 * trial.figure:.1f}"
                if trial.figure is not None
                else f"failed: {trial.error}"
            )
            values = ", ".join(f"{key}={_show(value)}" for key, value in trial.values.items())
            runner.request.reporter.note(f"trial {len(ended)}: {values}: {came}")
    if all(trial.figure is None for trial in ended.values()):
        raise next(trial.error for trial in ended.values() if trial.error is not None)
    return list(ended.values()), more and next(proposals, None) is not None


def _open(request: Request, values: Values, tell: Tell) -> Trial:
    trial = Trial(
        values=values, tell=tell, folder=f"trial-{hash_json(values)[:8]}", request=request
    )
    try:
        trial.steps, sets = _plan(request, values, trial.folder)
        trial.request, trial.folder = replace(request, sets=sets), trial.steps[-1].name
    except PlantError as error:
        trial.error = error
    return trial


def _propose(
    space: Space, trials: int | None, seed: int, jobs: int
) -> Iterator[tuple[Values, Tell]]:
    """The values of one trial after the other, and what its figure is told to: all combinations, or as many as `trials`."""
    choices = {key: tried for key, tried in space.items() if isinstance(tried, list)}
    if len(choices) == len(space) and (
        trials is None or trials >= prod(map(len, choices.values()))
    ):
        for combination in product(*choices.values()):
            yield dict(zip(choices, combination, strict=True)), lambda figure: None
        return
    if find_spec("optuna") is None:
        otherwise = ", or values without ranges and trials for all combinations"
        raise missing_package(
            "optuna",
            "which chooses the values of trials",
            "sweep",
            where="--trials",
            otherwise=otherwise,
        )
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, constant_liar=jobs > 1
        )  # trials that go on count as bad ones, so none is asked twice
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(trials or 0):
        trial = study.ask()
        values: Values = {}
        for key, tried in space.items():
            if isinstance(tried, list):
                values[key] = tried[
                    trial.suggest_categorical(key, range(len(tried)))
                ]  # optuna takes no lists as values
            elif isinstance(tried.low, int) and isinstance(tried.high, int):
                values[key] = trial.suggest_int(key, tried.low, tried.high, log=tried.logarithmic)
            else:
                values[key] = float(
                    f"{trial.suggest_float(key, tried.low, tried.high, log=tried.logarithmic):.3g}"
                )

        def tell(figure: float | None, asked: optuna.Trial = trial) -> None:
            study.tell(
                asked, figure, state=optuna.trial.TrialState.FAIL if figure is None else None
            )

        yield values, tell


def _plan(request: Request, values: Values, name: str) -> tuple[list[Step], Sequence[str]]:
    """The stages of a trial of this name up to the one that trains the system, and the `--set` texts with which they run."""
    recipe, over = (
        load_recipe(str(request.recipe)).without(NAMED_CHANGES),
        parse_command(request.sets, request.flags),
    )
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
    steps = {
        step.spec.name: step
        for step in full
        if step.spec.name == system or system in step.spec.feeds
    }
    chosen = merge_layers(
        *(nest(tuple(key.split(".")), value, "--over") for key, value in values.items())
    )
    other = {
        step.name: step
        for step in resolve_steps(merge_layers(recipe, chosen), over, request.registry)
    }
    if any(
        (step.values, step.sections) != (other[step.name].values, other[step.name].sections)
        for step in full
    ):  # else as it is
        sets = (
            *sets,
            *(f"{NAMED_CHANGES}.{name}.{key}={json.dumps(value)}" for key, value in values.items()),
        )
        changed = expand_changes(
            merge_layers(recipe, parse_sets(sets).only({NAMED_CHANGES})), request.registry
        )
        copies = [
            step for step in resolve_steps(changed, over, request.registry) if step.tag == name
        ]
        steps |= {step.spec.name: step for step in copies if step.spec.name in steps}
    return list(steps.values()), sets


def _require_measured(metric: str, measured: Collection[str]) -> None:
    if metric not in measured:
        raise UsageError(
            f"training does not measure '{metric}' on validation",
            where="--metric",
            expected=f"one of {', '.join(measured)}",
            todo="choose one of these",
        )


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


def _show(value: Any) -> Cell:
    return (
        value
        if isinstance(value, int | float | str) and not isinstance(value, bool)
        else json.dumps(value)
    )
