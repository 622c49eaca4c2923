"""Marks of folders that count only when whole, such as checkpoints: written last, with the hash of every file beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pydantic import Field

from plant_cli.api.errors import ArtefactError
from plant_cli.data.files import hash_file, write_json
from plant_cli.data.records import Facts, FileState, InnerPath, Record, examine_file, read_record

CHECKPOINT_MARK = "DONE"
CACHE, CACHE_MARK = "cache", "done.json"


class Mark(Record):
    """The content of a mark: SHA-256 of each file of the folder by path inside it, and its size and time when its hash was taken."""

    outputs: dict[InnerPath, str] = Field(min_length=1)
    facts: dict[InnerPath, Facts]


def write_mark(path: Path) -> None:
    """Mark the folder of a path as whole, with the hashes of the files that are in it now."""
    files = {file.name: file for file in sorted(path.parent.iterdir()) if file.is_file() and file != path}
    mark = Mark(
        outputs={name: hash_file(file) for name, file in files.items()}, facts={name: Facts.of(file) for name, file in files.items()}
    )
    write_json(path, mark.model_dump(mode="json"))


def examine_marked(path: Path, *, fully: bool = False) -> list[FileState]:
    """The states of the files that a mark names; with `fully` every file is hashed, whatever its size and time say.

    Raises:
        ArtefactError: the mark itself is missing or damaged.
    """
    mark = read_record(path, Mark, "the mark of a finished folder")
    return [examine_file(path.parent / name, recorded, None if fully else mark.facts.get(name)) for name, recorded in mark.outputs.items()]


def require_marked(path: Path, owner: str, todo: str, *, fully: bool = False) -> None:
    """Refuse a folder whose mark is missing or damaged, or in which a file that the mark names is missing or changed.

    Args:
        path: its mark.
        owner: the folder, for the message: "the checkpoint".
        todo: what to do where a file cannot be restored.
        fully: hash every file.
    """
    for file in examine_marked(path, fully=fully):
        if file.state != "whole":
            raise file.error(owner, todo)


def is_whole(path: Path, owner: str, warn: Callable[[str], None]) -> bool:
    """Whether a folder whose content can be made again is marked and complete; every file is hashed, and a warning names damage.

    `owner` is the folder, for the warning: "the cached hidden states of train".
    """
    if not path.exists():
        return False
    try:
        require_marked(path, owner, "", fully=True)
    except ArtefactError as error:
        warn(f"{error.what}; {owner} are made again")
        return False
    return True
