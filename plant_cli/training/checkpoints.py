"""Checkpoints that count only when whole: weights, optimiser state and position, then a `DONE` mark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from plant_cli.base.files import read_json, replacing, write_json
from plant_cli.parallel.group import gather_full

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
    """A copy of the named parameters, spread as they are."""
    return {name: p.detach().clone().contiguous() for name, p in network.named_parameters() if name in names}


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
    position: Position,
    best: Mapping[str, torch.Tensor],
) -> None:
    """Write a checkpoint and drop all but the last two.

    Args:
        folder: of the run's checkpoints; without one only help the other processes to gather what is spread.
        weights: of the parameters that learn, by name.
        learned: the optimiser's state, whole.
        position: where training stands.
        best: weights of the best epoch.
    """
    if folder is None:
        for tensors in (weights, best):
            _gather(tensors, keep=False)
        return
    place = folder / f"step-{position.step:08d}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name, tensors in (("weights", weights), ("best", best)):
        if tensors:
            with replacing(place / f"{name}.safetensors") as partial:
                save_file(_gather(tensors, keep=True), str(partial))
    with replacing(place / "optimizer.pt") as partial, partial.open("wb") as file:  # given a path, torch hides that the disk is full
        torch.save(learned, file)
    write_json(place / "position.json", asdict(position))
    (place / DONE).touch()
    for old in whole_checkpoints(folder)[:-2]:
        shutil.rmtree(old)


def _gather(tensors: Mapping[str, torch.Tensor], *, keep: bool) -> dict[str, torch.Tensor]:
    """Whole tensors outside the device, one after the other: a device need not hold them all."""
    found: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        full = gather_full(tensor.detach())
        if keep:
            found[name] = full.cpu().contiguous()
    return found


def whole_checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first; half-written ones are passed over."""
    return sorted(mark.parent for mark in folder.glob(f"step-*/{DONE}"))


def load_checkpoint(
    folder: Path, network: nn.Module, optimizer: torch.optim.Optimizer, warn: Callable[[str], None]
) -> tuple[Position, dict[str, torch.Tensor]] | None:
    """Continue from the last whole checkpoint; None if there is none.

    One that cannot be read (a damaged disk) is passed over for the one before it; `warn` is told.
    """
    for place in reversed(whole_checkpoints(folder)):
        try:
            weights = load_file(str(place / "weights.safetensors"))
            state = torch.load(place / "optimizer.pt", weights_only=True, map_location="cpu")
            position = Position(**read_json(place / "position.json", "the position of a checkpoint"))
            best = load_file(str(place / "best.safetensors")) if (place / "best.safetensors").exists() else {}
        except Exception as error:  # whatever a damaged file makes of its reader
            warn(f"the checkpoint {place} is damaged and is passed over ({type(error).__name__}: {error})")
            continue
        load_state(network, weights)
        optimizer.load_state_dict(state)
        return position, best
    return None
