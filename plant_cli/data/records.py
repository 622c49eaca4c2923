"""JSON records of a run with their format and hashes, and whether a recorded file is still what was
written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from plant_cli.api import ArtefactError
from plant_cli.api.context import NAME_PATTERN, command_for
from plant_cli.data.files import hash_file, read_json

RECORD_FORMAT = 1
"""Of the run folder and all its files; raised when the meaning of any of them changes."""

HASHED_THINGS = {"label_hash": "label order", "tokenizer_hash": "tokenizer"}
HASH_CHARACTERS = 12  # characters of a hash in messages


def stamp(*, labels: str | None = None, tokenizer: str | None = None) -> dict[str, str]:
    """The marks of a file, as metadata of Parquet and safetensors or as keys of JSON."""
    hashes = {"label_hash": labels, "tokenizer_hash": tokenizer}
    return {
        "format": str(RECORD_FORMAT),
        **{name: value for name, value in hashes.items() if value is not None},
    }


def require_same(
    found: Mapping[str, Any],
    *,
    path: Path,
    what: str,
    todo: str,
    labels: str | None = None,
    tokenizer: str | None = None,
    against: Path | str = "the run's corpus",
) -> None:
    """Refuse a file of another format, label order or tokenizer."""
    written = str(found.get("format", "none"))
    if written != str(RECORD_FORMAT):
        raise ArtefactError(
            f"{what} has format {written[:HASH_CHARACTERS]}",
            where=str(path),
            expected=f"format {RECORD_FORMAT}, which this version of plant reads",
            todo=f"{todo}, or use the version of plant that wrote it",
        )
    for key, wanted in (("label_hash", labels), ("tokenizer_hash", tokenizer)):
        mark = str(found.get(key, "none"))
        if wanted is not None and mark != wanted:
            raise ArtefactError(
                f"{what} was made for another {HASHED_THINGS[key]}",
                where=f"{path} ({mark[:HASH_CHARACTERS]}) against {against} "
                f"({wanted[:HASH_CHARACTERS]})",
                expected=f"one {HASHED_THINGS[key]} in the whole run",
                todo=todo,
            )


STAGE_FILE = "stage.json"
RESTORE = "restore the file, or start in another run folder with --run DIR"
Status = Literal["running", "done", "failed", "interrupted"]


def _stay_inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path:
        raise ValueError(f"the path {path!r} leads outside the run")
    return path


FolderName = Annotated[str, Field(pattern=NAME_PATTERN)]
InnerPath = Annotated[str, AfterValidator(_stay_inside)]


class Record(BaseModel):
    """Base of the records: immutable; keys that a later version of the same format added are passed
    over.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class RunHeader(Record):
    """`run.json`: what the whole run is bound to."""

    format: int  # number of the folder's format
    created: str  # when, ISO 8601 with the offset from UTC
    plant_version: str  # the version that created it
    data_hash: str | None = None  # of the corpus; None until it was prepared
    label_hash: str | None = None  # of the ordered label ids; likewise
    sources: dict[str, str] = {}  # SHA-256 of each file the corpus was read from, by absolute path
    former: list[str] = []  # data hashes that the corpus had before it grew


class Facts(Record):
    """Size and time of a file: if both are the same, the file was most likely not changed."""

    size: int  # in bytes
    modified: int  # time of the last change, in nanoseconds since 1970

    @classmethod
    def of(cls, path: Path) -> Facts:
        """Of a file as it is now."""
        found = path.stat()
        return cls(size=found.st_size, modified=found.st_mtime_ns)


class StageRecord(Record):
    """`stage.json`: what one stage did, with what, and how it ended."""

    # `running`, `done`, `failed` or `interrupted`; `running` without a holder of the run's lock
    # means that its process died
    status: Status
    stage: FolderName  # which stage
    tag: FolderName | None  # which variant of it; None for the one without a tag
    options: dict[str, Any]  # every option, written out
    sections: dict[str, dict[str, Any]]  # the shared recipe sections it used, written out
    inputs: dict[
        FolderName, str
    ] = {}  # other stages' folders it read, each with the hash of their outputs
    # what else its options made it read: files, each with its SHA-256, and other runs, with a hash
    # of what the system left
    files: dict[str, str] = {}
    outputs: dict[InnerPath, str] = {}  # SHA-256 of each file it left, by path inside its folder
    # size in bytes and time of the last change (nanoseconds since 1970) of each of them, when its
    # hash was taken
    facts: dict[InnerPath, Facts] = {}
    key: str = ""  # hash of everything that decides the outputs; empty until done
    environment: dict[str, Any] = {}  # packages, Python, platform, commit
    seed: int  # the random seed
    started: str  # when, ISO 8601 with the offset from UTC
    finished: str | None = None  # likewise
    seconds: float | None = None  # wall-clock time of the last attempt
    peak_memory_gb: float | None = None  # largest resident memory so far, in 10⁹ bytes
    warnings: list[str] = []  # what the stage warned about
    summary: dict[str, Any] = {}  # main numbers
    error: str | None = None  # why it failed or stopped


