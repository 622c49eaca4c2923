"""What learns, how fast and how: groups of parameters, their schedules, and AdamW on the rows
of label tables that a step used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from plant_cli.api import ComponentError, SparseDecoder, UsageError
from plant_cli.training.training_options import SPARSE_FROM, LayerRates, Schedule, layer_share
from plant_network.assembly import Network
from plant_network.hardware import sharing_mode

NUMBERS_PER_BLOCK = 1 << 21
"""Numbers of a table that are updated at a time: what an update needs beside the table stays in
cache.
"""


def decide_sparse(network: Network, wanted: bool | None, *, selects: bool) -> bool:
    """Whether label tables are trained row by row, as the user wants it, or by default (None) where
    labels are many; tells the decoder.

    `selects`: whether a step looks at some labels only.
    """
    shared = sharing_mode() != "whole"  # each process has a share of the tables or of their state
    decoder = network.decoder
    can = isinstance(decoder, SparseDecoder)
    if wanted and shared:
        raise UsageError(
            "updates cannot be sparse where each process has a share of the label tables or of "
            "their state",
            where="option sparse_updates, under distributed_type FSDP or DEEPSPEED",
            expected="whole tables in every process (distributed_type: MULTI_GPU), or updates of "
            "whole tables",
            todo="--no-sparse-updates, or another launch file",
        )
    if wanted and not can:
        raise ComponentError(
            f"the decoder '{network.section.decoder.name}' has no sparse gradients",
            where="option sparse_updates",
            expected="a decoder with label_tables (plant_cli.api.SparseDecoder)",
            todo="--no-sparse-updates, or another --decoder",
        )
    if wanted and not selects:
        raise UsageError(
            "updates cannot be sparse where every step looks at all labels",
            where="option sparse_updates",
            expected="hard negatives in the loss of stage 2, a sample of labels in stage 1",
            todo="--no-sparse-updates, or --set finetune.loss.hard_negatives=1000, or "
            "--labels-per-document 64",
        )
    sparse = (
        (network.labels >= SPARSE_FROM and can and selects and not shared)
        if wanted is None
        else wanted
    )
    if isinstance(decoder, SparseDecoder):
        decoder.sparse = sparse
    return sparse


def sparse_tables(network: Network) -> Sequence[nn.Parameter]:
    """The label tables that are trained row by row."""
    return (
        network.decoder.label_tables()
        if isinstance(network.decoder, SparseDecoder) and network.decoder.sparse
        else ()
    )


def touched_rows(table: nn.Parameter) -> tuple[Tensor, Tensor]:
    """The rows [n] that a table's gradient holds, each once, and their gradients [n, …]."""
    gradient = table.grad
    assert gradient is not None
    if not gradient.is_sparse:
        return torch.arange(len(table), device=table.device), gradient
    table.grad = gradient = gradient.coalesce()
    return gradient.indices()[0], gradient.values()


