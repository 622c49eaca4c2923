"""The file of decisions that people made on suggestions: a JSON line for each, appended and never changed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from plant_cli.api import ResourceError, UsageError


class FeedbackFile:
    """A file that this server alone writes to, from when it is opened until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise UsageError(
                f"the feedback cannot be written: {error.strerror}",
                where=str(path),
                expected="a file in a folder that exists, and the right to write it",
                todo="make the folder, or name another file with --feedback",
            ) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._handle)
            raise ResourceError(
                "another server writes to this feedback file",
                where=str(path),
                expected="a file for each server",
                todo="stop the other server, or name another file with --feedback",
            ) from error
        size = os.fstat(self._handle).st_size
        if (
            size and os.pread(self._handle, 1, size - 1) != b"\n"
        ):  # a line that a dying machine did not finish
            os.write(self._handle, b"\n")

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows and wait until the disk has them: all of them, or none.

        Raises:
            ResourceError: the disk is full, or failed.
        """
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
        with self._lock:
            before = os.fstat(self._handle).st_size
            try:
                written = os.write(self._handle, content)
                while written < len(content):
                    written += os.write(self._handle, content[written:])
                os.fsync(self._handle)
            except OSError as error:
                with suppress(OSError):
                    os.ftruncate(self._handle, before)
                raise ResourceError(
                    f"the feedback was not stored: {error.strerror}",
                    where="the server's feedback file",
                    expected="space on its disk",
                    todo="make space there, and send the decisions again",
                ) from error

    def close(self) -> None:
        """Let another server have the file."""
        os.close(self._handle)
