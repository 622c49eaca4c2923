"""A copy of a run that costs little: finished stages are links."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from plant_cli.api import ArtefactError
from plant_cli.data.files import read_json
from plant_cli.data.records import STAGE_FILE
from plant_cli.runs.folder import CACHE, HEADER_NAME, SCRATCH, Run


@contextmanager
def copy_run(run: Path) -> Iterator[Path]:
    """A copy of a run folder in which a second process, or a second computation, may write; it is deleted after the block.

    Finished stages and the cache are links to those of the run. An unfinished stage has the files that it is resumed from. If the run
    has no corpus yet, it is prepared in the copy by the same rules, so it is the same.
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
            continue  # the first process is just beginning it anew
        if status == "done":
            (copy / stage.name).symlink_to(stage)
            continue
        (copy / stage.name).mkdir()
        shutil.copyfile(record, copy / stage.name / STAGE_FILE)
        if (stage / SCRATCH).is_dir():
            (copy / stage.name / SCRATCH).symlink_to(stage / SCRATCH)


def _copy_files(source: Path, target: Path) -> None:
    """Like `shutil.copytree`, whose errors name no file."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_dir():
            _copy_files(entry, target / entry.name)
        else:
            shutil.copyfile(entry, target / entry.name)
