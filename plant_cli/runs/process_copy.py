"""Several processes in one stage (`accelerate launch`): the first writes to the run, each other to a companion that is thrown away."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from plant_cli.artefacts.marks import CACHE
from plant_cli.artefacts.records import STAGE_FILE
from plant_cli.base.files import read_json
from plant_cli.runs.folder import HEADER_NAME, Run
from plant_cli.runs.stage import SCRATCH


@contextmanager
def copy_for_process(run: Path) -> Iterator[Path]:
    """A run folder for a process beside the first: what the run has by now, to be read, and a place of its own to write to.

    What the run lacks the companion prepares for itself, by the same rules: its corpus is the same. Finished stages and the cache
    are the run's own; of an unfinished stage it has what the stage is resumed from.
    """
    with TemporaryDirectory(prefix="plant-companion-") as folder:
        companion = Path(folder) / "run"
        companion.mkdir()
        if (run / HEADER_NAME).exists():
            _fill(companion, run.absolute())
        else:
            Run.create(companion)
        (companion / CACHE).symlink_to(run.absolute() / CACHE)  # which may not be there yet: the first process makes it
        yield companion


def _fill(companion: Path, run: Path) -> None:
    for name in (HEADER_NAME, "recipe.yaml"):
        if (run / name).exists():
            shutil.copyfile(run / name, companion / name)
    if (run / "corpus").exists():
        shutil.copytree(run / "corpus", companion / "corpus")
    for record in run.glob(f"[!.]*/{STAGE_FILE}"):
        stage = record.parent
        if read_json(record, "the record of a stage").get("status") == "done":
            (companion / stage.name).symlink_to(stage)
            continue
        (companion / stage.name).mkdir()
        shutil.copyfile(record, companion / stage.name / STAGE_FILE)
        if (stage / SCRATCH).is_dir():
            (companion / stage.name / SCRATCH).symlink_to(stage / SCRATCH)
