"""Steps of a recipe side by side: those that do not wait for one another run in processes of
their own.
"""

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
from typing import TYPE_CHECKING, Any

from plant_cli.api import Request, ResourceError, SilentReporter, StepResult
from plant_cli.api.context import join_tag
from plant_cli.runs.folder import Run
from plant_cli.runs.processes import default_threads
from plant_cli.runs.repetition import find_input_tag, split_seed
from plant_cli.runs.steps import Step

if TYPE_CHECKING:
    from plant_cli.runs.runner import RequestRunner

LOOK = 0.2  # seconds after which a request to stop is seen
Work = Callable[[Request, str], StepResult]
Submit = Callable[..., Future[StepResult]]  # begins a function with its arguments


class Workers:
    """What takes the steps of a run: as many processes as the request has jobs, begun once; or this
    process, for one job.

    The caller holds the lock of the run for all of them.
    """

    def __init__(self, runner: RequestRunner, run: Run, submit: Submit) -> None:
        self._runner, self._run, self._submit = runner, run, submit
        self._running = dict[Future[StepResult], str]()
        self._has_corpus, self._stopping = run.header.data_hash is not None, False

    @property
    def at_work(self) -> set[str]:
        """Names of the steps."""
        return {*self._running.values()}

    @property
    def room(self) -> int:
        """How many more steps may begin: one alone until there is a corpus, and none once the
        user asked to stop.
        """
        most = self._runner.request.jobs if self._has_corpus else 1
        return 0 if self._runner.interruption.requested else max(0, most - len(self._running))

    def begin(
        self, name: str, work: Callable[..., StepResult], request: Request, *arguments: str | None
    ) -> None:
        """Begin a step by the function that does it, with its request; a process of its own
        tells nothing of it.
        """
        if request.jobs > 1:
            self._runner.request.reporter.note(f"{name}: start")
            request = replace(request, reporter=SilentReporter(), speak=None)
        self._running[self._submit(work, request, *arguments)] = name

    def wait(self) -> Iterator[tuple[str, StepResult | BaseException]]:
        """Those that have ended after a moment, with the result or the error of each;
        `ResourceError` if a process was killed.
        """
        if self._runner.interruption.requested and not self._stopping:
            self._stopping = True
            _stop_processes()
        for done in wait(self._running, timeout=LOOK, return_when=FIRST_COMPLETED).done:
            name, error = self._running.pop(done), done.exception()
            if isinstance(error, BrokenProcessPool):
                raise ResourceError(
                    f"the process of '{name}' was ended from outside",
                    where="--jobs",
                    expected="memory for all processes at once, on the card, too",
                    todo="run the same command again with --resume and fewer --jobs",
                )
            if error is None:
                self._has_corpus = True
                self._tell(name, done.result())
            yield name, error or done.result()

    def _tell(self, name: str, result: StepResult) -> None:
        """What a process of its own has not told."""
        if self._runner.request.jobs == 1:
            return
        reporter, record = self._runner.request.reporter, self._run.folder(name).record()
        reporter.note(
            f"{name}: unchanged, skipped"
            if result.unchanged
            else f"{name}: done in {result.seconds:.0f} s"
        )
        for warning in [] if record is None or result.unchanged else record.warnings:
            reporter.warn(f"{name}: {warning}")


@contextmanager
def open_workers(runner: RequestRunner, run: Run) -> Iterator[Workers]:
    """Workers that are there inside the block."""
    jobs = runner.request.jobs
    if jobs == 1:
        yield Workers(runner, run, _do_now)
        return
    with _threads_shared(jobs), _pool(jobs) as pool:
        yield Workers(runner, run, pool.submit)


def _do_now(work: Callable[..., StepResult], *arguments: Any) -> Future[StepResult]:
    done = Future[StepResult]()
    try:
        done.set_result(work(*arguments))
    except Exception as error:
        done.set_exception(error)
    return done


def run_side_by_side(
    workers: Workers, runner: RequestRunner, steps: Sequence[Step], work: Work
) -> list[StepResult]:
    """Run steps that write, each after all that it reads; their results in the same order.

    `work` runs the step of a name. After a failure, or once the user asked to stop, no further step
    begins; those at work end, or stop where `--resume` can go on.

    Raises:
        PlantError: a step failed, or was stopped.
        ResourceError: a process was killed.
    """
    waiting, outcomes = list(steps), dict[str, StepResult | BaseException]()
    failure: BaseException | None = None
    with runner.request.reporter.progress("steps", len(steps), "steps") as task:
        while workers.at_work or (
            waiting and failure is None and not runner.interruption.requested
        ):
            ready = [] if failure is not None else _find_ready(waiting, steps, workers.at_work)
            for step in ready[: workers.room]:
                waiting.remove(step)
                workers.begin(step.name, work, runner.request, step.name)
            ended = dict(workers.wait())
            outcomes |= ended
            failures = [one for one in ended.values() if isinstance(one, BaseException)]
            failure = failure or next(iter(failures), None)
            task.advance(len(ended))
    if failure is not None:
        raise failure
    for step in waiting[:1]:
        runner.require_going_on(step.name)
    found = [outcomes.get(step.name) for step in steps]
    return [outcome for outcome in found if isinstance(outcome, StepResult)]


def _find_ready(
    waiting: Iterable[Step], steps: Sequence[Step], at_work: Iterable[str]
) -> list[Step]:
    """Those that wait for no step any more."""
    unfinished = {*(step.name for step in waiting), *at_work}
    return [step for step in waiting if not find_awaited(step, steps) & unfinished]


def find_late(steps: Iterable[Step]) -> list[Step]:
    """Actions, comparisons of several systems, and what reads them: they run after all others,
    in turn.
    """
    late: list[Step] = []
    for step in steps:
        if (
            not step.spec.writes
            or step.spec.compares
            or any(step.spec.name in other.spec.feeds for other in late)
        ):
            late.append(step)
    return late


def find_awaited(step: Step, steps: Iterable[Step]) -> set[str]:
    """Names of the steps that have to end before this one begins: for each stage that it reads,
    the one of its tag and seed.
    """
    names, awaited = {other.name for other in steps}, set()
    for stage in {
        other.spec.name
        for other in steps
        if step.spec.name in other.spec.feeds or other.spec.name in step.spec.reads
    }:
        given = (
            step.values.get(step.spec.reads[stage])
            if stage in step.spec.reads
            else split_seed(step.tag)[0]
        )
        found = [
            join_tag(stage, find_input_tag(names, stage, tag, step.tag))
            for tag in (given, None)
            if step.options.reads_stage(stage)
        ]
        awaited |= {*[name for name in found if name in names][:1]}
    return awaited


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(
        jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
    )
    try:
        yield pool
    finally:
        _stop_processes()
        pool.shutdown(cancel_futures=True)


def _stop_processes() -> None:
    """A step at work stops at its next checkpoint, the second time at once; a process without
    one goes on.
    """
    for process in multiprocessing.active_children():
        os.kill(process.pid or 0, signal.SIGINT)


def _begin() -> None:
    """Leave signals to the parent, which passes on the first, and end with it: another command
    may then work in the run.
    """
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
