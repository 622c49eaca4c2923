"""Which parameters learn when, and how fast: optimiser groups by role and layer, gradual unfreezing, the learning-rate curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from plant_cli.model.network import Network
from plant_cli.training.optimiser import RowAdamW
from plant_cli.training.schedules import LayerRates, Schedule, layer_share


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Peak learning rate of each role; `head` is also that of the value path and of roles with another name.

    Args:
        layers: how that of the backbone is spread over its layers.
    """

    head: float
    boost: float
    attention: float
    backbone: float
    layers: LayerRates = "equal"


@dataclass(frozen=True, kw_only=True)
class Group:
    """Parameters that are unfrozen together."""

    role: str
    rate: float
    parameters: tuple[nn.Parameter, ...]
    depth: int = 0


def make_groups(network: Network, rates: Rates) -> list[Group]:
    """Optimiser groups: the decoder's roles, then the backbone's layer groups from last (depth 0) to first."""
    roles = network.decoder.parameter_roles()
    rate_of = {"attention": rates.attention, "boost": rates.boost}
    groups = [Group(role=role, rate=rate_of.get(role, rates.head), parameters=tuple(found)) for role, found in roles.items() if found]
    for depth, found in enumerate(reversed(network.backbone.layer_groups())):
        rate = rates.backbone * layer_share(depth, rates.layers)
        groups.append(Group(role="backbone", rate=rate, parameters=tuple(found), depth=depth))
    return groups


def make_optimizer(groups: Sequence[Group], weight_decay: float, tables: Sequence[nn.Parameter] = ()) -> RowAdamW:
    """AdamW with one entry a group, in the same order; `tables` are trained row by row."""
    entries = [{"params": list(group.parameters), "lr": group.rate} for group in groups]
    return RowAdamW(entries, tables, weight_decay=weight_decay)


def gradual(group: Group, phase: int, *, attention_factor: float) -> float:
    """Factor on a group's rate in a phase, 0 while it is frozen.

    First what reads the attention (value path and head); from the second phase the attention itself, at a smaller rate; from
    the third the backbone, one group of layers more in every phase, the last layers first. What was planted is thus never
    exposed to the gradients of a head that is still random.
    """
    if group.role == "backbone":
        return 1.0 if phase >= 2 + group.depth else 0.0
    if group.role == "attention":
        return attention_factor if phase >= 1 else 0.0
    return 1.0


def factors(groups: Sequence[Group], epoch: int, schedule: Schedule) -> list[float]:
    """The factor of every group in an epoch."""
    if not schedule.gradual:
        return [1.0] * len(groups)
    return [gradual(group, epoch // schedule.epochs, attention_factor=schedule.attention_factor) for group in groups]


def cosine(step: int, steps: int, warmup_share: float) -> float:
    """Share of the peak rate at a step: a linear rise, then half a cosine down to zero."""
    warmup = max(1, round(steps * warmup_share))
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup))))


def set_rates(optimizer: torch.optim.Optimizer, groups: Sequence[Group], share: float, active: Sequence[float]) -> None:
    """Set every group's rate for the next step."""
    for entry, group, factor in zip(optimizer.param_groups, groups, active, strict=True):
        entry["lr"] = group.rate * share * factor


def unfreeze(groups: Sequence[Group], active: Sequence[float]) -> None:
    """Gradients only for groups that learn in this epoch: frozen ones cost nothing in the backward pass."""
    for group, factor in zip(groups, active, strict=True):
        for parameter in group.parameters:
            parameter.requires_grad_(factor > 0)
