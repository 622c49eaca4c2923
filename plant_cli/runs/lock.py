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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from plant_cli.api import ArtefactError, Interrupted, ResourceError

LOCK_NAME = ".lock"
PAUSE = 0.05  # seconds between two tries


@contextmanager
def hold_lock(folder: Path, purpose: str, wait: float = 0.0, should_stop: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Hold the lock of a folder inside the block.

    Args:
        folder: the run folder, or the cache that several runs share.
        purpose: what the holder does, for the message that others get: "finetune".
        wait: seconds to wait for another holder to end; may be infinite.
        should_stop: true once nobody wants to wait any longer.

    Raises:
        Interrupted: `should_stop` said so while another process held it.
        ArtefactError: another process holds it (the message says which and since when), or the file is not one that `plant` made.
        ResourceError: the file system knows no locks.
    """
    path = folder / LOCK_NAME
    handle, place, until = _open(path), os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), time.monotonic() + wait
    try:
        while not (_take_file(handle, path) and _take_folder(place)):
            if should_stop():
                raise _stopped(path, _read_holder(handle))
            if time.monotonic() >= until:
                raise _held(path, _read_holder(handle))
            time.sleep(PAUSE)
        if not path.exists():  # its holder has just removed a run that held nothing, and this one opened the file before
            raise _held(path, {})
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now(), "purpose": purpose}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # releases the lock
        os.close(place)


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


def _take(handle: int) -> bool:
    """Lock what is open, unless another process holds it; False if one does."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_file(handle: int, path: Path) -> bool:
    try:
        return _take(handle)
    except OSError as error:
        raise ResourceError(
            f"the file system of this folder cannot lock a file: {error.strerror}",
            where=str(path),
            expected="a file system with locks, so that two commands do not write at once; some network file systems have none",
            todo="use a folder on a local disk, with --run DIR, or have the file system mounted with locks",
        ) from error


def _take_folder(handle: int) -> bool:
    """Lock the folder itself too: the file may be deleted while it is held, and a second writer would make another.

    Network file systems that cannot lock a folder leave it at the file.
    """
    try:
        return _take(handle)
    except OSError:
        return True


def _stopped(path: Path, holder: Mapping[str, Any]) -> Interrupted:
    return Interrupted(
        f"stopped while waiting for another process: {holder.get('purpose', 'a stage')}",
        where=_name_holder(path, holder),
        expected="the other one to end",
        todo="run the same command again with --resume",
    )


def _name_holder(path: Path, holder: Mapping[str, Any]) -> str:
    return f"{path.parent}, held by process {holder.get('pid', '?')} on {holder.get('host', '?')} since {holder.get('since', '?')}"


def _held(path: Path, holder: Mapping[str, Any]) -> ArtefactError:
    return ArtefactError(
        f"another process is writing to this run: {holder.get('purpose', 'a stage')}",
        where=_name_holder(path, holder),
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
