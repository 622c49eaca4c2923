"""Checkpoints that count only when whole: weights, optimiser state and position, then a `DONE` mark."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from plant_cli.api.files import read_json, replacing, write_json
from plant_cli.model.processes import whole

DONE = "DONE"


@dataclass(kw_only=True)
class Position:
    """Where training stands.

    Args:
        epoch: epoch under way (0-based).
        batch: optimiser steps of that epoch already done.
        step: optimiser steps done in all.
        best: best value of the monitored metric so far.
        best_epoch: epoch it was reached in.
        loss_sum: sum of the epoch's losses so far, and of their weights.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    best: float | None = None
    best_epoch: int = -1
    loss_sum: float = 0.0
    weight_sum: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)


def trained_state(network: nn.Module, names: frozenset[str]) -> dict[str, torch.Tensor]:
    """A copy of the named parameters."""
    return {name: whole(p.detach()).clone().contiguous() for name, p in network.named_parameters() if name in names}


def load_state(network: nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Put such a copy back; the parameters must be whole."""
    known = dict(network.named_parameters())
    with torch.no_grad():
        for name, tensor in state.items():
            known[name].copy_(tensor)


def save_checkpoint(
    folder: Path | None,
    network: nn.Module,
    names: frozenset[str],
    optimizer: torch.optim.Optimizer,
    position: Position,
    best: dict[str, torch.Tensor],
) -> None:
    """Write a checkpoint and drop all but the last two; without a folder only help the other processes to gather what is spread."""
    weights, learned = trained_state(network, names), _whole_state(optimizer)
    if folder is None:
        return
    place = folder / f"step-{position.step:08d}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    save_file(weights, str(place / "weights.safetensors"))
    if best:
        save_file(best, str(place / "best.safetensors"))
    with replacing(place / "optimizer.pt") as partial:
        torch.save(learned, partial)
    write_json(place / "position.json", asdict(position))
    (place / DONE).touch()
    for old in whole_checkpoints(folder)[:-2]:
        shutil.rmtree(old)


def _whole_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    state = optimizer.state_dict()
    gathered = {number: {key: whole(value) for key, value in kept.items()} for number, kept in state["state"].items()}
    return {**state, "state": gathered}


def whole_checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first; half-written ones are passed over."""
    return sorted(mark.parent for mark in folder.glob(f"step-*/{DONE}"))


def load_checkpoint(folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Position, dict[str, torch.Tensor]] | None:
    """Continue from the last whole checkpoint; None if there is none.

    One that cannot be read (a damaged disk) is passed over for the one before it.
    """
    for place in reversed(whole_checkpoints(folder)):
        try:
            weights = load_file(str(place / "weights.safetensors"))
            state = torch.load(place / "optimizer.pt", weights_only=True, map_location="cpu")
            position = Position(**read_json(place / "position.json", "the position of a checkpoint"))
            best = load_file(str(place / "best.safetensors")) if (place / "best.safetensors").exists() else {}
        except Exception:  # whatever a damaged file makes of its reader
            continue
        load_state(network, weights)
        optimizer.load_state_dict(state)
        return position, best
    return None
