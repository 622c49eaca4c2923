"""Turns an error into four lines on stderr for a person and an exit code for a shell."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from plant_cli.api import DataError, PlantError, PluginError, PluginRecord, ResourceError, first_line
from plant_cli.base.escapes import printable
from plant_cli.console.limits import explain_shortage, find_limit
from plant_cli.registry import Registry

BUG = 1
INTERRUPTED = 130
GONE = (errno.ENOENT, errno.ESTALE)
CLOSED_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


@contextmanager
def report_failures(who: str = "plant-cli", registry: Registry | None = None) -> Iterator[None]:
    """Report whatever is raised inside and leave with its exit code; no trace on the screen.

    Args:
        who: the distribution to report a bug to.
        registry: of the plugins that may have raised it.
    """
    try:
        yield
    except PlantError as error:
        leave(error)
    except KeyboardInterrupt:
        _leave("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes stdout once more at exit
        raise SystemExit(CLOSED_PIPE) from None
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        known = _explain(error)
        if known is not None:
            leave(known)
        found = None if registry is None else registry.blame(error)
        if found is not None:
            leave(_accuse(error, *found))
        _leave(describe_bug(error, who, [] if registry is None else registry.strangers()), BUG)


def describe(error: PlantError) -> str:
    """The four parts of an error, one line each."""
    return f"error: {error.what}\n  where:      {error.where}\n  expected:   {error.expected}\n  what to do: {error.todo}"


def _explain(error: BaseException) -> PlantError | None:
    """The error to show for what the system refuses outside any stage, such as a full disk behind stdout."""
    if type(error).__name__ == "PanicException":  # how libraries written in Rust fail
        return _explain_panic(error)
    limit = find_limit()
    if limit is not None and _may_lack_memory(error):
        return explain_shortage(f"a library could not be loaded, or had no memory: {error or type(error).__name__}", limit)
    if not isinstance(error, OSError) or error.errno is None:
        return None
    place = next((str(name) for name in (error.filename, error.filename2) if name is not None), "stdout, or a file that was open")
    if error.errno in GONE:
        return ResourceError(
            f"the system finds no such file any more: {error.strerror}",
            where=place,
            expected="files and folders that stay where they are while the command runs",
            todo="check that nothing was moved, renamed or deleted meanwhile (this folder, the run folder), then repeat the command",
        )
    return ResourceError(
        f"the system refuses a file: {error.strerror}",
        where=place,
        expected="a place that this user may read and write, with space left",
        todo="check rights, space and limits (`ulimit -a`), or choose another place (--run DIR for the run folder)",
    )


def _may_lack_memory(error: BaseException) -> bool:
    """Whether an error may come from a memory limit.

    Libraries loaded or parsed in part; code that oneDNN has no room to make; compiled code that failed without saying why.
    """
    told = isinstance(error, RuntimeError) and str(error).startswith(("could not create a ", "could not execute a "))
    return told or isinstance(error, MemoryError | ImportError | NameError | SyntaxError | SystemError)


def _explain_panic(error: BaseException) -> PlantError:
    from plant_cli.base.parquet import speaks_of_shortage

    what = f"a library gave up: {first_line(error)}"
    if speaks_of_shortage(error):
        return ResourceError(
            what,
            where="a library below plant; what it wrote stands above",
            expected="enough memory, threads and open files (`ulimit -a` lists the limits of this shell)",
            todo="give it more memory, or work on less at a time (--micro-batch, --memory); `plant plan` says what is needed",
        )
    return DataError(
        what,
        where="a file that the command reads, most likely a Parquet file; what the library wrote stands above",
        expected="files that are whole",
        todo="`plant verify` looks at those of a run, `plant data check PATH` at a corpus; make again or copy again what is damaged",
    )


def describe_bug(error: BaseException, who: str, strangers: Sequence[PluginRecord] = ()) -> str:
    """What to show for an unexpected error, and the file that holds its whole trace; the trace itself if no file can be written.

    Args:
        error: what was raised.
        who: the distribution to report it to.
        strangers: plugins of others, one of which may have given what led to it.
    """
    trace = "".join(traceback.format_exception(error))
    place, rest = _keep_trace(trace), ""
    if place is None:
        rest = f"\n{trace}"
    others = [record for record in strangers if record.distribution != who]
    checks = f"; if {' or '.join(record.name for record in others)} took part, first run {_check(others[0])}" if others else ""
    return (
        f"error: a bug: {_say(error)}\n"
        f"  where:      {f'{place} holds the trace' if place else 'the trace below, since no file could be written for it'}\n"
        "  expected:   an error message that explains the failure\n"
        f"  what to do: report it to the authors of {who}, with {'that file' if place else 'all of this'}{checks}{rest}"
    )


def _accuse(error: BaseException, plugin: PluginRecord, where: str) -> PluginError:
    """The error for what arose in the code of a plugin."""
    place = _keep_trace("".join(traceback.format_exception(error)))
    return PluginError(
        f"the plugin '{plugin.name}' failed: {_say(error)}",
        where=where + (f"; {place} holds the trace" if place else ""),
        expected=f"components that pass {_check(plugin)}",
        todo=f"report it to the authors of {plugin.distribution} (version {plugin.version}){', with that file' if place else ''}, "
        "or choose another component; `plant plugins` lists them",
    )


def _say(error: BaseException) -> str:
    return f"{type(error).__name__}: {first_line(error)}" if str(error).strip() else type(error).__name__


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
    """Show an error and leave with its exit code."""
    _leave(describe(error), error.exit_code)


def _leave(message: str, code: int) -> NoReturn:
    print(printable(message), file=sys.stderr, flush=True)
    raise SystemExit(code)
