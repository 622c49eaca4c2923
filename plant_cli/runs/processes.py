"""Processes that work together: how many there are, and which of them this is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from plant_cli.api.errors import UsageError
from plant_cli.api.options import MachineSection

TOGETHER = (
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
)  # set by torch's launchers, and needed to meet
OWN_VARIABLES = ("LOCAL_RANK", "LOCAL_WORLD_SIZE")
FOREIGN_PREFIXES = (
    "OMPI_COMM_WORLD_",
    "PMI_",
    "MV2_COMM_WORLD_",
    "MPI_LOCAL",
    "ACCELERATE_USE_",
)  # accelerate reads variables that begin so, too
MOST_THREADS = 4096


def was_launched() -> bool:
    """Whether a launcher started this process."""
    return all(os.environ.get(name) for name in TOGETHER)


@contextmanager
def only_launched() -> Iterator[None]:
    """Hide from libraries, in a process that no launcher started, the variables by which they
    would take it for one of several.
    """
    left = (
        []
        if was_launched()
        else [
            name
            for name in os.environ
            if name in (*TOGETHER, *OWN_VARIABLES) or name.startswith(FOREIGN_PREFIXES)
        ]
    )
    hidden = {name: os.environ.pop(name) for name in left}
    try:
        yield
    finally:
        os.environ.update(hidden)


def process_count() -> int:
    """Number of processes launched together; 1 for a single process. `UsageError` if the
    launcher did not set a number.
    """
    return _read("WORLD_SIZE", 1)


def process_rank() -> int:
    """Rank of this process among those launched together: 0 for the first, which writes to the
    run, and for a single process.
    """
    return _read("RANK", 0, process_count() - 1)


def local_rank() -> int:
    """Rank of this process among those on this machine."""
    return _read("LOCAL_RANK", 0)


def local_count() -> int:
    """Number of launched processes on this machine."""
    return _read("LOCAL_WORLD_SIZE", 1)


def choose_jobs(machine: MachineSection, jobs: int | None) -> int:
    """The number of threads that count words."""
    return jobs or machine.threads or default_threads()


def default_threads() -> int:
    """Default number of threads of this process: `OMP_NUM_THREADS`, or its share of the cores
    of this machine.
    """
    text = os.environ.get("OMP_NUM_THREADS", "")
    threads = (
        int(text)
        if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_THREADS))
        else 0
    )
    if (
        0 < threads <= MOST_THREADS and local_count() == 1
    ):  # launchers set it to 1, even on many cores
        return threads
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, cores // local_count())


def leave_group() -> None:
    """Leave the group of launched processes: this one then does all of the work."""
    for name in ("RANK", "WORLD_SIZE", *OWN_VARIABLES):
        os.environ.pop(name, None)


def _read(name: str, least: int, most: int | None = None) -> int:
    """What a launcher set; `least` in a process that no launcher started."""
    if not was_launched():
        return least
    text = os.environ.get(name, str(least) if name in OWN_VARIABLES else "")
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
    if value is None or value < least or (most is not None and value > most):
        raise UsageError(
            f"the launcher says {name} = '{text}'",
            where=f"environment: {', '.join(f'{key}={os.environ.get(key)}' for key in TOGETHER)}",
            expected=f"a whole number from {least}" + ("" if most is None else f" to {most}"),
            todo="correct what starts the processes; to work in one process: unset "
            f"{' '.join(TOGETHER)}",
        )
    return value
