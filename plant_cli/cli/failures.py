"""Messages and exit codes of errors, also if a library ends the process where memory is limited
(`ulimit -v`).
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from plant_cli.api import (
    DataError,
    PlantError,
    PluginError,
    PluginRecord,
    ResourceError,
    first_line,
)
from plant_cli.api.functions import ExitCalled
from plant_cli.api.network_packages import explain_import
from plant_cli.data.files import TEMPORARY
from plant_cli.data.printed_tables import printable
from plant_cli.registry import Registry
from plant_cli.runs.machine import bound_heaps

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG
FROM_KERNEL = 0x80  # SI_KERNEL: the terminal has sent it to every process of the command
BUFFER = 34 << 20  # bytes of a thread of OpenBLAS
CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)
BUG, INTERRUPTED, CLOSED_PIPE = (
    1,
    130,
    141,
)  # exit codes; the last is what a shell reports for a program that SIGPIPE ended
GONE = (errno.ENOENT, errno.ESTALE)


def find_limit() -> int | None:
    """The limit of this process on address space or data, in bytes; None without a limit, or on
    a system that does not enforce it.
    """
    if sys.platform != "linux":
        return None
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def explain_shortage(what: str, limit: int) -> PlantError:
    """The error for a failure under a memory limit, in bytes."""
    return ResourceError(
        what,
        where=f"this process may take {limit / 2**20:,.0f} MiB of memory (`ulimit -v`, `ulimit "
        "-d`)",
        expected="a gigabyte or more for the libraries, and the memory that the command itself "
        "takes; `plant plan` says how much",
        todo="raise the limit (`ulimit -v unlimited`), then run the same command again; one that "
        "trains goes on with --resume",
    )


def run_watched(work: Callable[[], None], limit: int) -> None:
    """Do the work in a child process and exit with its code, or with a message if a library
    ended it. Signals are passed on to it.
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
            bound_heaps(1)  # polars waits for ever if there are no addresses for one of its threads
            reserve_products(limit)
            work()
        finally:
            os.write(ends, b".")  # not reached if a library ends the process
        return
    os.close(ends)
    code = _wait(child, watched)
    by_itself = bool(os.read(ended, 1))
    if code in {-crash for crash in CRASHES} or (code == 1 and not by_itself):
        leave(
            explain_shortage(
                "a library ended the command, most likely because memory ran out; its own "
                "message is above",
                limit,
            )
        )
    if code < 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    raise SystemExit(code)


