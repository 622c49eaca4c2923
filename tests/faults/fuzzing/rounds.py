"""One round of cases in a process that may die or hang."""

from __future__ import annotations

import base64
import json
import math
import os
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Never

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.faults.fuzzing.contract import SECONDS, keep_contract
from tests.faults.fuzzing.inputs import Files
from tests.faults.fuzzing.targets import TARGETS
from tests.faults.processes import Running
from tests.faults.reports import Trial

CASES = 100  # in a round, unless one breaks the contract
MEMORY = (
    3 << 30
)  # bytes of address space beside what the process begins with; more ends in a `MemoryError`, which is no clear message
STUCK = (
    6 * SECONDS
)  # seconds without a new case after which the process is killed, those not counted in which it waits for a processor
VERDICTS = {
    "kept": "every case gave a result or a clear error",
    "broken": "a case broke the contract, or the process died or hung",
}
HARM = ("broken",)
Leave = Callable[
    [BaseException | None], Never
]  # ends the process, with the error that a case ended in
Drive = Callable[[Callable[[], None], int, int, Path, Leave], None]
"""Tries cases: given the test, a seed, how many, a folder that stays from round to round, and
how to leave when all are done.
"""


def run_round(number: int, target: str, folder: Path, drive: Drive | None = None) -> Trial:
    """Try cases of a target in a process of its own, in a folder to be made; `number` is the
    seed.
    """
    folder.mkdir()
    last, notes = folder / "last.json", folder / "notes.json"
    running = Running((), folder, partial(_work, target, number, folder, drive), longest=math.inf)
    changed, seen = 0.0, 0
    while (ending := running.poll()) is None:
        if last.exists() and (latest := last.stat().st_mtime_ns) != seen:
            changed, seen = running.seconds(), latest
        if running.seconds() - changed > STUCK:
            running.send(signal.SIGKILL)
        time.sleep(0.05)
    if notes.exists():
        outcomes, error = json.loads(notes.read_text("utf-8"))
    else:
        outcomes, error = (
            {},
            f"the process ended with {ending.code}, or hung: {ending.output[-3000:]}",
        )
    evidence = (
        f"{error}\n  {last.read_text('utf-8') if last.exists() else 'before the first case'}"
        if error
        else ""
    )
    detail = f"{sum(outcomes.values())} cases, {len(outcomes)} outcomes"
    return Trial(number, target, target, detail, "broken" if error else "kept", evidence)


def _work(target: str, number: int, folder: Path, drive: Drive | None) -> None:
    """In the new process: try the cases, and leave notes; does not return."""
    outcomes: Counter[str] = Counter()
    chosen = TARGETS[target]

    @seed(number)
    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(chosen.inputs())
    def try_case(files: Files) -> None:
        (folder / "last.json").write_text(json.dumps(show_files(files)), encoding="utf-8")
        outcomes[keep_contract(chosen.attempt, files, folder / "case")] += 1

    def leave(error: BaseException | None = None) -> Never:
        trace = (
            ""
            if error is None
            else "".join(traceback.format_exception(error))
            .partition("Failing test case")[0]
            .strip()[-3000:]
        )
        (folder / "notes.new").write_text(json.dumps([outcomes, trace]), encoding="utf-8")
        (folder / "notes.new").rename(folder / "notes.json")
        os._exit(0)

    tempfile.tempdir = str(folder)
    (corpus := folder.parent / f"corpus-{target}").mkdir(exist_ok=True)
    limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        drive(try_case, number, CASES, corpus, leave) if drive else try_case()
    except BaseException as error:
        leave(error)
    leave()


def show_files(files: Files) -> dict[str, str]:
    """Contents as text where they are that, else in base 64."""
    shown = {}
    for name, content in files.items():
        try:
            shown[name] = content.decode("utf-8")
        except UnicodeDecodeError:
            shown[name] = "base64:" + base64.b64encode(content).decode()
    return shown
