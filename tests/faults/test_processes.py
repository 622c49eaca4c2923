"""The clock of a process goes on while it works or sleeps, and stands still while others have
its processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.faults.processes import Clock

BUSY = "while True: pass"


def watch(process: subprocess.Popen[bytes], seconds: float) -> float:
    clock, end = Clock(process.pid), time.monotonic() + seconds
    while time.monotonic() < end:
        clock.seconds()
        time.sleep(0.002)
    return clock.seconds()


def test_sleep_counts() -> None:
    with subprocess.Popen(["sleep", "5"]) as process:
        assert watch(process, 0.5) == pytest.approx(0.5, abs=0.2)
        process.kill()


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"),
    reason="the system does not let processes be put on one core",
)
def test_waiting_for_a_processor_does_not() -> None:
    """Five that want one core get a fifth of the time each, and together no more than all of it."""
    processes = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(5)]
    core = min(os.sched_getaffinity(0))
    for process in processes:
        os.sched_setaffinity(process.pid, {core})
    try:
        watch(processes[0], 0.3)  # they start
        assert watch(processes[0], 1.5) < 0.75
    finally:
        for process in processes:
            process.kill()
            process.wait()
