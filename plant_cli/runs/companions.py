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


def process_rank() -> int:
    """Which of the launched processes this is; 0 for the first and for one that was not launched with others."""
    return int(os.environ.get("RANK", "0"))


def process_count() -> int:
    """How many processes were launched together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def companion_of(run: Path) -> Iterator[Path]:
    """A run folder for a process beside the first: with the run's corpus, if it has one by now, its recipe, and no stage.

    What the run lacks the companion prepares for itself, by the same rules: its corpus is the same.
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
        yield companion