def plain_values(value: Any) -> Any:
    """A stage's summary as JSON can hold it: numbers of array libraries as plain ones, what is not
    a number as null.
    """
    if isinstance(value, dict):
        return {str(key): plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(item) for item in value]
    if hasattr(value, "item"):
        return plain_values(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


RecordType = TypeVar("RecordType", bound=Record)


def read_record(path: Path, model: type[RecordType], what: str) -> RecordType:
    """Read and check one record."""
    try:
        values = read_json(path, what)
    except ArtefactError as error:
        error.todo = error.todo if model is StageRecord else RESTORE
        raise
    number = values.get("format") if model is RunHeader and isinstance(values, dict) else None
    if isinstance(number, int) and number > RECORD_FORMAT:
        raise ArtefactError(
            f"the run folder has format {number}, written by plant "
            f"{values.get('plant_version', '?')}",
            where=str(path),
            expected=f"format {RECORD_FORMAT} or older",
            todo="install that version or a newer one: pip install --upgrade plant-cli",
        )
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first: Any = error.errors()[0]
        where, expected = (
            f"{path}, key {'.'.join(map(str, first['loc']))}",
            "a file as `plant` wrote it",
        )
        raise ArtefactError(
            f"{what} is damaged: {first['msg']}", where=where, expected=expected, todo=RESTORE
        ) from error


FileStateName = Literal["whole", "changed", "missing"]


@dataclass(frozen=True, kw_only=True)
class FileState:
    """One recorded file."""

    path: Path  # the file
    name: str  # its path inside the folder of the stage
    state: FileStateName  # whether it is as it was recorded
    recorded: str  # its SHA-256 when it was recorded

    def error(self, owner: str, todo: str) -> ArtefactError:
        """What to tell a person about a file that is missing or changed."""
        return ArtefactError(
            f"the file '{self.name}' of {owner} is gone"
            if self.state == "missing"
            else f"the file '{self.name}' of {owner} is damaged, or was changed: it is not what "
            "was written",
            where=str(self.path),
            expected=f"contents with SHA-256 {self.recorded[:12]}…",
            todo=f"restore the file, or {todo}",
        )


def examine_file(
    path: Path, recorded: str, facts: Facts | None = None, name: str | None = None
) -> FileState:
    """The state of one file; its hash is taken where size and time do not tell."""
    now = Facts.of(path) if path.is_file() else None
    state: FileStateName
    if now is None:
        state = "missing"
    elif facts is not None and (now == facts or now.size != facts.size):
        state = "whole" if now == facts else "changed"
    else:
        state = "whole" if hash_unchanged(path) == recorded else "changed"
    return FileState(path=path, name=name or path.name, state=state, recorded=recorded)


def examine_files(
    folder: Path, record: StageRecord, names: Sequence[str] | None = None, *, fully: bool = False
) -> list[FileState]:
    """The states of files that a stage left."""
    chosen = record.outputs if names is None else [name for name in names if name in record.outputs]
    return [
        examine_file(
            folder / name, record.outputs[name], None if fully else record.facts.get(name), name
        )
        for name in chosen
    ]


def find_finished(folder: Path) -> StageRecord | None:
    """The record of the finished stage whose folder this is; None if there is none."""
    path = folder / STAGE_FILE
    record = (
        read_record(path, StageRecord, f"the record of the stage {folder.name}")
        if path.exists()
        else None
    )
    return record if record is not None and record.status == "done" else None


def require_recorded(folder: Path, *names: str) -> None:
    """Refuse files that are not, byte for byte, what a stage recorded; readers of whole files call
    it first.

    The folder is that of the stage, or one in it. Where no finished stage is recorded there is
    nothing to compare with, and files that were laid there later have no hash: they pass.
    """
    if names and not (folder / STAGE_FILE).exists() and (folder.parent / STAGE_FILE).exists():
        folder, names = folder.parent, tuple(f"{folder.name}/{name}" for name in names)
    record = find_finished(folder)
    if record is None:
        return
    command = command_for(record.stage, record.tag, folder.parent)
    for file in examine_files(folder, record, names or None, fully=True):
        if file.state != "whole":
            raise file.error(f"the stage '{folder.name}'", f"make it again: {command} --force")


def hash_unchanged(path: Path) -> str:
    """SHA-256 of a file; within one process an unchanged file is read once."""
    found = path.stat()
    return _hash(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


@lru_cache(maxsize=1024)
def _hash(path: Path, version: tuple[int, ...]) -> str:
    return hash_file(path)
