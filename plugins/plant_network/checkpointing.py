"""Checkpoints of a training, and what is sent to trackers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
from accelerate.utils import LoggerType
from pydantic import TypeAdapter
from torch import nn

from plant_cli.api import ArtefactError, ComponentError, PlantError, first_line, near_names
from plant_cli.api.errors import PICKLE_REFUSED
from plant_cli.data.files import read_json, remove, replacing, write_json
from plant_cli.data.tensors import read_tensors, write_tensors
from plant_cli.runs.damage import CHECKPOINT_MARK, examine_marked, require_marked, write_mark
from plant_cli.runs.processes import only_launched
from plant_network.group import gather_full

EARLIER = "go on from an earlier checkpoint"
CHECKPOINTS_KEPT = 2  # the last ones


@dataclass(kw_only=True)
class TrainingState:
    """Where training stands."""

    epoch: int = 0  # epoch under way (0-based)
    batch: int = 0  # optimiser steps of that epoch already done
    step: int = 0  # optimiser steps done in all
    best: float | None = None  # best value of the monitored metric so far
    best_epoch: int = -1  # epoch it was reached in
    gain: float | None = (
        # value at the last gain that was large enough to count
        # (`plant_network.loop.Plan.least_gain`)
        None
    )
    gain_epoch: int = -1  # epoch of that gain
    loss_sum: float = 0.0  # sum of the epoch's losses so far, and of their weights
    weight_sum: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    slowed: float = 1.0  # what rates are multiplied by, because epochs were undone
    memory: dict[str, bool] = field(
        default_factory=dict
    )  # what validation must know of earlier epochs


POSITION = TypeAdapter(TrainingState)


def trained_state(network: nn.Module, names: frozenset[str]) -> dict[str, torch.Tensor]:
    """A copy of the named parameters, spread as they are."""
    return {
        name: p.detach().clone().contiguous()
        for name, p in network.named_parameters()
        if name in names
    }


def load_state(network: nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Put such a copy back; the parameters must be whole, the copy need not."""
    known = dict(network.named_parameters())
    with torch.no_grad():
        for name, tensor in state.items():
            known[name].copy_(gather_full(tensor))


def save_checkpoint(
    folder: Path | None,
    weights: Mapping[str, torch.Tensor],
    learned: Mapping[str, Any],
    position: TrainingState,
    best: Mapping[str, torch.Tensor],
) -> None:
    """Write a checkpoint and drop all but the last `CHECKPOINTS_KEPT`."""
    if folder is None:
        for tensors in (weights, best):
            _gather(tensors, keep=False)
        return
    checkpoint = folder / f"step-{position.step:08d}"
    remove(checkpoint)
    checkpoint.mkdir(parents=True)
    for name, tensors in (("weights", weights), ("best", best)):
        if tensors:
            write_tensors(checkpoint / f"{name}.safetensors", _gather(tensors, keep=True))
    with (
        replacing(checkpoint / "optimizer.pt") as partial,
        partial.open("wb") as file,
    ):  # given a path, torch hides that the disk is full
        torch.save(learned, file)
    write_json(checkpoint / "position.json", asdict(position))
    write_mark(checkpoint / CHECKPOINT_MARK)
    for old in whole_checkpoints(folder)[:-CHECKPOINTS_KEPT]:
        remove(old)


def _gather(tensors: Mapping[str, torch.Tensor], *, keep: bool) -> dict[str, torch.Tensor]:
    """Whole tensors outside the device, one after the other: a device need not hold them all."""
    found: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        full = gather_full(tensor.detach())
        if keep:
            found[name] = full.cpu().contiguous()
    return found


