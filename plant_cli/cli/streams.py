"""The standard streams: they may be closed, and their reader may leave."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

GONE = (errno.EPIPE, errno.EIO)  # the reader of a pipe has left; the terminal of a dropped connection is closed


class _TolerantFile(io.FileIO):
    """A file that can be written to after its reader is gone: what is written then is discarded."""

    def write(self, data: Any) -> int:
        """Write bytes; once the reader is gone, discard them."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in GONE:
                raise
            silence(self)
            return len(data)


def tolerate_lost_reader(stream: TextIO) -> TextIO:
    """A stream over the same file whose writes do not fail when its reader is gone; the stream itself if it has no file."""
    try:
        stream.flush()
        raw = _TolerantFile(stream.fileno(), "w", closefd=False)
    except (AttributeError, OSError, ValueError):  # the first where the stream itself is closed (`2>&-`): Python then has none
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True)


def reopen_closed() -> None:
    """Give the process the standard streams that whoever started it has closed (`>&-`): nothing is read from them, and writes go nowhere.

    Otherwise the next file that is opened, of a run perhaps, would get their number, and with it what any library writes to stdout.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def silence(stream: io.FileIO | TextIO) -> None:
    """Discard all that is written to the stream's file from now on, and what is still in its buffer."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
