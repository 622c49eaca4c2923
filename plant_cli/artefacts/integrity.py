"""Are the files of a finished stage what it left? Size and time of the last change first, the SHA-256 where these differ.

A folder that was copied has other times: its files are hashed, and pass. Readers that take in a whole file ask for its hash in any
case, so that damage that left size and time alone is found, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from plant_cli.api.errors import ArtefactError
from plant_cli.artefacts.records import STAGE_FILE, Facts, StageRecord, read_record
from plant_cli.base.commands import command_for
from plant_cli.base.hashing import hash_file

State = Literal["whole", "changed", "missing"]


@dataclass(frozen=True, kw_only=True)
class FileState:
    """One recorded file.

    Args:
        path: the file.
        name: its path inside the folder of the stage.
        state: whether it is as it was recorded.
        recorded: its SHA-256 when it was recorded.
    """

    path: Path
    name: str
    state: State
    recorded: str

    def error(self, owner: str, todo: str) -> ArtefactError:
        """What to tell a person about a file that is missing or changed.

        Args:
            owner: what the file belongs to: "the stage 'finetune'".
            todo: what to do where the file cannot be restored.
        """
        return ArtefactError(
            f"the file '{self.name}' of {owner} is gone"
            if self.state == "missing"
            else f"the file '{self.name}' of {owner} is damaged, or was changed: it is not what was written",
            where=str(self.path),
            expected=f"contents with SHA-256 {self.recorded[:12]}…",
            todo=f"restore the file, or {todo}",
        )


def examine_file(path: Path, recorded: str, facts: Facts | None = None, name: str | None = None) -> FileState:
    """The state of one file.

    Args:
        path: the file.
        recorded: its SHA-256 when it was recorded.
        facts: its size and time then; the file passes without being read if they are the same. None: it is hashed.
        name: how messages call it (default: its name).
    """
    return FileState(path=path, name=name or path.name, state=_find_state(path, recorded, facts), recorded=recorded)


def examine(folder: Path, record: StageRecord, names: Sequence[str] | None = None, *, fully: bool = False) -> list[FileState]:
    """The states of files that a stage left.

    Args:
        folder: of the stage.
        record: what its stage.json says.
        names: which files; those that are not recorded are passed over. None: all.
        fully: hash every file, whatever its size and time say.
    """
    chosen = record.outputs if names is None else [name for name in names if name in record.outputs]
    return [examine_file(folder / name, record.outputs[name], None if fully else record.facts.get(name), name) for name in chosen]


def require_recorded(folder: Path, *names: str) -> None:
    """Refuse files that are not, byte for byte, what a stage recorded; readers of whole files call it first.

    Where no finished stage is recorded there is nothing to compare with, and files that were laid there later have no hash: they pass.

    Args:
        folder: of the stage.
        names: paths inside it; none: every recorded file.

    Raises:
        ArtefactError: a file is missing or changed; the message says which, and what makes it again.
    """
    path = folder / STAGE_FILE
    if not path.exists():
        return
    record = read_record(path, StageRecord, f"the record of the stage {folder.name}")
    if record.status != "done":
        return
    command = command_for(record.stage, record.tag, folder.parent)
    for file in examine(folder, record, names or None, fully=True):
        if file.state != "whole":
            raise file.error(f"the stage '{folder.name}'", f"make it again: {command} --force")


def _find_state(path: Path, recorded: str, facts: Facts | None) -> State:
    if not path.is_file():
        return "missing"
    if facts is not None:
        now = Facts.of(path)
        if now.size != facts.size or now == facts:
            return "whole" if now == facts else "changed"
    return "whole" if hash_unchanged(path) == recorded else "changed"


def hash_unchanged(path: Path) -> str:
    """SHA-256 of a file; within one process a file that nobody has touched is read once."""
    found = path.stat()
    return _hash(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


@lru_cache(maxsize=1024)
def _hash(path: Path, version: tuple[int, ...]) -> str:
    return hash_file(path)
