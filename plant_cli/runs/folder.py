"""The folder of a run and those of its stages: begun, continued, finished, put back if
replacing one fails, and copied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import plant_cli
from plant_cli.api import ArtefactError, Interrupted, PlantError, UsageError
from plant_cli.api.context import NAME_RULE, join_tag, names_folder
from plant_cli.data.files import (
    TEMPORARY,
    hash_file,
    hash_json,
    read_json,
    refuse_strange_files,
    remove,
    remove_temporaries,
    write_json,
)
from plant_cli.data.records import (
    RECORD_FORMAT,
    STAGE_FILE,
    Facts,
    FileState,
    RunHeader,
    StageRecord,
    examine_files,
    read_record,
)
from plant_cli.runs.lock import LOCK_NAME, hold_lock

VALIDATION_FILE = (
    "validation.parquet"  # predictions for validation, each document calibrated without itself
)
CACHE = "cache"  # tokens and hidden states that the stages of a run share
READER = "reader.txt"  # in a folder of words or hidden states: a hash of what read the texts
HISTORY = "history.jsonl"  # of a training: a line for each epoch
CHECKPOINTS_FOLDER = (
    "checkpoints"  # needed to continue a stage, removed when it is finished; not an output
)


class StageFolder:
    """A stage's folder in a run.

    While a finished folder is being replaced it waits in a hidden sibling, `.NAME.previous`. It is
    deleted once the new one is done, which takes over files that a user added; if the new one fails
    it comes back and the failed one is kept as `.NAME.failed`. If a folder is a link, only the link
    is moved and removed, never its target.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._previous = path.with_name(f".{path.name}.previous")
        self.failed_path = path.with_name(f".{path.name}.failed")

    @property
    def name(self) -> str:
        """`finetune` or `finetune-baseline`."""
        return self.path.name

    def record(self) -> StageRecord | None:
        """The content of stage.json; None if the stage never began; `ArtefactError` if the file
        is damaged.
        """
        path = self.path / STAGE_FILE
        return (
            read_record(path, StageRecord, f"the record of the stage {self.name}")
            if path.exists()
            else None
        )

    def last_record(self) -> StageRecord | None:
        """The record of the last attempt. A folder that was to be replaced, and whose replacement
        was killed before it had a record, still has it.
        """
        return self.record() or StageFolder(self._previous).record()

    def holds_work(self) -> bool:
        """Whether the folder has more than its record and half-written files, so that a fresh
        start would lose something.
        """
        names = (entry.name for entry in self.path.iterdir()) if self.path.is_dir() else ()
        return any(name != STAGE_FILE and not TEMPORARY.fullmatch(name) for name in names)

    def holds(self, record: StageRecord) -> bool:
        """Whether the stage still has this record; False if it was made anew, removed or
        damaged since.
        """
        try:
            return self.record() == record
        except (ArtefactError, OSError):
            return False

    def finished(self) -> StageRecord | None:
        """The record of the stage if it finished."""
        record = self.record()
        return record if record is not None and record.status == "done" else None

    def is_done(self) -> bool:
        """Whether the stage finished."""
        return self.finished() is not None

    def usable(self) -> StageFolder:
        """The folder of the finished stage: while it is being replaced, the one that waits;
        this one if there is none.
        """
        earlier = StageFolder(self._previous)
        return earlier if not self.is_done() and earlier.is_done() else self

    def begin(self, record: StageRecord) -> None:
        """Start afresh in an empty folder; earlier results are moved aside, half-written files
        of a killed process are removed.
        """
        if (
            os.path.lexists(self._previous) and self._is_finished()
        ):  # replaced already; a kill prevented only its removal
            remove(self._previous)
        if os.path.lexists(
            self._previous
        ):  # an unfinished replacement: the finished folder still waits
            remove(self.path)
        elif self.path.exists() and (self.holds_work() or self._is_finished()):
            self.path.rename(self._previous)
        elif os.path.lexists(self.path) and (
            not self.path.is_dir() or self._is_of_another_process()
        ):
            remove(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        remove_temporaries(self.path)
        self.write(record)

    def resume(self, record: StageRecord) -> None:
        """Continue with the files of the folder, except for half-written files of a killed
        process.
        """
        remove_temporaries(self.path)
        self.write(record)

    def _is_of_another_process(self) -> bool:
        """Whether this is a link to a folder that the first process of a group has just begun
        anew, with or without a record.
        """
        if not self.path.is_symlink():
            return False
        theirs = StageFolder(self.path.resolve())
        return (theirs.path / STAGE_FILE).exists() or os.path.lexists(theirs._previous)

    def _is_finished(self) -> bool:
        try:
            return self.is_done()
        except ArtefactError:  # a damaged record
            return False

    def write(self, record: StageRecord) -> None:
        """Write stage.json."""
        write_json(self.path / STAGE_FILE, record.model_dump(mode="json"))

    def finish(self, record: StageRecord) -> list[str]:
        """Record that the stage is done and remove its checkpoints and the earlier results.

        Files that a user had added to these are taken over; their paths inside the folder.
        """
        taken = self._take_over()
        self.write(
            record.model_copy(
                update={"facts": {name: Facts.of(self.path / name) for name in record.outputs}}
            )
        )
        for spent in (self._previous, self.failed_path, self.path / CHECKPOINTS_FOLDER):
            remove(spent)
        return taken

    def _take_over(self) -> list[str]:
        replaced = StageFolder(self._previous)
        record = replaced.finished()
        if record is None:
            return []
        added = [
            name
            for name in replaced.hash_outputs(known=record.outputs)
            if name not in record.outputs
        ]
        taken = [name for name in added if not (self.path / name).exists()]
        for name in taken:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._previous / name, self.path / name)
        return taken

    def put_back(self) -> bool:
        """After a failure: bring back what was being replaced and keep the failed attempt
        aside; False if nothing was replaced.
        """
        if not os.path.lexists(self._previous):
            return False
        remove(self.failed_path)
        self.path.rename(self.failed_path)
        self._previous.rename(self.path)
        return True

    def put_aside(self) -> None:
        """Keep an attempt that cannot go on beside the run's stages; what it was to replace
        comes back.
        """
        if not self.put_back():
            remove(self.failed_path)
            self.path.rename(self.failed_path)

    def hash_outputs(self, known: Mapping[str, str] | None = None) -> dict[str, str]:
        """SHA-256 of each file the stage left, by path inside the folder; checkpoints, links and
        hidden files do not count.

        Hashes that are `known` from before are not taken again.
        """
        files = (p for p in sorted(self.path.rglob("*")) if p.is_file() and not p.is_symlink())
        names = {path.relative_to(self.path): path for path in files}
        shown = {
            name: path
            for name, path in names.items()
            if not any(part.startswith(".") for part in name.parts)
        }
        kept = {
            name.as_posix(): path
            for name, path in shown.items()
            if name.parts[0] not in (STAGE_FILE, CHECKPOINTS_FOLDER)
        }
        return {name: (known or {}).get(name) or hash_file(path) for name, path in kept.items()}

    def output_hash(self, record: StageRecord) -> str:
        """One hash over the outputs of the finished stage and the files that a user added
        since, such as corrections.
        """
        return hash_json(self.hash_outputs(known=record.outputs))

    def find_damage(self, record: StageRecord) -> list[FileState]:
        """Outputs of the finished stage that are missing or changed now."""
        return [file for file in examine_files(self.path, record) if file.state != "whole"]

    def require(self, todo: str) -> StageRecord:
        """The record of the finished stage; `ArtefactError` if it is not done, or a file that it
        left is missing or changed.

        `todo` is the command that makes or mends it.
        """
        record = self.record()
        if record is None or record.status != "done":
            state, again = "has not run", todo
            if record is not None:
                status = (
                    "its process is at work, or ended without a word"
                    if record.status == "running"
                    else record.status
                )
                state, again = (
                    f"is not done: {status}",
                    f"{todo}; with --resume it goes on where it stopped",
                )
            if os.path.lexists(self._previous):
                again += f"; the finished one that it was to replace waits in {self._previous}"
            raise ArtefactError(
                f"the stage '{self.name}' {state}",
                where=str(self.path),
                expected="a finished stage",
                todo=again,
            )
        for file in self.find_damage(record):
            raise file.error(f"the stage '{self.name}'", f"make it again: {todo} --force")
        return record


