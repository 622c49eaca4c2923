"""What the launcher says in the environment: which process this is, how many there are, and how many threads each may take."""

from __future__ import annotations

import os


def process_rank() -> int:
    """Which of the launched processes this is; 0 for the first and for one that was not launched with others."""
    return int(os.environ.get("RANK", "0"))


def process_count() -> int:
    """How many processes were launched together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank() -> int:
    """Which of the launched processes on this machine this is."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def local_count() -> int:
    """How many of the launched processes are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def default_threads() -> int:
    """Threads for this process unless it is told otherwise: what `OMP_NUM_THREADS` says, or all cores, shared with those beside it."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) and local_count() == 1:  # launchers set it to 1, whatever is free
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // local_count())


def leave_group() -> None:
    """Forget the processes launched with this one: it does all of the work."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)
