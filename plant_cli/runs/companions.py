"""Several processes in one stage (`accelerate launch`): the first writes to the run, each other to a companion that is thrown away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from plant_cli.api.files import read_json
from plant_cli.runs.folder import HEADER_NAME
from plant_cli.runs.stage import RECORD_NAME, SCRATCH

CACHE = "cache"


def process_rank() -> int:
    """Which of the launched processes this is; 0 for the first and for one that was not launched with others."""
    return int(os.environ.get("RANK", "0"))


def process_count() -> int:
    """How many processes were launched together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank() -> int:
    """Which of the launched processes on this machine this is."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def local_count() -> int:
    """How many of the launched processes are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def go_alone() -> None:
    """Forget the processes launched with this one: it does all of the work."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)


@contextmanager
def companion_of(run: Path, stage: str) -> Iterator[Path]:
    """A run folder for a process beside the first: with the run's corpus, if it has one by now, its recipe, and links to what it reads.

    What the run lacks the companion prepares for itself, by the same rules: its corpus is the same. Finished stages and the cache
    are the run's own; of the stage to be run only what it is resumed from.

    Args:
        run: the run folder.
        stage: the folder of the stage that the processes share, tag included.
    """
    with TemporaryDirectory(prefix="plant-companion-") as folder:
        companion = Path(folder) / "run"
        companion.mkdir()
        header = run / HEADER_NAME
        if header.exists() and read_json(header, "the header of the run").get("data_hash"):  # bound once the corpus is complete
            shutil.copytree(run / "corpus", companion / "corpus")
            shutil.copyfile(header, companion / HEADER_NAME)
        if (run / "recipe.yaml").exists() and (companion / HEADER_NAME).exists():
            shutil.copyfile(run / "recipe.yaml", companion / "recipe.yaml")
        if (companion / HEADER_NAME).exists():
            (run / CACHE).mkdir(exist_ok=True)
            (companion / CACHE).symlink_to((run / CACHE).absolute())
        for record in run.glob(f"[!.]*/{RECORD_NAME}"):
            if record.parent.name != stage:
                (companion / record.parent.name).symlink_to(record.parent.absolute())
            elif (record.parent / SCRATCH).is_dir():
                (companion / stage).mkdir()
                (companion / stage / SCRATCH).symlink_to((record.parent / SCRATCH).absolute())
                shutil.copyfile(record, companion / stage / RECORD_NAME)
        yield companion