HEADER_NAME = "run.json"
RUN_RECIPE = "recipe.yaml"  # the recipe that repeats a run


class Run:
    """One experiment's folder."""

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.path = path
        self.header = header

    @classmethod
    @contextmanager
    def hold(cls, path: Path, purpose: str) -> Iterator[Run]:
        """Be the only writer of a run inside the block; it is opened, or made, once nobody else
        writes.

        A run that was made for the block is removed again if the block ends with a `PlantError` and
        no work was done. `purpose` is the work, for the message that others get: "finetune".
        """
        _refuse_other(path)
        was_there = path.exists()
        path.mkdir(parents=True, exist_ok=True)
        with hold_lock(path, purpose):
            is_new = not (path / HEADER_NAME).exists()
            run = cls.create(path)
            run._remove_half_written()
            try:
                yield run
            except Interrupted:
                raise
            except PlantError:
                if is_new:
                    run._remove_empty(folder_too=not was_there)
                raise

    def _remove_half_written(self) -> None:
        """Remove what a killed process left of the run's own files; those of stages go with their
        stage.
        """
        for left in filter(TEMPORARY.fullmatch, os.listdir(self.path)):
            if left.endswith((f"-{HEADER_NAME}", f"-{RUN_RECIPE}")):
                (self.path / left).unlink(missing_ok=True)

    def _remove_empty(self, *, folder_too: bool) -> None:
        """Remove a run that holds nothing but its header and records of stages that failed."""
        with suppress(OSError):  # the run may be gone; the error of the block is the one to show
            stages = [
                entry for entry in self.path.iterdir() if entry.name not in (HEADER_NAME, LOCK_NAME)
            ]
            if any(entry.name != STAGE_FILE for stage in stages for entry in stage.iterdir()):
                return
            for stage in stages:
                remove(stage)
            (self.path / HEADER_NAME).unlink(missing_ok=True)
            (self.path / LOCK_NAME).unlink(missing_ok=True)
            if folder_too:
                self.path.rmdir()

    @classmethod
    def create(cls, path: Path) -> Run:
        """The run in this folder, made if it is new or empty; where others may write, `hold` it
        instead.
        """
        _refuse_other(path)
        if (path / HEADER_NAME).exists():
            return cls.open(path)
        header = RunHeader(
            format=RECORD_FORMAT, created=current_time(), plant_version=plant_cli.__version__
        )
        write_json(path / HEADER_NAME, header.model_dump(mode="json"))
        return cls(path, header)

    @classmethod
    def open(cls, path: Path) -> Run:
        """The run in this folder; `ArtefactError` if there is none, or it is of a newer format."""
        if not (path / HEADER_NAME).exists():
            expected, todo = (
                f"a folder that holds {HEADER_NAME}",
                "start one with `plant mig DATA`, or name another folder with --run DIR",
            )
            raise ArtefactError(
                f"there is no run in '{path}'",
                where=str(path.absolute()),
                expected=expected,
                todo=todo,
            )
        refuse_strange_files(path, "the run")
        return cls(path, read_record(path / HEADER_NAME, RunHeader, "the header of the run"))

    @property
    def corpus_path(self) -> Path:
        """Where the prepared corpus lies."""
        return self.path / "corpus"

    @property
    def recipe_path(self) -> Path:
        """The resolved recipe that repeats the run."""
        return self.path / RUN_RECIPE

    def bind(self, *, data_hash: str, label_hash: str, sources: dict[str, str]) -> None:
        """Record the corpus that everything in this run is made from."""
        bound: dict[str, Any] = {
            "data_hash": data_hash,
            "label_hash": label_hash,
            "sources": sources,
        }
        if self.header.data_hash not in (None, data_hash):  # it has grown
            bound["former"] = [*self.header.former, self.header.data_hash]
        self.header = self.header.model_copy(update=bound)
        write_json(self.path / HEADER_NAME, self.header.model_dump(mode="json"))

    def stage(self, name: str, tag: str | None = None) -> StageFolder:
        """The folder of a stage, which need not exist; `UsageError` for a tag that cannot be
        part of a folder's name.
        """
        require_tag(tag)
        return self.folder(join_tag(name, tag))

    def folder(self, name: str) -> StageFolder:
        """The stage folder of this name, tag included."""
        return StageFolder(self.path / name)

    def __contains__(self, name: object) -> bool:
        """Whether a stage of this name, tag included, was begun."""
        return self.folder(str(name)).record() is not None

    def stages(self) -> list[StageFolder]:
        """All stages that left a record, by the time they started."""
        names = sorted(path.parent.name for path in self.path.glob(f"[!.]*/{STAGE_FILE}"))
        started = [
            (record.started, folder)
            for folder in map(self.folder, names)
            if (record := folder.record()) is not None
        ]
        return [folder for _, folder in sorted(started, key=lambda pair: pair[0])]


