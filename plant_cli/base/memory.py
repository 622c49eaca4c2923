"""Main memory: of this process, and what the machine has left."""

from __future__ import annotations

import resource
import sys


def peak_memory_gb() -> float:
    """Largest resident memory of this process since it started, in 10⁹ bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # psutil knows only what is resident now
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9  # Linux counts kibibytes, macOS bytes


def available_memory() -> int:
    """Bytes of main memory that a new process may take without swapping."""
    import psutil  # the console imports this module for `--help`, too

    return int(psutil.virtual_memory().available)


def resident_memory() -> int:
    """Bytes of main memory that this process holds now."""
    import psutil

    return int(psutil.Process().memory_info().rss)
