"""The file of decisions that people made on suggestions: a JSON line for each, appended and
never changed.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from plant_cli.api import PlantError, ResourceError, UsageError

ATTEMPTS = 3  # to write to a file that is moved away meanwhile


class FeedbackFile:
    """A file that this server alone writes to, from when it is opened until it is closed.

    It is looked at before and after each append: where it was moved or removed, as programs that
    rotate logs do, a new one is begun under its name.
    """

    def __init__(self, path: Path, log: Callable[[str], None] = lambda message: None) -> None:
        self.path, self._log = path, log
        self._lock = Lock()
        self._handle = _open_alone(path)

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows and wait until the disk has them: all of them, or none.

        Raises:
            ResourceError: the disk is full or failed, or something else has taken the place of the
                file.
        """
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        with self._lock:
            for _ in range(ATTEMPTS):
                if not self._is_in_place():
                    self._begin_anew()
                self._write(content)
                if self._is_in_place():
                    return
        raise _lost("it is moved away again and again")

    def close(self) -> None:
        """Let another server have the file."""
        os.close(self._handle)

    def _is_in_place(self) -> bool:
        """Whether the file that is open is the one that has the name."""
        try:
            return os.path.samestat(os.stat(self.path), os.fstat(self._handle))
        except OSError:
            return False

    def _begin_anew(self) -> None:
        try:
            handle = _open_alone(self.path)
        except PlantError as error:
            self._log(f"feedback is refused: {error.what} ({error.where})")
            raise _lost(error.what) from error
        os.close(self._handle)
        self._handle = handle
        self._log(f"the feedback file was moved or removed; a new one was begun: {self.path}")

    def _write(self, content: bytes) -> None:
        before = os.fstat(self._handle).st_size
        if before and os.pread(self._handle, 1, before - 1) != b"\n":
            content = b"\n" + content  # a line that a dying machine or an editor did not finish
        try:
            written = os.write(self._handle, content)
            while written < len(content):
                written += os.write(self._handle, content[written:])
            os.fsync(self._handle)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._handle, before)
            raise _lost(str(error.strerror)) from error


def _lost(why: str) -> ResourceError:
    """Decisions that were not stored; a client sees it, so that it names no path."""
    return ResourceError(
        f"the feedback was not stored: {why}",
        where="the server's feedback file",
        expected="a regular file, and space on its disk",
        todo="tell who runs the server, and send the decisions again once it is mended",
    )


def _open_alone(path: Path) -> int:
    """A handle of a regular file that no other server writes to; the file is made where there
    is none.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        if not path.exists() or path.is_file():  # opening a device or a FIFO may do something
            handle = os.open(path, flags, 0o600)
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return _take(handle, path)
            os.close(handle)
    except OSError as error:
        raise UsageError(
            f"the feedback cannot be written: {error.strerror}",
            where=str(path),
            expected="a file in a folder that exists, and the right to write it",
            todo="make the folder, or name another file with --feedback",
        ) from error
    raise UsageError(
        "the feedback cannot be written: this is no regular file",
        where=str(path),
        expected="a file, not a folder, a device or a pipe",
        todo="name another file with --feedback, or remove what has its place",
    )


def _take(handle: int, path: Path) -> int:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise ResourceError(
            "another server writes to this feedback file",
            where=str(path),
            expected="a file for each server",
            todo="stop the other server, or name another file with --feedback",
        ) from error
    with suppress(OSError):  # the name of a new file is kept, too; not every file system can
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    return handle
