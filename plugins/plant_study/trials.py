"""Trials: trainings of systems with values to try, judged by a figure of validation; test is
never read.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from math import prod
from typing import Any

from plant_cli.api import (
    Interrupted,
    PlantError,
    Request,
    StepResult,
    UsageError,
    missing_package,
)
from plant_cli.api.context import Cell
from plant_cli.data.files import hash_json
from plant_cli.runs.ablation import FULL
from plant_cli.runs.runner import RequestRunner, run_below
from plant_cli.runs.side_by_side import Workers
from plant_cli.runs.steps import Step
from plant_cli.runs.tuning import Values, name_choice

LOGARITHMIC = 10  # the ratio of its ends from which a range is searched on a logarithmic scale


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

    system: str
    values: Values
    tell: Tell
    folder: str
    request: Request
    steps: Sequence[Step] = ()  # that are left
    summary: Mapping[str, Any] = field(default_factory=dict)  # of the last one that is done
    figure: float | None = None  # on validation
    used: Values = field(default_factory=dict)  # those that the system makes use of
    epochs: int = 0  # at most, in the stage that trains the system
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


Proposal = tuple[str, Values, Tell]
"""A system, the values to try on it, and what its figure is told to."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """How trials are judged, and how many are at work."""

    metric: str  # a figure of validation
    figures: Collection[str]  # those that training may measure
    hours: float | None = None  # after which no trial begins


def run_trials(
    runner: RequestRunner,
    workers: Workers,
    proposals: Iterator[Proposal],
    search: Search,
) -> tuple[list[Trial], bool]:
    """Trials in the order in which they ended, as many at a time as there are jobs; and whether the
    hours were over before the last.

    A step that several trials share runs once. A trial that fails does not stop the others.
    """
    until, more, stop = (
        float("inf") if search.hours is None else time.monotonic() + 3600 * search.hours,
        True,
        None,
    )
    outcomes, began = dict[str, StepResult | PlantError](), dict[str, tuple[Trial, float]]()
    going, ended = list[Trial](), dict[str, Trial]()
    while True:
        while (
            more
            and len(going) < runner.request.jobs
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
                workers.begin(step.name, run_below, trial.request, step.name)
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
                require_measured(
                    search.metric, [name for name in search.figures if name in trial.summary]
                )
                trial.figure = trial.summary[search.metric]
            trial.tell(trial.figure)
            ended.setdefault(trial.folder, trial)
            came = (
                f"{search.metric} {100 * trial.figure:.1f}"
                if trial.figure is not None
                else f"failed: {trial.error}"
            )
            values = ", ".join(f"{key}={show_value(value)}" for key, value in trial.values.items())
            system = "" if trial.system == FULL else f"{trial.system}, "
            runner.request.reporter.note(f"trial {len(ended)}: {system}{values}: {came}")
    if all(trial.figure is None for trial in ended.values()):
        raise next(trial.error for trial in ended.values() if trial.error is not None)
    return list(ended.values()), more and next(proposals, None) is not None


def _open(request: Request, system: str, values: Values, tell: Tell) -> Trial:
    sets = (*request.sets, name_choice({system: values}))
    trial = Trial(
        system=system,
        values=values,
        tell=tell,
        folder=f"{system}-trial-{hash_json(values)[:8]}",
        request=replace(request, sets=sets),
    )
    try:
        runner = RequestRunner(trial.request)
        assert runner.chosen is not None
        trial.folder, trial.used = runner.chosen.folders[system], runner.chosen.used[system]
        trial.steps = runner.steps_to(trial.folder)
        last = trial.steps[-1]
        trial.epochs = 0 if last.options.ignores("epochs") else last.values.get("epochs") or 0
    except PlantError as error:
        trial.error = error
    return trial


def propose_trials(
    space: Space, trials: int | None, seed: int, jobs: int
) -> Iterator[tuple[Values, Tell]]:
    """The values of one trial after the other, and what its figure is told to: all
    combinations, or as many as `trials`.
    """
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


def require_measured(metric: str, measured: Collection[str]) -> None:
    """Refuse a figure that training does not measure."""
    if metric not in measured:
        raise UsageError(
            f"training does not measure '{metric}' on validation",
            where="--metric",
            expected=f"one of {', '.join(measured)}",
            todo="choose one of these",
        )


def show_value(value: Any) -> Cell:
    """A value as a cell of a table."""
    return (
        value
        if isinstance(value, int | float | str) and not isinstance(value, bool)
        else json.dumps(value)
    )
