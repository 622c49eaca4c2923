"""Every file of a run that a record names, and whether it is still what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from plant_cli.api import ArtefactError
from plant_cli.artefacts.corpus import SPLITS_FILE, CorpusRecord
from plant_cli.artefacts.integrity import FileState, State, examine, examine_file
from plant_cli.artefacts.marks import CACHE, CACHE_MARK, CHECKPOINT_MARK, examine_marked
from plant_cli.artefacts.records import STAGE_FILE
from plant_cli.runs.changes import stage_key
from plant_cli.runs.folder import Run
from plant_cli.runs.stage import SCRATCH, StageFolder


def examine_run(run: Run) -> Iterator[tuple[str, list[FileState]]]:
    """The states of all recorded files, hashed in full: folder after folder, by its path inside the run.

    A record that cannot be read, or that was changed, is itself a file that is not whole. Of a stage that is not done only the
    checkpoints are looked at.
    """
    if run.header.data_hash is not None:
        yield run.corpus_path.name, _examine_with(run.corpus_path / SPLITS_FILE, partial(_examine_corpus, run.corpus_path))
    for record in sorted(run.path.glob(f"[!.]*/{STAGE_FILE}")):
        folder = run.folder(record.parent.name)
        yield folder.name, _examine_with(record, partial(_examine_stage, folder, run))
    for pattern in (f"[!.]*/{SCRATCH}/*/{CHECKPOINT_MARK}", f"{CACHE}/*/{CACHE_MARK}"):
        for mark in sorted(run.path.glob(pattern)):
            name = mark.parent.relative_to(run.path).as_posix()
            yield name, _examine_with(mark, partial(examine_marked, mark, fully=True))


def _examine_with(record: Path, look: Callable[[], list[FileState]]) -> list[FileState]:
    try:
        return look()
    except ArtefactError:
        return [FileState(path=record, name=record.name, state="changed" if record.exists() else "missing", recorded="")]


def _examine_corpus(folder: Path) -> list[FileState]:
    return [examine_file(folder / name, recorded) for name, recorded in CorpusRecord.read(folder).outputs.items()]


def _examine_stage(folder: StageFolder, run: Run) -> list[FileState]:
    record = folder.record()
    if record is None or record.status != "done":
        return []
    itself = folder.path / STAGE_FILE
    state: State = "whole" if stage_key(record, run.header.data_hash) == record.key else "changed"
    return [FileState(path=itself, name=STAGE_FILE, state=state, recorded=record.key), *examine(folder.path, record, fully=True)]
