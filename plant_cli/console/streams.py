"""The stream of progress and notes: when nobody can read it any more, the work goes on in silence."""

from __future__ import annotations

import errno
import io
import os
from typing import Any, TextIO

GONE = (errno.EPIPE, errno.EIO)  # the reader of a pipe has left; the terminal of a dropped connection is closed


class _Lasting(io.FileIO):
    """A file whose writes never fail because its reader is gone: what is written then, by whomever, goes nowhere."""

    def write(self, data: Any) -> int:
        """Write bytes, and from the first that nobody can read on, none."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in GONE:
                raise
            silence(self)
            return len(data)


def lasting(stream: TextIO) -> TextIO:
    """A stream over the same file that outlives its reader; the stream itself if no file is behind it."""
    try:
        stream.flush()
        raw = _Lasting(stream.fileno(), "w", closefd=False)
    except (AttributeError, OSError, ValueError):  # the first where the stream itself is closed (`2>&-`): Python then has none
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def silence(stream: io.FileIO | TextIO) -> None:
    """Let all that is written to the stream's file, also what still waits to be, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
