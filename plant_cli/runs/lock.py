"""One writer a run: an advisory lock that the system releases when its holder dies.

The file also says who holds it. It is written and emptied through the handle that holds the lock, and is never opened through a link.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from plant_cli.api import ArtefactError

LOCK_NAME = ".lock"
PAUSE = 0.05  # seconds between two tries


@contextmanager
def hold_lock(run: Path, purpose: str, wait: float = 0.0) -> Iterator[None]:
    """Hold the run's lock inside the block.

    Args:
        run: the run folder.
        purpose: what the holder does, for the message that others get: "finetune".
        wait: seconds to wait for another holder to end.

    Raises:
        ArtefactError: another process holds it (the message says which and since when), or the file is not one that `plant` made.
    """
    path = run / LOCK_NAME
    handle, folder, until = _open(path), os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), time.monotonic() + wait
    try:
        _take(handle, handle, path, until)
        _take_folder(folder, handle, path, until)
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now(), "purpose": purpose}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # releases the lock
        os.close(folder)


def _take_folder(folder: int, handle: int, path: Path, until: float) -> None:
    """Lock the run folder itself too: the file may be deleted while it is held, and a second writer would make another.

    Network file systems that cannot lock a folder leave it at the file.
    """
    try:
        _take(folder, handle, path, until)
    except OSError:
        return


def _open(path: Path) -> int:
    """The opened file; one that leads to another file is refused, since holding the lock empties it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise _not_a_lock(path) from error
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(handle)
        raise _not_a_lock(path)
    return handle


def _not_a_lock(path: Path) -> ArtefactError:
    return ArtefactError(
        "the lock of the run is a link or no plain file",
        where=str(path),
        expected="a plain file, as `plant` makes it",
        todo=f"remove it: rm {shlex.quote(str(path))}",
    )


def _take(locked: int, handle: int, path: Path, until: float) -> None:
    """Lock what is open as `locked`; another holder, who has written to `handle`, is waited for until this time of the monotonic clock."""
    while True:
        try:
            fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= until:
                raise _held(path, _read_holder(handle)) from error
        time.sleep(PAUSE)


def _held(path: Path, holder: Mapping[str, Any]) -> ArtefactError:
    return ArtefactError(
        f"another process is writing to this run: {holder.get('purpose', 'a stage')}",
        where=f"{path.parent}, held by process {holder.get('pid', '?')} on {holder.get('host', '?')} since {holder.get('since', '?')}",
        expected="one writer a run",
        todo="wait until it ends, stop it, or use another run folder with --run DIR",
    )


def _read_holder(handle: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
    except ValueError:  # the holder is just writing it
        return {}
    return holder if isinstance(holder, dict) else {}


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
