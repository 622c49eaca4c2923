"""Turns an error into four lines on stderr for a person and an exit code for a shell."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from plant_cli.api import PlantError, ResourceError

BUG = 1
INTERRUPTED = 130
REFUSED = {getattr(errno, name) for name in ("EACCES", "EPERM", "EROFS", "ENOTDIR", "EISDIR", "ENAMETOOLONG", "ENOSPC", "EDQUOT")}
CLOSED_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


@contextmanager
def report_failures(who: str = "plant-cli") -> Iterator[None]:
    """Report whatever is raised inside and leave with its exit code; no trace on the screen.

    Args:
        who: the distribution to report a bug to.
    """
    try:
        yield
    except PlantError as error:
        _leave(describe(error), error.exit_code)
    except KeyboardInterrupt:
        _leave("interrupted", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes stdout once more at exit
        raise SystemExit(CLOSED_PIPE) from None
    except Exception as error:
        known = _explain(error)
        if known is not None:
            _leave(describe(known), known.exit_code)
        _leave(describe_bug(error, who), BUG)


def describe(error: PlantError) -> str:
    """The four parts of an error, one line each."""
    return f"error: {error.what}\n  where:      {error.where}\n  expected:   {error.expected}\n  what to do: {error.todo}"


def _explain(error: Exception) -> PlantError | None:
    """The error to show for a file that the system refuses outside any stage, such as a full disk behind stdout."""
    if not isinstance(error, OSError) or error.errno not in REFUSED:
        return None
    return ResourceError(
        f"the system refuses a file: {error.strerror}",
        where=str(error.filename or "stdout"),
        expected="a place that this user may read and write, with space left",
        todo="check rights and space, or choose another place (--run DIR for the run folder)",
    )


def describe_bug(error: Exception, who: str) -> str:
    """What to show for an unexpected error, and the file that holds its whole trace."""
    handle, path = tempfile.mkstemp(prefix="plant-trace-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)))
    first = str(error).strip().splitlines()[:1]
    return (
        f"error: a bug: {type(error).__name__}{': ' + first[0] if first else ''}\n"
        f"  where:      {path} holds the trace\n"
        "  expected:   an error message that explains the failure\n"
        f"  what to do: report it to the authors of {who}, with that file"
    )


def _leave(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr, flush=True)
    raise SystemExit(code)
