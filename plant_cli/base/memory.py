"""Main memory: of this process, and what the machine has left."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_ARENA_MAX = -8  # M_ARENA_MAX of glibc
_bounds: list[int] = []


def peak_memory_gb() -> float:
    """Largest resident memory of this process since it started, in 10⁹ bytes.

    Linux hands `ru_maxrss` of a large process on to the ones it starts; `VmHWM` counts this process alone.
    """
    if _STATUS.exists():
        fields = dict(line.split(":", 1) for line in _STATUS.read_text(encoding="utf-8").splitlines())
        if "VmHWM" in fields:
            return int(fields["VmHWM"].split()[0]) * 1024 / 1e9
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


def bound_heaps(most: int) -> None:
    """Let the threads of this process share so many heaps of glibc, at most; a lower bound that was set before stays.

    By default each thread may have a heap of its own, which keeps what the thread gave back, and 64 MiB of addresses for it.
    """
    _bounds.append(most)
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it, other systems do not
    if set_option is not None:
        set_option(_ARENA_MAX, min(_bounds))
