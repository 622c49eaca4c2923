"""Commands that stop at their file operations, so that a seed decides who goes on when."""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.faults.processes import POLL, Ending, Running

WATCHED = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.listdir",
    "os.scandir",
    "os.link",
    "os.symlink",
    "fcntl.flock",
}
BLOCKED = (
    0.5  # seconds without a file operation and without processor time: it waits for the other one
)
FREE = 2**31


class Actor:
    """A command in a process of its own that does as many operations on files of its folder as
    it is granted, and then waits.
    """

    def __init__(self, arguments: Sequence[str], folder: Path) -> None:
        grants, self._grant = os.pipe()
        self._asked, asks = os.pipe()
        os.set_blocking(self._asked, False)
        self._running = Running(
            arguments, folder, lambda: _obey(grants, asks, str(folder.resolve()))
        )
        os.close(grants)
        os.close(asks)

    def advance(self, operations: int) -> bool:
        """Let it do so many operations and wait until it has; False if it ended before, or
        waits for another process.
        """
        self._give(operations)
        idle, used = time.monotonic(), -1.0
        while self._running.poll() is None:
            if self._asks():
                return True
            now = _processor_seconds(self._running.process)
            if now > used:
                idle, used = time.monotonic(), now
            elif time.monotonic() - idle > BLOCKED:
                return False
            time.sleep(POLL)
        return False

    def kill(self) -> None:
        """End it at once, wherever it stands."""
        self._running.send(signal.SIGKILL)

    def release(self) -> None:
        """Let it do what it wants from now on."""
        self._give(FREE)

    def finish(self) -> Ending:
        """Wait for its end."""
        ending = self._running.wait()
        os.close(self._grant)
        os.close(self._asked)
        return ending

    def _give(self, operations: int) -> None:
        if self._running.poll() is None:
            try:
                os.write(self._grant, struct.pack("q", operations))
            except BrokenPipeError:  # it is just ending
                return

    def _asks(self) -> bool:
        try:
            return bool(os.read(self._asked, 1))
        except BlockingIOError:
            return False


def _obey(grants: int, asks: int, folder: str) -> None:
    """In the new process: before each operation in the folder, ask for leave whenever what was
    granted is used up.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # whoever held the other end is gone
    left, busy = 0, False

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left, busy
        if busy or event not in WATCHED or not _concerns(arguments, folder):
            return
        busy = True  # what is done here is itself watched
        while left == 0:
            os.write(asks, b"?")
            left = struct.unpack("q", os.read(grants, 8))[0]
        left -= 1
        busy = False

    sys.addaudithook(watch)


def _concerns(arguments: tuple[object, ...], folder: str) -> bool:
    """Whether an operation is on a file of the folder; what names no path (a lock, a name in an
    open folder) counts, too.
    """
    paths = [path for path in arguments if isinstance(path, str | bytes | os.PathLike)]
    return not paths or any(os.path.abspath(os.fsdecode(path)).startswith(folder) for path in paths)


def _processor_seconds(process: int) -> float:
    """What a process has used so far; 0 if it has just ended."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0
