"""Progress on stderr: bars with rate and time left on a terminal; in a log a line for each
step, with its time, and a sign of life from steps that take long.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Task as RichTask
from rich.text import Text

from plant_cli.api import SilentReporter, Task
from plant_cli.data.printed_tables import printable, printable_cell

EVERY = 600.0  # seconds between two lines of one task in a log
OFTEN = 30.0  # the same where the user wants to know more


class ConsoleReporter:
    """The reporter of a command line. Quiet: warnings only; verbose: more lines in a log."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._quiet = quiet
        self._every = OFTEN if verbose else EVERY
        self._stream = stream or sys.stderr
        self._clock = clock
        self._bars: Progress | None = None
        self._in_task = False

    @contextmanager
    def progress(self, description: str, total: float | None, unit: str) -> Iterator[Task]:
        """A bar or lines for a task; the bar of an inner task is shown below the outer one, its
        lines if it takes long.
        """
        if self._quiet:
            with SilentReporter().progress(description, total, unit) as silent:
                yield silent
        elif self._stream.isatty():
            with self._bar(description, total, unit) as bar:
                yield bar
        else:
            outermost = not self._in_task
            lines = _LineTask(description, total, unit, self._say, self._clock, self._every)
            self._in_task = True
            try:
                yield lines
            finally:
                self._in_task = not outermost
            lines.finish(always=outermost)

    def note(self, message: str) -> None:
        """Show a message, unless quiet."""
        if not self._quiet:
            self._say(message)

    def warn(self, message: str) -> None:
        """Show a warning."""
        self._say(f"warning: {message}")

    def _say(self, message: str) -> None:
        message = printable(message)
        if self._bars is not None:
            self._bars.console.print(message, markup=False, highlight=False)
        else:
            print(message, file=self._stream, flush=True)

    @contextmanager
    def _bar(self, description: str, total: float | None, unit: str) -> Iterator[Task]:
        outermost = self._bars is None
        if self._bars is None:
            name, figures = (
                TextColumn(text, markup=False)
                for text in ("{task.description}", "{task.fields[figures]}")
            )
            columns = (
                name,
                BarColumn(),
                MofNCompleteColumn(),
                _RateColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                figures,
            )
            self._bars = Progress(*columns, console=Console(file=self._stream))
            self._bars.start()
        bars = self._bars
        task = bars.add_task(printable_cell(description), total=total, unit=unit, figures="")
        try:
            yield _BarTask(bars, task)
        finally:
            if outermost:
                bars.stop()
                self._bars = None
            else:
                bars.remove_task(task)


class _BarTask:
    def __init__(self, bars: Progress, task: TaskID) -> None:
        self._bars = bars
        self._task = task

    def advance(self, amount: float = 1, **figures: float) -> None:
        shown: dict[str, Any] = {"figures": _format_figures(figures)} if figures else {}
        self._bars.update(self._task, advance=amount, **shown)


class _LineTask:
    def __init__(
        self,
        description: str,
        total: float | None,
        unit: str,
        say: Callable[[str], None],
        clock: Callable[[], float],
        every: float,
    ) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._say, self._clock, self._every = say, clock, every
        self._done = 0.0
        self._figures: dict[str, float] = {}
        self._start = self._last = clock()

    def advance(self, amount: float = 1, **figures: float) -> None:
        self._done = min(
            self._done + amount, self._total or math.inf
        )  # processes share what may not divide evenly
        self._figures.update(figures)
        now = self._clock()
        if now - self._last >= self._every:
            self._last = now
            rate = self._done / max(now - self._start, 1e-9)
            of = f" of {self._total:,.0f}" if self._total is not None else ""
            left = (
                f", {format_seconds((self._total - self._done) / rate)} left"
                if self._total is not None and rate > 0
                else ""
            )
            self._say(
                f"{self._description}: {self._done:,.0f}{of} {self._unit}, "
                f"{rate:,.1f}/s{left}{_suffix(self._figures)}"
            )

    def finish(self, *, always: bool) -> None:
        """Say that it is done; if not `always`, only where it took long."""
        taken = self._clock() - self._start
        if not always and taken < self._every:
            return
        self._say(
            f"{self._description}: done, {self._done:,.0f} {self._unit} in "
            f"{format_seconds(taken)}{_suffix(self._figures)}"
        )


def format_seconds(seconds: float) -> str:
    """A duration as `4.2s`, `3m05s` or `2h07m`."""
    if seconds < 60:
        return f"{max(seconds, 0):.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def _format_figures(figures: dict[str, float]) -> str:
    return " ".join(f"{name}={value:.4g}" for name, value in figures.items())


def _suffix(figures: dict[str, float]) -> str:
    return f", {_format_figures(figures)}" if figures else ""


class _RateColumn(ProgressColumn):
    def render(self, task: RichTask) -> Text:
        return Text(
            f"{task.speed:,.1f} {task.fields['unit']}/s" if task.speed else "",
            style="progress.data.speed",
        )
