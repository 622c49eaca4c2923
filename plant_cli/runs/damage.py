"""Whether files are as they were written: folders with a mark, such as checkpoints, and all
recorded files of a run.

A mark is written last, with the hash of every other file of its folder: a folder without one was
never finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pydantic import Field

from plant_cli.api.errors import ArtefactError
from plant_cli.data.corpus_files import SPLITS_FILE, CorpusRecord
from plant_cli.data.files import hash_file, write_json
from plant_cli.data.records import (
    STAGE_FILE,
    Facts,
    FileState,
    FileStateName,
    InnerPath,
    Record,
    examine_file,
    examine_files,
    read_record,
)
from plant_cli.runs.changes import stage_key
from plant_cli.runs.folder import CACHE, CHECKPOINTS_FOLDER, Run, StageFolder

CHECKPOINT_MARK, CACHE_MARK = "DONE", "done.json"


class Mark(Record):
    """The content of a mark: SHA-256 of each file of the folder by path inside it, and its size
    and time when its hash was taken.
    """

    outputs: dict[InnerPath, str] = Field(min_length=1)
    facts: dict[InnerPath, Facts]


def write_mark(path: Path) -> None:
    """Mark the folder of this path as complete, with the hashes of the files that are in it now."""
    files = {
        file.name: file for file in sorted(path.parent.iterdir()) if file.is_file() and file != path
    }
    mark = Mark(
        outputs={name: hash_file(file) for name, file in files.items()},
        facts={name: Facts.of(file) for name, file in files.items()},
    )
    write_json(path, mark.model_dump(mode="json"))


def examine_marked(path: Path, *, fully: bool = False) -> list[FileState]:
    """The states of the files that a mark names; with `fully` every file is hashed, even if its
    size and time are the same.

    `ArtefactError` if the mark itself is missing or damaged.
    """
    mark = read_record(path, Mark, "the mark of a finished folder")
    return [
        examine_file(path.parent / name, recorded, None if fully else mark.facts.get(name))
        for name, recorded in mark.outputs.items()
    ]


def require_marked(path: Path, owner: str, todo: str) -> None:
    """Refuse a folder whose mark (`path`) is missing or damaged, or in which a file that the mark
    names is missing or has other bytes.

    `owner` is the folder, for the message: "the checkpoint"; `todo` is what to do where a file
    cannot be restored.
    """
    for file in examine_marked(path, fully=True):
        if file.state != "whole":
            raise file.error(owner, todo)


def is_whole(path: Path, owner: str, warn: Callable[[str], None]) -> bool:
    """Whether a folder whose content can be made again is marked and complete; every file is
    hashed, and a warning names damage.

    `owner` is the folder, for the warning: "the cached hidden states of train".
    """
    if not path.exists():
        return False
    try:
        require_marked(path, owner, "")
    except ArtefactError as error:
        warn(f"{error.what}; {owner} are made again")
        return False
    return True


def examine_run(run: Run) -> Iterator[tuple[str, list[FileState]]]:
    """The states of all recorded files, hashed in full: folder after folder, by its path inside the
    run.

    A record that cannot be read, or that was changed, counts as a changed file. Only the
    checkpoints of an unfinished stage are examined.
    """
    if run.header.data_hash is not None:
        corpus = run.corpus_path

        def look() -> list[FileState]:
            recorded = CorpusRecord.read(corpus).outputs.items()
            return [examine_file(corpus / name, known) for name, known in recorded]

        yield corpus.name, _look(corpus / SPLITS_FILE, look)
    for record in sorted(run.path.glob(f"[!.]*/{STAGE_FILE}")):
        folder = run.folder(record.parent.name)
        yield folder.name, _look(record, partial(_examine_stage, folder, run))
    for pattern in (f"[!.]*/{CHECKPOINTS_FOLDER}/*/{CHECKPOINT_MARK}", f"{CACHE}/*/{CACHE_MARK}"):
        for mark in sorted(run.path.glob(pattern)):
            name = mark.parent.relative_to(run.path).as_posix()
            yield name, _look(mark, partial(examine_marked, mark, fully=True))


def _look(record: Path, look: Callable[[], list[FileState]]) -> list[FileState]:
    try:
        return look()
    except ArtefactError:
        return [
            FileState(
                path=record,
                name=record.name,
                state="changed" if record.exists() else "missing",
                recorded="",
            )
        ]


def _examine_stage(folder: StageFolder, run: Run) -> list[FileState]:
    record = folder.finished()
    if record is None:
        return []
    itself = folder.path / STAGE_FILE
    state: FileStateName = (
        "whole" if stage_key(record, run.header.data_hash) == record.key else "changed"
    )
    return [
        FileState(path=itself, name=STAGE_FILE, state=state, recorded=record.key),
        *examine_files(folder.path, record, fully=True),
    ]
