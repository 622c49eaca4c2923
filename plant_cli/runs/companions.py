"""Several processes in one stage (`accelerate launch`): the first writes to the run, each other to a companion that is thrown away."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from plant_cli.api.files import read_json
from plant_cli.runs.folder import HEADER_NAME, Run
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


def fair_threads() -> int:
    """Threads for this process unless it is told otherwise: what `OMP_NUM_THREADS` says, or all cores, shared with those beside it."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given) and local_count() == 1:  # launchers set it to 1, whatever is free
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // local_count())


def go_alone() -> None:
    """Forget the processes launched with this one: it does all of the work."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        os.environ.pop(name, None)


@contextmanager
def companion_of(run: Path) -> Iterator[Path]:
    """A run folder for a process beside the first: what the run has by now, to be read, and a place of its own to write to.

    What the run lacks the companion prepares for itself, by the same rules: its corpus is the same. Finished stages and the cache
    are the run's own; of an unfinished stage it has what the stage is resumed from.
    """
    with TemporaryDirectory(prefix="plant-companion-") as folder:
        companion = Path(folder) / "run"
        companion.mkdir()
        if (run / HEADER_NAME).exists():
            _furnish(companion, run.absolute())
        else:
            Run.create(companion)
        (companion / CACHE).symlink_to(run.absolute() / CACHE)  # which may not be there yet: the first process makes it
        yield companion


def _furnish(companion: Path, run: Path) -> None:
    for name in (HEADER_NAME, "recipe.yaml"):
        if (run / name).exists():
            shutil.copyfile(run / name, companion / name)
    if (run / "corpus").exists():
        shutil.copytree(run / "corpus", companion / "corpus")
    for record in run.glob(f"[!.]*/{RECORD_NAME}"):
        stage = record.parent
        if read_json(record, "the record of a stage").get("status") == "done":
            (companion / stage.name).symlink_to(stage)
            continue
        (companion / stage.name).mkdir()
        shutil.copyfile(record, companion / stage.name / RECORD_NAME)
        if (stage / SCRATCH).is_dir():
            (companion / stage.name / SCRATCH).symlink_to(stage / SCRATCH)
