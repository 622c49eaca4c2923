"""A command under a memory limit (`ulimit -v`): where a library ends the process, somebody is left to say so."""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from plant_cli.base.memory import bound_heaps

if TYPE_CHECKING:
    from plant_cli.api import PlantError

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG
FROM_KERNEL = 0x80  # SI_KERNEL: the terminal has sent it to every process of the command
BUFFER = 34 << 20  # bytes of a thread of OpenBLAS
CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)


def find_limit() -> int | None:
    """Bytes of address space or data that this process may have; None if there is no limit, or the system does not keep to it."""
    if sys.platform != "linux":
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def explain_shortage(what: str, limit: int) -> PlantError:
    """The error for what went wrong where memory is limited to so many bytes."""
    from plant_cli.api import ResourceError

    return ResourceError(
        what,
        where=f"this process may take {limit / 2**20:,.0f} MiB of memory (`ulimit -v`, `ulimit -d`)",
        expected="room for the libraries, a gigabyte or more, beside what the command itself takes; `plant plan` says how much",
        todo="raise the limit (`ulimit -v unlimited`), then run the same command again; one that trains goes on with --resume",
    )


def run_watched(work: Callable[[], None], limit: int) -> None:
    """Do the work in a process of its own, and leave as it does; where a library ended it, with a message.

    Signals reach it, and it ends with this process.

    Args:
        work: the command; it returns or raises `SystemExit`.
        limit: of memory, in bytes.

    Raises:
        SystemExit: with the exit code of the work.
    """
    watched = {*FORWARDED, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    ended, ends = os.pipe()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(KILL_WITH_PARENT, int(signal.SIGKILL))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        os.close(ended)
        try:
            bound_heaps(1)  # where polars finds no addresses for a thread of its own, it waits for it for ever
            reserve_products(limit)
            work()
        finally:
            os.write(ends, b".")  # not reached where a library ends the process
        return
    os.close(ends)
    code = _wait(child, watched)
    by_itself = bool(os.read(ended, 1))
    if code in {-crash for crash in CRASHES} or (code == 1 and not by_itself):
        from plant_cli.console.failures import leave

        leave(explain_shortage("a library ended the command, most likely for want of memory; what it wrote stands above", limit))
    if code < 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise SystemExit(code)


def reserve_products(limit: int) -> None:
    """Have the two OpenBLAS of numpy and scipy take their buffers now: one that gets none later asks for it for ever.

    Where all threads' buffers would take an eighth of the memory or more, products take one thread. Where the buffers are more than a
    tenth of the memory, nothing is taken: a command that needs no products may still do its work, and polars hangs where it finds too
    little.

    Args:
        limit: of memory, in bytes.
    """
    if 2 * len(os.sched_getaffinity(0)) * BUFFER > limit // 8:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if limit // 10 < 4 * BUFFER:
        return
    try:
        mmap.mmap(-1, 4 * BUFFER).close()
        import numpy as np
        from scipy.linalg import blas

        square = np.ones((512, 512), dtype=np.float32)  # large enough for all threads to take part
        blas.ssyrk(1.0, square @ square)
    except (OSError, MemoryError, ImportError):
        return


def _wait(child: int, watched: set[signal.Signals]) -> int:
    """Hand on signals until the child has ended; its exit code, or minus the signal that ended it."""
    while True:
        found = signal.sigwaitinfo(watched)
        if found.si_signo == signal.SIGCHLD:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
        elif found.si_code != FROM_KERNEL:
            os.kill(child, found.si_signo)
