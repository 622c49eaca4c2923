"""One writer a run: an advisory lock that the system releases when its holder dies.

The file names its holder. It is written and emptied through the handle that holds the lock, and is
never opened through a link.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from plant_cli.api import ArtefactError, ResourceError
from plant_cli.runs.session import stopped

LOCK_NAME = ".lock"
EXCLUSIVE = fcntl.LOCK_EX | fcntl.LOCK_NB  # fails at once where another process holds it
PAUSE = 0.05  # seconds between two tries


@contextmanager
def hold_lock(
    folder: Path, purpose: str, wait: float = 0.0, should_stop: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Hold the lock of a folder inside the block: a run, or a cache that several runs share.

    `purpose` is the holder's work, for the message that others get: "finetune". Another holder may
    take `wait` seconds to end, which may be infinite; `should_stop`, true once the user asked to
    stop, ends the wait.
    """
    path = folder / LOCK_NAME
    handle, opened, until = (
        _open(path),
        os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),
        time.monotonic() + wait,
    )
    try:
        while not _take(handle, opened, path):
            if should_stop():
                who, where = _describe_holder(handle, path)
                raise stopped(
                    f"while waiting for another process: {who}", where, "the other one to end"
                )
            if time.monotonic() >= until:
                raise _held(handle, path)
            time.sleep(PAUSE)
        # its holder has just removed a run that held nothing, and this one opened the file before
        if not path.exists():
            raise _held(None, path)
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": since,
            "purpose": purpose,
        }
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # releases the lock
        os.close(opened)


def _open(path: Path) -> int:
    """The opened file; one that leads to another file is refused, since holding the lock
    empties it.
    """
    refusal = ArtefactError(
        "the lock of the run is a link or no plain file",
        where=str(path),
        expected="a plain file, as `plant` makes it",
        todo=f"remove it: rm {shlex.quote(str(path))}",
    )
    try:
        handle = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644
        )
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        raise refusal from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(handle)
        raise refusal
    return handle


def _take(handle: int, opened: int, path: Path) -> bool:
    """Lock the file, and the folder, where that can be locked, since the file may be deleted;
    False if another process holds one.
    """
    try:
        fcntl.flock(handle, EXCLUSIVE)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ResourceError(
            f"the file system of this folder cannot lock a file: {error.strerror}",
            where=str(path),
            expected="a file system with locks, so that two commands do not write at once; some "
            "network file systems have none",
            todo="use a folder on a local disk, with --run DIR, or have the file system mounted "
            "with locks",
        ) from error
    try:
        fcntl.flock(opened, EXCLUSIVE)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _held(handle: int | None, path: Path) -> ArtefactError:
    who, where = _describe_holder(handle, path)
    expected, todo = (
        "one writer a run",
        "wait until it ends, stop it, or use another run folder with --run DIR",
    )
    return ArtefactError(
        f"another process is writing to this run: {who}", where=where, expected=expected, todo=todo
    )


def _describe_holder(handle: int | None, path: Path) -> tuple[str, str]:
    """The work of the process that holds the lock, and where and since when it holds it;
    question marks while it is just writing that.
    """
    try:
        holder = {} if handle is None else json.loads(os.pread(handle, 4096, 0))
    except ValueError:
        holder = {}
    holder = holder if isinstance(holder, dict) else {}
    pid, host, since = (holder.get(key, "?") for key in ("pid", "host", "since"))
    return holder.get(
        "purpose", "a stage"
    ), f"{path.parent}, held by process {pid} on {host} since {since}"
