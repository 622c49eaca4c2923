"""Checkpoints of a language model's training: one file each, whole or not there; the last two are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from plant_awd_lstm.network import State
from plant_awd_lstm.options import Direction
from plant_cli.api import first_line
from plant_cli.kit import replacing

KEPT = 2


@dataclass(kw_only=True)
class Position:
    """Where training stands.

    Args:
        epoch: under way (0-based).
        window: windows of that epoch already read.
        step: optimiser steps in all.
        best: lowest validation perplexity so far.
        best_epoch: the epoch it was reached in; −1 for the start.
        loss_sum: sum of the epoch's losses so far.
        history: a row for each epoch.
    """

    epoch: int = 0
    window: int = 0
    step: int = 0
    best: float | None = None
    best_epoch: int = -1
    loss_sum: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True)
class Training:
    """All that training goes on from.

    Args:
        position: where it stands.
        weights: of the model.
        learned: the optimiser's state.
        states: what is carried to the next window; None at the beginning of an epoch.
        best: weights of the best epoch.
    """

    position: Position
    weights: dict[str, Tensor]
    learned: dict[str, Any]
    states: list[State] | None
    best: dict[str, Tensor]


def save_checkpoint(folder: Path, direction: Direction, training: Training) -> None:
    """Write a checkpoint and drop all but the last `KEPT`."""
    content = {
        "position": asdict(training.position),
        "weights": training.weights,
        "learned": training.learned,
        "states": None if training.states is None else [list(state) for state in training.states],
        "best": training.best,
    }
    path = folder / f"{direction}-{training.position.step:08d}-{training.position.epoch:04d}.pt"
    with replacing(path) as partial, partial.open("wb") as file:
        torch.save(content, file)
    for old in sorted(folder.glob(f"{direction}-*.pt"))[:-KEPT]:
        old.unlink()


def load_checkpoint(folder: Path, direction: Direction, warn: Callable[[str], None]) -> Training | None:
    """The last checkpoint that can be read, in main memory; None if there is none. `warn` is called with each that cannot."""
    for path in sorted(folder.glob(f"{direction}-*.pt"), reverse=True):
        try:
            found = torch.load(path, map_location="cpu", weights_only=True)
            states = found["states"]
            return Training(
                position=Position(**found["position"]),
                weights=found["weights"],
                learned=found["learned"],
                states=None if states is None else [(hidden, cell) for hidden, cell in states],
                best=found["best"],
            )
        except Exception as error:  # whatever a damaged file makes of its reader
            warn(f"the checkpoint {path} is damaged and is passed over ({type(error).__name__}: {first_line(error)})")
    return None
