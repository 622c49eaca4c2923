"""One writer a run: an advisory lock that the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from plant_cli.api import ArtefactError

LOCK_NAME = ".lock"


@contextmanager
def hold_lock(run: Path, purpose: str) -> Iterator[None]:
    """Hold the run's lock inside the block.

    Args:
        run: the run folder.
        purpose: what the holder does, for the message that others get: "finetune".

    Raises:
        ArtefactError: another process holds it; says which and since when.
    """
    path = run / LOCK_NAME
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _take(handle, path)
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now(), "purpose": purpose}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # releases the lock


def _take(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = _read_holder(handle)
        raise ArtefactError(
            f"another process is writing to this run: {holder.get('purpose', 'a stage')}",
            where=f"{path.parent}, held by process {holder.get('pid', '?')} on {holder.get('host', '?')} since {holder.get('since', '?')}",
            expected="one writer a run",
            todo="wait until it ends, stop it, or use another run folder with --run DIR",
        ) from error


def _read_holder(handle: int) -> dict[str, Any]:
    try:
        holder = json.loads(os.pread(handle, 4096, 0))
    except ValueError:  # the holder is just writing it
        return {}
    return holder if isinstance(holder, dict) else {}


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
