"""Standard streams that may be closed, or whose reader may leave."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, TextIO

READER_LEFT = (
    errno.EPIPE,
    errno.EIO,
)  # the reader of a pipe has left; the terminal of a dropped connection is closed


class _LastingStream(io.TextIOWrapper):
    """A stream that others cannot close: what a command has to say comes after what they do."""

    def close(self) -> None:
        """Write what is in the buffer; the stream stays open."""
        self.flush()


class _TolerantFile(io.FileIO):
    """The file of a descriptor; it discards what is written, here or there, after its reader
    has left.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(os.dup(descriptor), "w")
        self._descriptor = descriptor

    def write(self, data: Any) -> int:
        """Write bytes, or discard them."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in READER_LEFT:
                raise
            silence(self)
            os.dup2(self.fileno(), self._descriptor)
            return len(data)


def tolerate_lost_reader(stream: TextIO) -> TextIO:
    """A stream to the same file whose writes do not fail after its reader has left, and which
    others cannot close.

    The stream itself if it has no file.
    """
    try:
        stream.flush()
        raw = _TolerantFile(stream.fileno())
    except (
        AttributeError,
        OSError,
        ValueError,
    ):  # AttributeError: the stream is None, since it is closed (`2>&-`)
        return stream
    return _LastingStream(
        io.BufferedWriter(raw), encoding=stream.encoding, errors=stream.errors, line_buffering=True
    )


def reopen_closed() -> None:
    """Open closed standard streams (`>&-`) on the null device: else the next file gets their
    number, and with it a library's output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def keep_results_apart() -> None:
    """Let descriptor 1 lead to stderr, for what plugins and libraries write there is no result;
    `sys.stdout` leads where it did.
    """
    out = sys.stdout
    if not isinstance(out, io.TextIOWrapper) or not _leads_to(out, 1):
        return
    out.flush()
    results = os.dup(1)
    os.dup2(2, 1)
    buffering = 1 if out.line_buffering or out.write_through else -1
    sys.stdout = os.fdopen(
        results, "w", buffering=buffering, encoding=out.encoding, errors=out.errors
    )


def _leads_to(stream: TextIO, descriptor: int) -> bool:
    try:
        return stream.fileno() == descriptor
    except (OSError, ValueError):  # no file is behind it
        return False


def silence(stream: io.FileIO | TextIO) -> None:
    """Discard everything that is written to the stream's file from now on, and its buffer."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
