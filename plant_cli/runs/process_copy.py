"""Several processes in one stage (`accelerate launch`): the first writes to the run, each other one to a copy that is thrown away."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from plant_cli.api import ArtefactError
from plant_cli.artefacts.marks import CACHE
from plant_cli.artefacts.records import STAGE_FILE
from plant_cli.base.files import read_json
from plant_cli.runs.folder import HEADER_NAME, Run
from plant_cli.runs.stage import SCRATCH


@contextmanager
def copy_for_process(run: Path) -> Iterator[Path]:
    """A copy of a run folder for a process other than the first: to read what the run has by now, and to write to.

    What the run lacks the process prepares for itself in the copy, by the same rules, so its corpus is the same. Finished stages and the
    cache are links to those of the run; of an unfinished stage the copy has what the stage is resumed from.
    """
    with TemporaryDirectory(prefix="plant-process-") as folder:
        copy = Path(folder) / "run"
        copy.mkdir()
        if (run / HEADER_NAME).exists():
            _fill(copy, run.absolute())
        else:
            Run.create(copy)
        (copy / CACHE).symlink_to(run.absolute() / CACHE)  # which may not be there yet: the first process makes it
        yield copy


def _fill(copy: Path, run: Path) -> None:
    for name in (HEADER_NAME, "recipe.yaml"):
        if (run / name).exists():
            shutil.copyfile(run / name, copy / name)
    if (run / "corpus").exists():
        _copy_files(run / "corpus", copy / "corpus")
    for record in run.glob(f"[!.]*/{STAGE_FILE}"):
        stage = record.parent
        try:
            status = read_json(record, "the record of a stage").get("status")
        except ArtefactError:
            if record.exists():
                raise
            continue  # the first process has begun it anew in this moment
        if status == "done":
            (copy / stage.name).symlink_to(stage)
            continue
        (copy / stage.name).mkdir()
        shutil.copyfile(record, copy / stage.name / STAGE_FILE)
        if (stage / SCRATCH).is_dir():
            (copy / stage.name / SCRATCH).symlink_to(stage / SCRATCH)


def _copy_files(source: Path, target: Path) -> None:
    """Like `shutil.copytree`, which gathers what the system refuses into one error that names no file."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir():
            _copy_files(entry, target / entry.name)
        else:
            shutil.copyfile(entry, target / entry.name)
