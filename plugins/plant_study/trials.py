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
    going = _Going(runner=runner, workers=workers, proposals=proposals, search=search)
    while going.open_trials():
        going.begin_steps()
        if not workers.at_work:
            if going.stop is not None:
                raise going.stop
            runner.require_going_on(going.trials[0].folder)
        going.take_outcomes()
        for trial in [trial for trial in going.trials if not trial.follow(going.outcomes)]:
            going.end(trial)
    ended = list(going.ended.values())
    if all(trial.figure is None for trial in ended):
        raise next(trial.error for trial in ended if trial.error is not None)
    return ended, going.more and next(proposals, None) is not None


@dataclass(kw_only=True)
class _Going:
    """Trials that go on, and those that have ended."""

    runner: RequestRunner
    workers: Workers
    proposals: Iterator[Proposal]
    search: Search
    trials: list[Trial] = field(default_factory=list)
    ended: dict[str, Trial] = field(default_factory=dict)  # by folder
    outcomes: dict[str, StepResult | PlantError] = field(default_factory=dict)  # of steps
    began: dict[str, tuple[Trial, float]] = field(default_factory=dict)  # steps at work
    more: bool = True  # proposals are left
    stop: Interrupted | None = None  # why nothing more begins
    until: float = float("inf")

    def __post_init__(self) -> None:
        if self.search.hours is not None:
            self.until = time.monotonic() + 3600 * self.search.hours

    def open_trials(self) -> bool:
        """Open as many as there are jobs, while there is time, and one in any case; whether any
        goes on.
        """
        request = self.runner.request
        while self.more and len(self.trials) < request.jobs and self._in_time():
            proposal = next(self.proposals, None)
            self.more = proposal is not None
            if proposal is not None:
                self.trials.append(_open(request, *proposal))
        return bool(self.trials)

    def _in_time(self) -> bool:
        return time.monotonic() < self.until or not (self.ended or self.trials)

    def begin_steps(self) -> None:
        """Begin the next step of each trial that no other trial is at."""
        for trial in self.trials:
            if not trial.follow(self.outcomes) or self.stop is not None or not self.workers.room:
                continue
            name = trial.steps[0].name
            if name not in self.workers.at_work:
                self.began[name] = trial, time.monotonic()
                self.workers.begin(name, run_below, trial.request, name)

    def take_outcomes(self) -> None:
        """Wait for steps, and keep what they came to."""
        for name, outcome in self.workers.wait():
            trial, started = self.began[name]
            trial.seconds += time.monotonic() - started
            if isinstance(outcome, Interrupted):
                self.stop = outcome
            elif isinstance(outcome, StepResult | PlantError):
                self.outcomes[name] = outcome
            else:
                raise outcome

    def end(self, trial: Trial) -> None:
        """Judge a trial that has no steps left, and say what it reached."""
        metric, figures = self.search.metric, self.search.figures
        self.trials.remove(trial)
        if trial.error is None:
            require_measured(metric, [name for name in figures if name in trial.summary])
            trial.figure = trial.summary[metric]
        trial.tell(trial.figure)
        self.ended.setdefault(trial.folder, trial)
        came = f"failed: {trial.error}"
        if trial.figure is not None:
            came = f"{metric} {100 * trial.figure:.1f}"
        values = ", ".join(f"{key}={show_value(value)}" for key, value in trial.values.items())
        system = "" if trial.system == FULL else f"{trial.system}, "
        self.runner.request.reporter.note(f"trial {len(self.ended)}: {system}{values}: {came}")


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