class RowAdamW(torch.optim.AdamW):
    """AdamW in which each row of the label tables [L, …] is a parameter of its own.

    A row is updated in the steps whose gradient holds it, as `torch.optim.AdamW` would update a
    parameter that has had no other steps: moments, step count and weight decay of a row rest while
    the row does. Everything else is plain AdamW, in one pass a tensor (`fused`).

    `found_inf`: 1 on the device where the next step must change nothing, else 0 (None: each step
    counts).
    """

    found_inf: Tensor | None = None

    def __init__(
        self,
        entries: Iterable[dict[str, Any]],
        tables: Iterable[nn.Parameter] = (),
        *,
        weight_decay: float,
    ) -> None:
        self.tables = frozenset(id(table) for table in tables)
        super().__init__(
            entries, weight_decay=weight_decay, fused=True
        )  # one pass over each tensor

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step; groups whose rate is zero rest, and the gradients of tables are used up by
        it.
        """
        groups = self.param_groups
        self.param_groups = [group for group in groups if group["lr"]]
        try:
            touched = [
                (p, g)
                for g in self.param_groups
                for p in g["params"]
                if id(p) in self.tables and p.grad is not None
            ]
            counts = (
                not touched or self.found_inf is None or not self.found_inf
            )  # only here a device is asked
            for table, group in touched:
                if counts:
                    self._update(table, group)
                table.grad = None
            loss: float | None = super().step(closure)
        finally:
            self.param_groups, self.found_inf = groups, None
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state; where it has one count of steps for a whole table, each of its
        rows has had as many.
        """
        super().load_state_dict(state_dict)
        for table in [
            p
            for group in self.param_groups
            for p in group["params"]
            if id(p) in self.tables and p in self.state
        ]:
            steps = self.state[table]["step"]
            self.state[table]["step"] = steps.expand(len(table)).to(table.device, copy=True)

    def _update(self, table: nn.Parameter, group: dict[str, Any]) -> None:
        rows, gradient = touched_rows(table)
        state = self.state[table]
        if not state:
            state["step"] = torch.zeros(len(table), dtype=torch.float32, device=table.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(table), torch.zeros_like(table)
        step = max(1, NUMBERS_PER_BLOCK // max(1, table[0].numel()))
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            _update_rows(table, rows[block], gradient[block], state, group)


def _update_rows(
    table: Tensor, rows: Tensor, gradient: Tensor, state: dict[str, Tensor], group: dict[str, Any]
) -> None:
    """AdamW (Loshchilov and Hutter 2019, algorithm 2) on some rows, each with its own number of
    steps.
    """
    first, second = group["betas"]
    count = state["step"][rows] + 1
    mean = state["exp_avg"][rows].lerp_(gradient, 1 - first)
    square = state["exp_avg_sq"][rows].mul_(second).addcmul_(gradient, gradient, value=1 - second)
    for name, values in (("step", count), ("exp_avg", mean), ("exp_avg_sq", square)):
        state[name].index_copy_(0, rows, values)
    exact = count.double().view(-1, *[1] * (gradient.dim() - 1))
    root = (1 - second**exact).sqrt_().to(table.dtype)
    length = (group["lr"] / (1 - first**exact)).to(table.dtype)
    kept = table[rows].mul_(1 - group["lr"] * group["weight_decay"])
    table.index_copy_(
        0, rows, kept.sub_(mean.mul_(length).div_(square.sqrt_().div_(root).add_(group["eps"])))
    )


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Peak learning rate of each role; `head` is also that of the value path and of roles with
    another name.
    """

    head: float
    boost: float
    attention: float
    backbone: float
    layers: LayerRates = "equal"  # how that of the backbone is spread over its layers


@dataclass(frozen=True, kw_only=True)
class Group:
    """Parameters that are unfrozen together."""

    role: str
    rate: float
    parameters: tuple[nn.Parameter, ...]
    depth: int = 0


def make_groups(network: Network, rates: Rates) -> list[Group]:
    """Optimiser groups: the decoder's roles, then the backbone's layer groups from last (depth
    0) to first.
    """
    roles = network.decoder.parameter_roles()
    rate_of = {"attention": rates.attention, "boost": rates.boost}
    groups = [
        Group(role=role, rate=rate_of.get(role, rates.head), parameters=tuple(found))
        for role, found in roles.items()
        if found
    ]
    for depth, found in enumerate(reversed(network.backbone.layer_groups())):
        rate = rates.backbone * layer_share(depth, rates.layers)
        groups.append(Group(role="backbone", rate=rate, parameters=tuple(found), depth=depth))
    return groups


def make_optimizer(
    groups: Sequence[Group], weight_decay: float, tables: Sequence[nn.Parameter] = ()
) -> RowAdamW:
    """AdamW with one entry a group, in the same order; `tables` are trained row by row."""
    entries = [{"params": list(group.parameters), "lr": group.rate} for group in groups]
    return RowAdamW(entries, tables, weight_decay=weight_decay)


def gradual(group: Group, phase: int, *, attention_factor: float) -> float:
    """Factor on a group's rate in a phase, 0 while it is frozen.

    First what reads the attention (value path and head); from the second phase the attention
    itself, at a smaller rate; from the third the backbone, one group of layers more in every phase,
    the last layers first. What was planted is thus never exposed to the gradients of a head that is
    still random.
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
    return [
        gradual(group, epoch // schedule.epochs, attention_factor=schedule.attention_factor)
        for group in groups
    ]


def cosine(step: int, steps: int, warmup_share: float) -> float:
    """Share of the peak rate at a step: a linear rise, then half a cosine down to zero."""
    warmup = max(1, round(steps * warmup_share))
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, steps - warmup))))


def set_rates(
    optimizer: torch.optim.Optimizer, groups: Sequence[Group], share: float, active: Sequence[float]
) -> None:
    """Set every group's rate for the next step."""
    for entry, group, factor in zip(optimizer.param_groups, groups, active, strict=True):
        entry["lr"] = group.rate * share * factor


def unfreeze(groups: Sequence[Group], active: Sequence[float]) -> None:
    """Gradients only for groups that learn in this epoch: frozen ones cost nothing in the
    backward pass.
    """
    for group, factor in zip(groups, active, strict=True):
        for parameter in group.parameters:
            parameter.requires_grad_(factor > 0)
