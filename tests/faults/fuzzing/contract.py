"""What every case must keep: a result or a clear `PlantError`, in bounded time, and nothing
written outside of its folder.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from plant_cli.api import PlantError
from plant_cli.cli.failures import describe_error
from plant_cli.data.printed_tables import printable
from tests.faults.fuzzing.inputs import Files

SECONDS = 20  # a case that takes longer hangs; waiting for a processor does not count
LONGEST_MESSAGE = 8000  # characters; a person has to read it
CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
}
RUNS = {
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.connect",
    "socket.getaddrinfo",
}
COMMIT = ["git", "rev-parse", "HEAD"]  # the one command that a stage runs: for its record
Try = Callable[[Files, Path], object]


class Broken(AssertionError):
    """A case that breaks the contract."""


class TooSlow(BaseException):
    """The time of a case is over; not an `Exception`, so that nobody takes it for one of the
    input's.
    """


def keep_contract(attempt: Try, files: Files, folder: Path) -> str:
    """Try a case in an empty folder.

    Args:
        attempt: reads the files.
        files: what the folder holds, by name.
        folder: is made, and removed afterwards.

    Returns:
        The kind of outcome: what the attempt calls it, `result`, or the class and wording of the
        error.

    Raises:
        Broken: it does not keep the contract.
    """
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    try:
        with _limited(), _watched(folder):
            outcome = attempt(files, folder)
        return str(outcome or "result")
    except PlantError as error:
        return check_message(error)
    except TooSlow as late:
        raise Broken(f"still busy after {SECONDS} seconds") from late
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_message(error: PlantError) -> str:
    """The kind of an error whose four parts are there and can be read."""
    parts = {
        "what": error.what,
        "where": error.where,
        "expected": error.expected,
        "todo": error.todo,
    }
    for name, text in parts.items():
        if not isinstance(text, str) or not text.strip():
            raise Broken(f"the part '{name}' of the message is empty: {parts}")
    if len(describe_error(error)) > LONGEST_MESSAGE:
        raise Broken(
            f"a message of {len(describe_error(error)):,} characters: "
            f"{describe_error(error)[:300]}…"
        )
    printable(describe_error(error)).encode("utf-8", "backslashreplace")
    words = re.sub(r"'[^']*'|\d+|0x\w+", "#", error.what.splitlines()[0])
    return f"{type(error).__name__}: {words.partition(':')[0][:80]}"


@contextmanager
def _limited() -> Iterator[None]:
    begun = _seconds()

    def end(number: int, frame: object) -> None:
        if (left := begun + SECONDS - _seconds()) <= 0:
            raise TooSlow
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _seconds() -> float:
    """The time, less all that this thread has waited for a processor."""
    waited = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    return time.monotonic() - waited / 1e9


_allowed: list[str] = []  # folders that may be written; empty outside of a case
_seen: list[str] = []


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: notes what a case does outside of its folder. Hooks cannot be taken away,
    so there is one for the whole process.
    """
    if not _allowed:
        return
    if event in RUNS and arguments[1:2] != (COMMIT,):
        _seen.append(f"{event} {arguments!r:.200}")
    elif event in CHANGES or (event == "open" and _writes(arguments)):
        paths = [
            os.path.abspath(os.fsdecode(path))
            for path in arguments
            if isinstance(path, str | bytes | os.PathLike)
        ]
        names = paths[:1] if event == "open" else paths
        _seen.extend(
            f"{event} {path}"
            for path in names
            if not path.startswith(tuple(_allowed)) and not path.startswith("/dev/")
        )


def _writes(arguments: tuple[object, ...]) -> bool:
    flags = (*arguments, None, 0)[2]
    return (
        isinstance(flags, int)
        and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        and not isinstance(arguments[0], int)
    )


@contextmanager
def _watched(folder: Path) -> Iterator[None]:
    if not _hooked:
        sys.addaudithook(_watch)
        _hooked.append(True)
    _seen.clear()
    _allowed.append(str(folder.resolve()))
    before, temporary = Path.cwd(), tempfile.tempdir
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        _allowed.clear()
        os.chdir(before)
        tempfile.tempdir = temporary
    if _seen:
        raise Broken(f"it reaches out of its folder: {_seen[:5]}")


_hooked: list[bool] = []
