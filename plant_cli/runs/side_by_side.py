"""Steps of a recipe side by side: those that do not wait for one another run in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from plant_cli.api import Reporter, Request, ResourceError, SilentReporter, StepResult, Task
from plant_cli.api.context import join_tag
from plant_cli.runs.folder import Run
from plant_cli.runs.processes import default_threads
from plant_cli.runs.repetition import mark_seed, split_seed
from plant_cli.runs.steps import Step

if TYPE_CHECKING:
    from plant_cli.runs.runner import RequestRunner

LOOK = 0.2  # seconds after which a request to stop is seen


def run_side_by_side(
    runner: RequestRunner, steps: Sequence[Step], run: Run, work: Callable[[Request, str], StepResult]
) -> list[StepResult]:
    """Run steps that write, as many at a time as the request has jobs, each after all that it reads; their results in the same order.

    `work` runs the step of a name in one of the processes, which are begun once and take one step after the other. The caller holds the
    lock of the run for all of them. After a failure, or once the user asked to stop, no further step begins; those at work end, or stop
    where `--resume` can go on.

    Raises:
        PlantError: a step failed, or was stopped.
        ResourceError: a process was killed.
    """
    jobs, reporter = runner.request.jobs, runner.request.reporter
    with _threads_shared(jobs), reporter.progress("steps", len(steps), "steps") as task, _pool(jobs) as pool:
        request = replace(runner.request, reporter=SilentReporter(), speak=None)
        return _finish_all(runner, steps, run, lambda name: pool.submit(work, request, name), task)


def _finish_all(
    runner: RequestRunner, steps: Sequence[Step], run: Run, begin: Callable[[str], Future[StepResult]], task: Task
) -> list[StepResult]:
    jobs, reporter = runner.request.jobs, runner.request.reporter
    waiting, running, results = list(steps), dict[Future[StepResult], str](), dict[str, StepResult]()
    stopping, failure = False, None
    while running or (waiting and failure is None and not stopping):
        if runner.interruption.requested and not stopping:
            stopping = True
            _stop_processes()
        most = jobs if results or run.header.data_hash else 1  # the first step makes the corpus
        room = 0 if stopping or failure else max(0, most - len(running))
        unfinished = {*(step.name for step in waiting), *running.values()}
        for step in [step for step in waiting if not find_awaited(step, steps) & unfinished][:room]:
            waiting.remove(step)
            reporter.note(f"{step.name}: start")
            running[begin(step.name)] = step.name
        for done in wait(running, timeout=LOOK, return_when=FIRST_COMPLETED).done:
            error = _take(done, running.pop(done), results, run, reporter)
            failure = failure or error
            task.advance()
    if failure is not None:
        raise failure
    for step in waiting[:1]:
        runner.require_going_on(step.name, run)
    return [results[step.name] for step in steps if step.name in results]


def _take(done: Future[StepResult], name: str, results: dict[str, StepResult], run: Run, reporter: Reporter) -> BaseException | None:
    """Add the result of a step that ended; or give its error."""
    error = done.exception()
    if error is not None:
        return _killed(name) if isinstance(error, BrokenProcessPool) else error
    results[name] = result = done.result()
    reporter.note(f"{name}: unchanged, skipped" if result.unchanged else f"{name}: done in {result.seconds:.0f} s")
    record = run.folder(name).record()
    for warning in [] if record is None or result.unchanged else record.warnings:
        reporter.warn(f"{name}: {warning}")
    return None


def find_late(steps: Iterable[Step]) -> list[Step]:
    """Actions, comparisons of several systems, and what reads them: they run after all others, in turn."""
    late: list[Step] = []
    for step in steps:
        if not step.spec.writes or step.spec.compares or any(step.spec.name in other.spec.feeds for other in late):
            late.append(step)
    return late


def find_awaited(step: Step, steps: Iterable[Step]) -> set[str]:
    """Names of the steps that have to end before this one begins: for each stage that it reads, the one of its tag and seed."""
    names, (tag, seed) = {other.name for other in steps}, split_seed(step.tag)
    awaited = set()
    for stage in {other.spec.name for other in steps if step.spec.name in other.spec.feeds or other.spec.name in step.spec.reads}:
        given = step.values.get(step.spec.reads[stage]) if stage in step.spec.reads else tag
        candidates = [given, None] if seed is None else [mark_seed(given, seed), given, mark_seed(None, seed), None]
        awaited |= set([name for candidate in candidates if (name := join_tag(stage, candidate)) in names][:1])
    return awaited


def _killed(name: str) -> ResourceError:
    return ResourceError(
        f"the process of '{name}' was ended from outside",
        where="--jobs",
        expected="memory for all processes at once, on the card, too",
        todo="run the same command again with --resume and fewer --jobs",
    )


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield pool
    finally:
        _stop_processes()
        pool.shutdown(cancel_futures=True)


def _stop_processes() -> None:
    """A step at work stops at its next checkpoint, the second time at once; a process without one goes on."""
    for process in multiprocessing.active_children():
        os.kill(process.pid or 0, signal.SIGINT)


def _begin() -> None:
    """Leave signals to the parent, which passes on the first, and end with it: another command may then work in the run."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # between two steps
    sys.stdout = sys.stderr  # what plugins print is no result
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _threads_shared(jobs: int) -> Iterator[None]:
    """Within it new processes take their share of the cores."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(max(1, default_threads() // jobs))
    try:
        yield
    finally:
        os.environ.pop("OMP_NUM_THREADS")
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before