@contextmanager
def copy_run(run: Path) -> Iterator[Path]:
    """A copy of a run folder in which a second process, or a second computation, may write; it is
    deleted after the block.

    Finished stages and the cache are links to those of the run. An unfinished stage has the files
    that it is resumed from. If the run has no corpus yet, it is prepared in the copy by the same
    rules, so it is the same.
    """
    with TemporaryDirectory(prefix="plant-copy-") as folder:
        copy = Path(folder) / "run"
        copy.mkdir()
        if (run / HEADER_NAME).exists():
            _fill(copy, run.absolute())
        else:
            Run.create(copy)
        (copy / CACHE).symlink_to(run.absolute() / CACHE)  # the first process may make it later
        yield copy


def _fill(copy: Path, run: Path) -> None:
    for name in (HEADER_NAME, RUN_RECIPE):
        if (run / name).exists():
            shutil.copyfile(run / name, copy / name)
    for file in (run / "corpus").rglob("*"):  # errors of `shutil.copytree` name no file
        if file.is_file():
            (target := copy / file.relative_to(run)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    for record in run.glob(f"[!.]*/{STAGE_FILE}"):
        stage = record.parent
        try:
            status = read_json(record, "the record of a stage").get("status")
        except ArtefactError:
            if record.exists():
                raise
            continue  # the first process is just beginning it anew
        if status == "done":
            (copy / stage.name).symlink_to(stage)
            continue
        (copy / stage.name).mkdir()
        shutil.copyfile(record, copy / stage.name / STAGE_FILE)
        if (stage / CHECKPOINTS_FOLDER).is_dir():
            (copy / stage.name / CHECKPOINTS_FOLDER).symlink_to(stage / CHECKPOINTS_FOLDER)


def require_tag(tag: str | None) -> None:
    """Refuse a tag that cannot be part of a folder's name."""
    if tag is not None and not names_folder(tag):
        raise UsageError(
            f"the tag '{tag}' cannot name a folder",
            where=f"--tag {tag}",
            expected=NAME_RULE,
            todo="choose another, such as --tag baseline",
        )


def _refuse_other(path: Path) -> None:
    """Refuse a file, or a folder with other content than a run; traces of a process that makes
    or made a run do not count.
    """
    if path.is_symlink() and not path.exists():
        raise UsageError(
            f"'{path}' is a link that leads nowhere",
            where=f"{path.absolute()}, to {path.readlink()}",
            expected="the folder of a run, or a name that is free",
            todo="make the folder that it leads to, or choose another one with --run DIR",
        )
    if not path.exists() or (path / HEADER_NAME).exists():
        return
    if not path.is_dir() or any(
        entry.name not in (LOCK_NAME, CACHE) and not TEMPORARY.fullmatch(entry.name)
        for entry in path.iterdir()
    ):
        expected, todo = (
            f"a new or empty folder, or one that holds {HEADER_NAME}",
            "choose another folder with --run DIR",
        )
        raise UsageError(
            f"'{path}' is not a run folder and not empty",
            where=str(path.absolute()),
            expected=expected,
            todo=todo,
        )


def current_time() -> str:
    """Now, ISO 8601 with the offset from UTC."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