def reserve_products(limit: int) -> None:
    """Let the OpenBLAS of numpy and of scipy allocate their buffers now: if there is no memory
    later, they try again for ever.

    If the buffers of all threads take an eighth of the memory, products use one thread. If they
    take more than a tenth, nothing is allocated: a command without products may still do its work,
    and polars hangs with too little memory.
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
    """Pass on signals until the child has ended; its exit code, or minus the signal that ended
    it.
    """
    while True:
        received = signal.sigwaitinfo(watched)
        if received.si_signo == signal.SIGCHLD:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
        elif received.si_code != FROM_KERNEL:
            os.kill(child, received.si_signo)


def _blame(error: BaseException, registry: Registry | None) -> tuple[PluginRecord, str] | None:
    """The plugin in whose code an error arose, and where it is; None if in none."""
    return None if registry is None else registry.blame(error)


@contextmanager
def report_failures(who: str = "plant-cli", registry: Registry | None = None) -> Iterator[None]:
    """Show an error of the block without a trace and exit with its code; bugs are to be
    reported to the distribution `who`.
    """
    try:
        yield
    except PlantError as error:
        blamed = _blame(error, registry) if error.__cause__ is not None else None
        if blamed is not None:
            error.where += f"; the plugin '{blamed[0].name}', {blamed[1]}"
        leave(error)
    except KeyboardInterrupt as error:
        blamed = _blame(error, registry)
        who = "" if blamed is None else f" in the plugin '{blamed[0].name}', {blamed[1]}"
        _leave(f"interrupted{who}", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the interpreter flushes stdout once more at exit
        raise SystemExit(CLOSED_PIPE) from None
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        explained = _explain(error)
        if explained is not None:
            leave(explained)
        blamed = _blame(error, registry)
        if blamed is not None:
            leave(_accuse(error, *blamed))
        _leave(describe_bug(error, who, [] if registry is None else registry.strangers()), BUG)


def refuse_exits() -> None:
    """Let `os._exit()` in this process be an error like any other, as `sys.exit()` in a
    component is: it says nothing by itself.
    """
    leave_at_once, process = os._exit, os.getpid()

    def refuse(code: int) -> NoReturn:
        if os.getpid() != process:  # children end so
            leave_at_once(code)
        raise ExitCalled(f"os._exit({code}) was called while the command was at work")

    os._exit = refuse  # type: ignore[assignment]


def describe_error(error: PlantError) -> str:
    """The four parts of an error, one line each, without empty ones."""
    parts = {
        "error: ": error.what,
        "  where:      ": error.where,
        "  expected:   ": error.expected,
        "  what to do: ": error.todo,
    }
    return "\n".join(name + text for name, text in parts.items() if text)


def _explain(error: BaseException) -> PlantError | None:
    """The error for a failure of the system outside any stage, such as a full disk behind
    stdout.
    """
    if type(error).__name__ == "PanicException":  # how libraries written in Rust fail
        return _explain_panic(error)
    if missing := explain_import(error, "a model or a component with a network"):
        return missing
    limit = find_limit()
    onednn = isinstance(error, RuntimeError) and str(error).startswith(
        ("could not create a ", "could not execute a ")
    )
    if limit is not None and (
        onednn
        or isinstance(error, MemoryError | ImportError | NameError | SyntaxError | SystemError)
    ):
        return explain_shortage(
            f"a library could not be loaded, or had no memory: {error or type(error).__name__}",
            limit,
        )
    if not isinstance(error, OSError) or error.errno is None:
        return None
    path = next(
        (str(name) for name in (error.filename, error.filename2) if name is not None),
        "stdout, or an open file",
    )
    if error.errno in GONE and not TEMPORARY.fullmatch(
        Path(path).name
    ):  # a new file that cannot be made is not gone
        return ResourceError(
            f"a file is gone: {error.strerror}",
            where=path,
            expected="files and folders that nobody moves while the command runs",
            todo="check that nothing was moved, renamed or deleted meanwhile (this folder, the "
            "run folder), then repeat the command",
        )
    return ResourceError(
        f"the system refuses a file: {error.strerror}",
        where=path,
        expected="a path that this user may read and write, with space left",
        todo="check rights, space and limits (`ulimit -a`), or choose another path (--run DIR "
        "for the run folder)",
    )


def _explain_panic(error: BaseException) -> PlantError:
    from plant_cli.data.parquet import speaks_of_shortage

    what = f"a library gave up: {first_line(error)}"
    if speaks_of_shortage(error):
        return ResourceError(
            what,
            where="a library that plant uses; its own message is above",
            expected="enough memory, threads and open files (`ulimit -a` lists the limits of this "
            "shell)",
            todo="close other programs, or raise the limits of this shell (`ulimit -v`, `ulimit "
            "-u`, `ulimit -n`), then repeat the command",
        )
    return DataError(
        what,
        where="a file that the command reads, most likely a Parquet file; the message of the "
        "library is above",
        expected="undamaged files",
        todo="find the damaged file (`plant verify` for a run, `plant data check PATH` for a "
        "corpus); make or copy it again",
    )


def describe_bug(error: BaseException, who: str, strangers: Sequence[PluginRecord]) -> str:
    """The message for an unexpected error, with the file of its trace, or with the trace if no
    file can be written.
    """
    trace = "".join(traceback.format_exception(error))
    file = _keep_trace(trace)
    rest = "" if file else f"\n{trace}"
    others = [record for record in strangers if record.distribution != who]
    checks = (
        f"; if {' or '.join(record.name for record in others)} took part, first run "
        f"{_check(others[0])}"
        if others
        else ""
    )
    trace = "the trace below, since no file could be written for it"
    return (
        f"error: a bug: {_say(error)}\n"
        f"  where:      {f'{file} holds the trace' if file else trace}\n"
        "  expected:   an error message that explains the failure\n"
        f"  what to do: report it to the authors of {who}, with "
        f"{'that file' if file else 'all of this'}{checks}{rest}"
    )


def _accuse(error: BaseException, plugin: PluginRecord, where: str) -> PluginError:
    """The error for a failure in the code of a plugin."""
    file = _keep_trace("".join(traceback.format_exception(error)))
    return PluginError(
        f"the plugin '{plugin.name}' failed: {_say(error)}",
        where=where + (f"; {file} holds the trace" if file else ""),
        expected=f"components that pass {_check(plugin)}",
        todo=f"report it to the authors of {plugin.distribution} (version "
        f"{plugin.version}){', with that file' if file else ''}, "
        "or choose another component; `plant plugins` lists them",
    )


def _say(error: BaseException) -> str:
    return (
        f"{type(error).__name__}: {first_line(error)}"
        if str(error).strip()
        else type(error).__name__
    )


def _check(plugin: PluginRecord) -> str:
    return f"`pytest --pyargs plant_cli.testing --plant-plugin {plugin.name}`"


def _keep_trace(trace: str) -> str | None:
    try:
        handle, path = tempfile.mkstemp(prefix="plant-trace-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(trace)
    except OSError:
        return None
    return path


def leave(error: PlantError) -> NoReturn:
    """Show an error and exit with its code."""
    _leave(describe_error(error), error.exit_code)


def _leave(message: str, code: int) -> NoReturn:
    print(printable(message), file=sys.stderr, flush=True)
    raise SystemExit(code)
