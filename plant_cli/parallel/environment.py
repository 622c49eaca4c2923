"""What the launcher says in the environment: which process this is, how many there are, and how many threads each may take."""

from __future__ import annotations

import os


def process_rank() -> int:
    """Rank of this process among those launched together: 0 for the first, and for a process on its own."""
    return int(os.environ.get("RANK", "0"))


def process_count() -> int:
    """Number of processes launched together; 1 for a process on its own."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank() -> int:
    """Rank of this process among those on this machine."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def local_count() -> int:
    """Number of launched processes on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def default_threads() -> int:
    """Default number of threads of this process: `OMP_NUM_THREADS`, or its share of the cores of this machine."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) and local_count() == 1:  # launchers set it to 1, whatever is free
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // local_count())


def leave_group() -> None:
    """Leave the group of launched processes: this one then does all of the work."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)
