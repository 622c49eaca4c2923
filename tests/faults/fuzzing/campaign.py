"""One round of cases in a process that may die or hang."""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Never

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.faults.clock import Clock
from tests.faults.fuzzing.contract import SECONDS, keep_contract
from tests.faults.fuzzing.inputs import Files
from tests.faults.fuzzing.targets import TARGETS

MEMORY = 3 << 30  # bytes of address space beside what the process begins with
STUCK = 6 * SECONDS  # seconds without a new case after which the process is killed, those not counted in which it waits for a processor
Leave = Callable[[BaseException | None], Never]  # ends the process, with the error that a case ended in
Drive = Callable[[Callable[[], None], int, int, Path, Leave], None]
"""Tries cases: given the test, a seed, how many, a folder that stays from round to round, and how to leave when all are done."""


@dataclass
class Round:
    """What came of the cases of one seed.

    Args:
        outcomes: how often each kind came.
        finding: the case that broke the contract, if one did; it ends the round.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    finding: dict[str, object] | None = None


def run_round(target: str, number: int, cases: int, folder: Path, drive: Drive | None = None) -> Round:
    """Try cases in a process of its own.

    Args:
        target: its name.
        number: the seed of the round.
        cases: how many, unless one breaks the contract.
        folder: for the files of the cases, and the notes of the process.
        drive: what chooses the cases; hypothesis, without a look at what they reach, if not given.
    """
    notes, last = folder / "notes.json", folder / "last.json"
    for path in (notes, last):
        path.unlink(missing_ok=True)
    process = os.fork()
    if process == 0:
        _work(target, number, cases, folder, drive)
    ending = _watch(process, last)
    if notes.exists():
        found = json.loads(notes.read_text("utf-8"))
        return Round(Counter(found["outcomes"]), found["finding"])
    files = json.loads(last.read_text("utf-8")) if last.exists() else {}
    return Round(finding={"seed": number, "error": f"the process {ending}", "trace": "", "files": files})


def _watch(process: int, last: Path) -> str:
    """Wait for a process, or kill it when no case has begun for too long: how it ended."""
    clock, changed, seen = Clock(process), 0.0, 0
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return f"ended with {os.waitstatus_to_exitcode(status)}"
        if last.exists() and (latest := last.stat().st_mtime_ns) != seen:
            changed, seen = clock.seconds(), latest
        if clock.seconds() - changed > STUCK:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return "hung"
        time.sleep(0.05)


def _work(target: str, number: int, cases: int, folder: Path, drive: Drive | None) -> None:
    """In the new process: try the cases, and leave notes; does not return."""
    done = Round()

    latest: list[Files] = []

    def leave(error: BaseException | None = None) -> Never:
        done.finding = None if error is None else _describe(error, number, latest)
        (folder / "notes.new").write_text(json.dumps({"outcomes": done.outcomes, "finding": done.finding}), encoding="utf-8")
        (folder / "notes.new").rename(folder / "notes.json")
        os._exit(0)

    try:
        tempfile.tempdir = str(folder)
        test = _make_test(target, number, cases, folder, done, latest)
        (corpus := folder / f"corpus-{target}").mkdir(exist_ok=True)
        _limit_memory()
        try:
            drive(test, number, cases, corpus, leave) if drive else test()
        except BaseException as error:
            leave(error)
        leave()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _describe(error: BaseException, number: int, latest: list[Files]) -> dict[str, object]:
    """A finding: the error of the latest case, and its files."""
    trace = "".join(traceback.format_exception(error)).partition("Failing test case")[0].strip()
    files = show_files(latest[0]) if latest else {}
    return {"seed": number, "error": f"{type(error).__name__}: {error}"[:300], "trace": trace[-3000:], "files": files}


def _make_test(target: str, number: int, cases: int, folder: Path, done: Round, latest: list[Files]) -> Callable[[], None]:
    """A test of hypothesis: its cases are counted, and the latest one is kept."""
    chosen = TARGETS[target]

    @seed(number)
    @settings(max_examples=cases, deadline=None, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
    @given(chosen.inputs())
    def try_case(files: Files) -> None:
        latest[:] = [files]
        (folder / "last.json").write_text(json.dumps(show_files(files)), encoding="utf-8")
        done.outcomes[keep_contract(chosen.attempt, files, folder / "case")] += 1

    return try_case


def _limit_memory() -> None:
    """More than this is above the bound: a `MemoryError`, which is no clear message."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def show_files(files: Files) -> dict[str, str]:
    """Contents as text where they are that, else in base 64."""
    shown = {}
    for name, content in files.items():
        try:
            shown[name] = content.decode("utf-8")
        except UnicodeDecodeError:
            shown[name] = "base64:" + base64.b64encode(content).decode()
    return shown
