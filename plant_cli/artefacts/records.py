"""Typed schemas of the records in a run folder: `run.json` and each stage's `stage.json`."""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from plant_cli.api import ArtefactError
from plant_cli.artefacts.guard import FORMAT
from plant_cli.base.files import read_json
from plant_cli.base.names import NAME_PATTERN

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
    """Base of the records: immutable; keys that a later version of the same format added are passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class RunHeader(Record):
    """`run.json`: what the whole run is bound to.

    Args:
        format: number of the folder's format.
        created: when, ISO 8601 with the offset from UTC.
        plant_version: the version that created it.
        data_hash: of the corpus; None until it was prepared.
        label_hash: of the ordered label ids; likewise.
        sources: SHA-256 of each file the corpus was read from, by absolute path.
    """

    format: int
    created: str
    plant_version: str
    data_hash: str | None = None
    label_hash: str | None = None
    sources: dict[str, str] = {}


class Facts(Record):
    """Size and time of a file: if both are the same, the file was most likely not changed.

    Args:
        size: in bytes.
        modified: time of the last change, in nanoseconds since 1970.
    """

    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> Facts:
        """Of a file as it is now."""
        found = path.stat()
        return cls(size=found.st_size, modified=found.st_mtime_ns)


class StageRecord(Record):
    """`stage.json`: what one stage did, with what, and how it ended.

    Args:
        status: how it stands; `running` without a holder of the run's lock means that its process died.
        stage: which stage.
        tag: which variant of it; None for the one without a tag.
        options: every option, written out.
        sections: the shared recipe sections it used, written out.
        inputs: other stages' folders it read, each with the hash of their outputs.
        files: what else its options made it read: files, each with its SHA-256, and other runs, with a hash of what the system left.
        outputs: SHA-256 of each file it left, by path inside its folder.
        facts: size in bytes and time of the last change (nanoseconds since 1970) of each of them, when its hash was taken.
        key: hash of everything that decides the outputs; empty until done.
        environment: packages, Python, platform, commit.
        seed: the random seed.
        started: when, ISO 8601 with the offset from UTC.
        finished: likewise.
        seconds: wall-clock time of the last attempt.
        peak_memory_gb: largest resident memory of the process so far, in 10⁹ bytes.
        warnings: what the stage warned about.
        summary: main numbers.
        error: why it failed or stopped.
    """

    status: Status
    stage: FolderName
    tag: FolderName | None
    options: dict[str, Any]
    sections: dict[str, dict[str, Any]]
    inputs: dict[FolderName, str] = {}
    files: dict[str, str] = {}
    outputs: dict[InnerPath, str] = {}
    facts: dict[InnerPath, Facts] = {}
    key: str = ""
    environment: dict[str, Any] = {}
    seed: int
    started: str
    finished: str | None = None
    seconds: float | None = None
    peak_memory_gb: float | None = None
    warnings: list[str] = []
    summary: dict[str, Any] = {}
    error: str | None = None


def plain_values(value: Any) -> Any:
    """A stage's summary as JSON can hold it: numbers of array libraries as plain ones, what is not a number as null."""
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
    """Read and check one record.

    Raises:
        ArtefactError: missing, damaged, or (run.json) written in a newer format.
    """
    try:
        values = read_json(path, what)
    except ArtefactError as error:
        error.todo = error.todo if model is StageRecord else RESTORE
        raise
    if model is RunHeader:
        _refuse_newer(path, values)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first: Any = error.errors()[0]
        raise ArtefactError(
            f"{what} is damaged: {first['msg']}",
            where=f"{path}, key {'.'.join(map(str, first['loc']))}",
            expected="a file as `plant` wrote it",
            todo=RESTORE,
        ) from error


def _refuse_newer(path: Path, values: Any) -> None:
    number = values.get("format") if isinstance(values, dict) else None
    if isinstance(number, int) and number > FORMAT:
        raise ArtefactError(
            f"the run folder has format {number}, written by plant {values.get('plant_version', '?')}",
            where=str(path),
            expected=f"format {FORMAT} or older",
            todo="install that version or a newer one: pip install --upgrade plant-cli",
        )
