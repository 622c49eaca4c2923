"""Curves for those who watch: trackers that accelerate knows (`--tracker wandb`), and lines of blocks in the terminal (`--curves`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, filter_trackers

from plant_cli.api import ComponentError, near_names
from plant_cli.parallel.environment import only_launched

BLOCKS = "▁▂▃▄▅▆▇█"
PROJECT = "plant"


def open_tracker(name: str | None, folder: Path, config: Mapping[str, Any], *, cpu: bool) -> Accelerator:
    """The accelerator of a training run, which logs to a tracker if one is named.

    Args:
        name: as accelerate calls it (tensorboard, wandb, mlflow, …); None: nothing leaves the run folder.
        folder: where trackers that write files put them.
        config: what the tracker records of the run; numbers, strings and booleans are kept.
        cpu: whether the run is on the processor.

    Raises:
        ComponentError: accelerate does not know the tracker, or its package is not installed.
    """
    if name is None:
        return _quietly(cpu=cpu)
    if name not in LOGGER_TYPE_TO_CLASS:
        raise ComponentError(
            f"there is no tracker '{name}'",
            where="--tracker",
            expected=f"one of {', '.join(sorted(LOGGER_TYPE_TO_CLASS))}",
            todo=near_names(name, list(LOGGER_TYPE_TO_CLASS)),
        )
    if not filter_trackers([name], str(folder)):
        raise ComponentError(
            f"the tracker '{name}' needs a package that is not installed",
            where="--tracker",
            expected=f"the package of '{name}' beside plant",
            todo=f"pip install {name.replace('_', '-')}",
        )
    accelerator = _quietly(cpu=cpu, log_with=name, project_dir=folder)
    accelerator.init_trackers(PROJECT, {key: value for key, value in config.items() if isinstance(value, int | float | str)})
    return accelerator


def _quietly(**arguments: Any) -> Accelerator:
    """An accelerator; what an engine says while it is set up goes where its log belongs."""
    with redirect_stdout(sys.stderr), only_launched():
        return Accelerator(**arguments)


def draw_curve(values: Sequence[float], width: int = 40) -> str:
    """A line of blocks, lowest value to highest, at most `width` long; neighbours are averaged where there are more values."""
    finite = [value for value in values if value == value]
    if not finite:
        return ""
    size = -(-len(finite) // width)
    means = [sum(finite[i : i + size]) / len(finite[i : i + size]) for i in range(0, len(finite), size)]
    low, high = min(means), max(means)
    step = (high - low) / (len(BLOCKS) - 1) or 1.0
    return "".join(BLOCKS[round((mean - low) / step)] for mean in means)