def whole_checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints with all their files, oldest first; half-written ones and those that
    lost a file are passed over.
    """
    return [checkpoint for checkpoint in _marked_checkpoints(folder) if _has_all_files(checkpoint)]


def _marked_checkpoints(folder: Path) -> list[Path]:
    return sorted(mark.parent for mark in folder.glob(f"step-*/{CHECKPOINT_MARK}"))


def _has_all_files(checkpoint: Path) -> bool:
    try:
        return all(file.state != "missing" for file in examine_marked(checkpoint / CHECKPOINT_MARK))
    except ArtefactError:  # a damaged mark
        return False


def load_checkpoint(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, warn: Callable[[str], None]
) -> tuple[TrainingState, dict[str, torch.Tensor]] | None:
    """Continue from the last whole checkpoint; None if there is none.

    One with a file that is missing, or not byte for byte what was written, is passed over for the
    one before it; `warn` is called with why.
    """
    for checkpoint in reversed(_marked_checkpoints(folder)):
        try:
            require_marked(checkpoint / CHECKPOINT_MARK, "the checkpoint", EARLIER)
            weights, _ = read_tensors(
                checkpoint / "weights.safetensors", "the weights of a checkpoint", EARLIER
            )
            state = torch.load(checkpoint / "optimizer.pt", weights_only=True, map_location="cpu")
            position = POSITION.validate_python(
                read_json(checkpoint / "position.json", "the position of a checkpoint")
            )
            best = checkpoint / "best.safetensors"
            kept = (
                read_tensors(best, "the best weights of a checkpoint", EARLIER)[0]
                if best.exists()
                else {}
            )
            known = dict(network.named_parameters())
            odd = next(
                (
                    name
                    for name, tensor in weights.items()
                    if name not in known or known[name].shape != tensor.shape
                ),
                None,
            )
            if odd is not None:
                raise ValueError(f"'{odd}' is no parameter of this network, or of another shape")
            optimizer.load_state_dict(state)
        except Exception as error:  # whatever a damaged file makes of its reader
            why = (
                error.what
                if isinstance(error, PlantError)
                else f"{type(error).__name__}: "
                f"{first_line(error) if type(error).__name__ == PICKLE_REFUSED else error}"
            )
            warn(f"the checkpoint {checkpoint} is damaged and is passed over ({why})")
            continue
        load_state(network, weights)
        return position, kept
    return None


BLOCKS, CURVE_WIDTH = "▁▂▃▄▅▆▇█", 40
PROJECT = "plant"


def open_tracker(
    name: str | None, folder: Path, config: Mapping[str, Any], *, cpu: bool
) -> Accelerator:
    """The accelerator of a training run, which logs to a tracker if one is named."""
    if name is None:
        return _quietly(cpu=cpu)
    if name not in LOGGER_TYPE_TO_CLASS:
        raise ComponentError(
            f"there is no tracker '{name}'",
            where="--tracker",
            expected=f"one of {', '.join(sorted(LOGGER_TYPE_TO_CLASS))}",
            todo=near_names(name, list(LOGGER_TYPE_TO_CLASS)),
        )
    if name in LoggerType.list() and name not in map(
        str, get_available_trackers()
    ):  # others were registered, and are there
        raise ComponentError(
            f"the tracker '{name}' needs a package that is not installed",
            where="--tracker",
            expected=f"the package of '{name}' beside plant",
            todo=f"pip install {name.replace('_', '-')}",
        )
    accelerator = _quietly(cpu=cpu, log_with=name, project_dir=folder)
    accelerator.init_trackers(
        PROJECT,
        {key: value for key, value in config.items() if isinstance(value, int | float | str)},
    )
    return accelerator


def _quietly(**arguments: Any) -> Accelerator:
    """An accelerator; what an engine says while it is set up goes where its log belongs."""
    with redirect_stdout(sys.stderr), only_launched():
        return Accelerator(**arguments)


def draw_curve(values: Sequence[float]) -> str:
    """A line of blocks, lowest value to highest, at most `CURVE_WIDTH` long; neighbours are
    averaged where there are more values.
    """
    finite = [value for value in values if value == value]
    if not finite:
        return ""
    size = -(-len(finite) // CURVE_WIDTH)
    means = [
        sum(finite[i : i + size]) / len(finite[i : i + size]) for i in range(0, len(finite), size)
    ]
    low, high = min(means), max(means)
    step = (high - low) / (len(BLOCKS) - 1) or 1.0
    return "".join(BLOCKS[round((mean - low) / step)] for mean in means)
