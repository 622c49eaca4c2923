"""The folder of one run: its header, its stages, its lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import plant_cli
from plant_cli.api import ArtefactError, Interrupted, PlantError, UsageError
from plant_cli.artefacts.guard import FORMAT
from plant_cli.artefacts.records import STAGE_FILE, RunHeader, read_record
from plant_cli.base.files import TEMPORARY, remove, write_json
from plant_cli.base.names import NAME_RULE, names_folder
from plant_cli.runs.lock import LOCK_NAME, hold_lock
from plant_cli.runs.stage import StageFolder

HEADER_NAME = "run.json"


class Run:
    """One experiment's folder."""

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.path = path
        self.header = header

    @classmethod
    @contextmanager
    def hold(cls, path: Path, purpose: str) -> Iterator[Run]:
        """Be the only writer of a run inside the block; it is opened, or made, once nobody else writes.

        A run that was made for the block is removed again where an error a person can put right ends the block with nothing to keep.

        Args:
            path: the run folder.
            purpose: what is done, for the message that others get: "finetune".

        Raises:
            UsageError: the folder holds something else.
            ArtefactError: another process writes to the run (the message says which), or its header is damaged or of a newer format.
        """
        _refuse_other(path)
        was_there = path.exists()
        path.mkdir(parents=True, exist_ok=True)
        with hold_lock(path, purpose):
            is_new = not (path / HEADER_NAME).exists()
            run = cls.create(path)
            try:
                yield run
            except Interrupted:
                raise
            except PlantError:
                if is_new:
                    run._remove_empty(folder_too=not was_there)
                raise

    def _remove_empty(self, *, folder_too: bool) -> None:
        """Remove a run that holds nothing but its header and records of stages that failed."""
        with suppress(OSError):  # the run may be gone itself, and its own error is the one to tell
            stages = [entry for entry in self.path.iterdir() if entry.name not in (HEADER_NAME, LOCK_NAME)]
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
        """The run in this folder, made if it is new or empty; where others may write, `hold` it instead.

        Raises:
            UsageError: the folder holds something else.
            ArtefactError: its header is damaged or of a newer format.
        """
        _refuse_other(path)
        if (path / HEADER_NAME).exists():
            return cls.open(path)
        header = RunHeader(format=FORMAT, created=current_time(), plant_version=plant_cli.__version__)
        write_json(path / HEADER_NAME, header.model_dump(mode="json"))
        return cls(path, header)

    @classmethod
    def open(cls, path: Path) -> Run:
        """The run in this folder; `ArtefactError` if there is none, or it is of a newer format."""
        if not (path / HEADER_NAME).exists():
            raise ArtefactError(
                f"there is no run in '{path}'",
                where=str(path.absolute()),
                expected=f"a folder that holds {HEADER_NAME}",
                todo="start one with `plant mig DATA`, or name another folder with --run DIR",
            )
        return cls(path, read_record(path / HEADER_NAME, RunHeader, "the header of the run"))

    @property
    def corpus_path(self) -> Path:
        """Where the prepared corpus lies."""
        return self.path / "corpus"

    @property
    def recipe_path(self) -> Path:
        """The resolved recipe that repeats the run."""
        return self.path / "recipe.yaml"

    def bind(self, *, data_hash: str, label_hash: str, sources: dict[str, str]) -> None:
        """Record the corpus that everything in this run is made from."""
        bound = {"data_hash": data_hash, "label_hash": label_hash, "sources": sources}
        self.header = self.header.model_copy(update=bound)
        write_json(self.path / HEADER_NAME, self.header.model_dump(mode="json"))

    def stage(self, name: str, tag: str | None = None) -> StageFolder:
        """The folder of a stage, which need not exist; `UsageError` for a tag that cannot be part of a folder's name."""
        if tag is not None and not names_folder(tag):
            raise UsageError(
                f"the tag '{tag}' cannot name a folder",
                where=f"--tag {tag}",
                expected=NAME_RULE,
                todo="choose another tag, for example --tag baseline",
            )
        return self.folder(name if tag is None else f"{name}-{tag}")

    def folder(self, name: str) -> StageFolder:
        """The stage folder of this name, tag included."""
        return StageFolder(self.path / name)

    def stages(self) -> list[StageFolder]:
        """All stages that left a record, by the time they started."""
        names = sorted(path.parent.name for path in self.path.glob(f"[!.]*/{STAGE_FILE}"))
        found = [(record.started, folder) for folder in map(self.folder, names) if (record := folder.record()) is not None]
        return [folder for _, folder in sorted(found, key=lambda pair: pair[0])]


def _refuse_other(path: Path) -> None:
    """Refuse a file, or a folder that holds what is no run; what a process leaves that is just making a run, or died at it, is nothing."""
    if path.is_symlink() and not path.exists():
        raise UsageError(
            f"'{path}' is a link that leads nowhere",
            where=f"{path.absolute()}, to {path.readlink()}",
            expected="the folder of a run, or a name that is free",
            todo="make the folder that it leads to, or choose another one with --run DIR",
        )
    if not path.exists() or (path / HEADER_NAME).exists():
        return
    if not path.is_dir() or any(entry.name != LOCK_NAME and not TEMPORARY.fullmatch(entry.name) for entry in path.iterdir()):
        raise UsageError(
            f"'{path}' is not a run folder and not empty",
            where=str(path.absolute()),
            expected=f"a new or empty folder, or one that holds {HEADER_NAME}",
            todo="choose another folder with --run DIR",
        )


def current_time() -> str:
    """Now, ISO 8601 with the offset from UTC."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")
