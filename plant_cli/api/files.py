"""Files that are whole or not there: written beside their place, synced, and renamed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from plant_cli.api.errors import ArtefactError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary sibling to write to, which takes the place of `path` when the block ends well and vanishes when it does not.

    The temporary name keeps the suffix of `path`, because some writers choose their format by it. Missing folders are made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid4().hex}-{path.name}")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(path.parent)  # the rename itself must survive a power cut too


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A temporary sibling folder to write to, which takes the place of `path`, if there is one, when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, previous = (path.with_name(f".{uuid4().hex}-{path.name}") for _ in range(2))
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            _sync(file)
        if path.exists():
            os.replace(path, previous)
        os.replace(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        if previous.exists() and not path.exists():
            os.replace(previous, path)
        raise
    _sync(path.parent)
    shutil.rmtree(previous, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, atomically; NaN and infinity are refused with a `ValueError`."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path, what: str) -> Any:
    """Read a JSON file that `plant` wrote.

    Args:
        path: the file.
        what: what it holds, for the message: "the thresholds of the stage finetune".

    Raises:
        ArtefactError: the file is missing, not UTF-8 or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArtefactError(
            f"{what} is missing",
            where=str(path),
            expected="a file written by an earlier command",
            todo="run the stage that writes it again",
        ) from error
    except json.JSONDecodeError as error:
        raise ArtefactError(
            f"{what} is damaged: {error.msg}",
            where=f"{path}, line {error.lineno}, column {error.colno}",
            expected="a complete JSON document",
            todo="run the stage that writes it again with --force",
        ) from error
    except UnicodeDecodeError as error:
        raise ArtefactError(
            f"{what} is damaged: byte {error.start} is not UTF-8",
            where=str(path),
            expected="a JSON document in UTF-8",
            todo="run the stage that writes it again with --force",
        ) from error
