"""The folder of one stage: begun, continued, finished, and put back if replacing it fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from plant_cli.api import ArtefactError
from plant_cli.artefacts.integrity import FileState, examine
from plant_cli.artefacts.records import STAGE_FILE, Facts, StageRecord, read_record
from plant_cli.base.files import TEMPORARY, remove, remove_temporaries, write_json
from plant_cli.base.hashing import hash_file, hash_json

VALIDATION = "validation.parquet"  # what a trained model predicts for validation, calibrated without each document's own part
SCRATCH = "checkpoints"  # what only a continued stage needs is not an output


class StageFolder:
    """A stage's folder in a run.

    While a finished folder is being replaced it waits in a hidden sibling, `.NAME.previous`. It is deleted once the new
    one is done, which takes over what a person laid into it; if the new one fails it comes back and the failed one is kept
    as `.NAME.failed`. Of a folder that is a link, only the link is moved and removed: what it leads to stays.
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
        """What stage.json says; None if the stage never began; `ArtefactError` if the file is damaged."""
        path = self.path / STAGE_FILE
        return read_record(path, StageRecord, f"the record of the stage {self.name}") if path.exists() else None

    def drop_record(self) -> None:
        """Forget a damaged record, so that the stage can be started afresh."""
        (self.path / STAGE_FILE).unlink(missing_ok=True)

    def holds_work(self) -> bool:
        """Whether there is anything beside the record and half written files, so that starting afresh would lose something."""
        names = (entry.name for entry in self.path.iterdir()) if self.path.is_dir() else ()
        return any(name != STAGE_FILE and not TEMPORARY.fullmatch(name) for name in names)

    def holds(self, record: StageRecord) -> bool:
        """Whether the stage still has this record; False if it was made anew, removed or damaged since."""
        try:
            return self.record() == record
        except (ArtefactError, OSError):
            return False

    def is_done(self) -> bool:
        """Whether the stage finished."""
        record = self.record()
        return record is not None and record.status == "done"

    def begin(self, record: StageRecord) -> None:
        """Start afresh in an empty folder; what was there waits aside, and what a killed process left half-written goes."""
        if os.path.lexists(self._previous) and self._is_finished():  # it was replaced, and only the old one was not removed any more
            remove(self._previous)
        if os.path.lexists(self._previous):  # a replacement was under way and did not end: the finished folder still waits
            remove(self.path)
        elif self.path.exists() and (self.holds_work() or self._is_finished()):
            self.path.rename(self._previous)
        elif os.path.lexists(self.path) and (not self.path.is_dir() or self._is_of_another_process()):
            remove(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        remove_temporaries(self.path)
        self.write(record)

    def resume(self, record: StageRecord) -> None:
        """Go on with what is in the folder, but for what a killed process left half-written."""
        remove_temporaries(self.path)
        self.write(record)

    def _is_of_another_process(self) -> bool:
        """Whether this is a link to a folder that the process beside this one has just begun to write anew, with or without a record."""
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
        """Record that the results are there and forget what they replaced, but for what a person had laid beside it.

        Returns:
            The files that were taken over, by path inside the folder.
        """
        taken = self._take_over()
        self.write(record.model_copy(update={"facts": {name: Facts.of(self.path / name) for name in record.outputs}}))
        remove(self._previous)
        remove(self.failed_path)
        return taken

    def _take_over(self) -> list[str]:
        replaced = StageFolder(self._previous)
        record = replaced.record()
        if record is None or record.status != "done":
            return []
        laid = [name for name in replaced.hash_outputs(known=record.outputs) if name not in record.outputs]
        taken = [name for name in laid if not (self.path / name).exists()]
        for name in taken:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self._previous / name, self.path / name)
        return taken

    def put_back(self) -> bool:
        """After a failure: bring back what was being replaced and keep the failed attempt aside; False if nothing was replaced."""
        if not os.path.lexists(self._previous):
            return False
        remove(self.failed_path)
        self.path.rename(self.failed_path)
        self._previous.rename(self.path)
        return True

    def hash_outputs(self, known: Mapping[str, str] | None = None) -> dict[str, str]:
        """SHA-256 of each file the stage left, by path inside the folder; checkpoints, links and hidden files do not count.

        Args:
            known: hashes taken before, trusted.
        """
        files = (p for p in sorted(self.path.rglob("*")) if p.is_file() and not p.is_symlink())
        names = {path.relative_to(self.path): path for path in files}
        shown = {name: path for name, path in names.items() if not any(part.startswith(".") for part in name.parts)}
        kept = {name.as_posix(): path for name, path in shown.items() if name.parts[0] not in (STAGE_FILE, SCRATCH)}
        return {name: (known or {}).get(name) or hash_file(path) for name, path in kept.items()}

    def output_hash(self, record: StageRecord) -> str:
        """One hash over what the finished stage left and what was laid beside it since, such as a person's corrections."""
        return hash_json(self.hash_outputs(known=record.outputs))

    def find_damage(self, record: StageRecord) -> list[FileState]:
        """Files that the finished stage left and that are missing or changed now; see `artefacts.integrity`."""
        return [file for file in examine(self.path, record) if file.state != "whole"]

    def require(self, todo: str) -> StageRecord:
        """The record of the finished stage.

        Args:
            todo: the command that makes or mends it.

        Raises:
            ArtefactError: it is not done, or a file that it left is missing or changed.
        """
        record = self.record()
        if record is None or record.status != "done":
            state, again = "has not run", todo
            if record is not None:
                state, again = f"is not done: {record.status}", f"{todo}; with --resume it goes on where it stopped"
            if os.path.lexists(self._previous):
                again += f"; the finished one that it was to replace waits in {self._previous}"
            raise ArtefactError(f"the stage '{self.name}' {state}", where=str(self.path), expected="a finished stage", todo=again)
        for file in self.find_damage(record):
            raise file.error(f"the stage '{self.name}'", f"make it again: {todo} --force")
        return record
