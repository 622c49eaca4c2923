"""Gradients of one step: summed over all processes, scaled and clipped, whether dense, sparse by row, or sharded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from plant_cli.parallel.group import SINGLE_PROCESS, Processes, gather_full


def _values(parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Values of the gradients: of a sparse one its rows, of a sharded one the shard of this process."""
    learnt = [(p, p.grad) for p in parameters if p.grad is not None]
    return [touched_rows(p)[1] if g.is_sparse else g.to_local() if isinstance(g, DTensor) else g for p, g in learnt]


def touched_rows(table: nn.Parameter) -> tuple[Tensor, Tensor]:
    """The rows [n] that a table's gradient holds, each once, and their gradients [n, …]."""
    gradient = table.grad
    assert gradient is not None
    if not gradient.is_sparse:
        return torch.arange(len(table), device=table.device), gradient
    table.grad = gradient = gradient.coalesce()
    return gradient.indices()[0], gradient.values()


def add_gradients(processes: Processes, parameters: Sequence[nn.Parameter], tables: Sequence[nn.Parameter]) -> None:
    """Replace the gradients of parameters by their sums over all processes; of a table, the rows that any process touched."""
    if processes.count == 1:
        return
    dense = [p for p in parameters if not isinstance(p, DTensor) and not any(p is table for table in tables)]
    for parameter in dense:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    processes.add(parameter.grad for parameter in dense if parameter.grad is not None)
    for table in parameters:
        if any(table is one for one in tables):
            table.grad = _add_rows(processes, table)


def _add_rows(processes: Processes, table: nn.Parameter) -> Tensor:
    """Rows and gradients of all processes, concatenated and summed as a sparse gradient."""
    if table.grad is None:
        none = table.new_zeros(1, 0, dtype=torch.int64), table.new_zeros(0, *table.shape[1:])
        table.grad = torch.sparse_coo_tensor(*none, table.shape, check_invariants=False)
    rows, values = touched_rows(table)
    counts = torch.tensor(processes.gather(float(len(rows))), device=table.device)
    longest = int(counts.max())
    all_rows = rows.new_zeros(processes.count, longest)
    all_values = values.new_zeros(processes.count, longest, *table.shape[1:])
    all_rows[processes.rank, : len(rows)], all_values[processes.rank, : len(rows)] = rows, values
    processes.add([all_rows, all_values])
    filled = torch.arange(longest, device=table.device) < counts[:, None]
    return torch.sparse_coo_tensor(all_rows[filled][None], all_values[filled], table.shape, check_invariants=False).coalesce()


def scale_gradients(parameters: Sequence[nn.Parameter], factor: float, processes: Processes) -> None:
    """Multiply summed gradients by a factor; those of sharded parameters are still means over the processes."""
    spread, others = _apart(parameters)
    for found, by in ((spread, factor * processes.count), (others, factor)):
        for values in _values(found):
            values.mul_(by)


def clip_gradients(parameters: Sequence[nn.Parameter], largest: float, processes: Processes = SINGLE_PROCESS) -> None:
    """Scale all gradients, sparse and sharded ones too, to a joint norm of at most `largest`."""
    spread, others = _apart(parameters)
    norms = [torch.linalg.vector_norm(values) for values in _values(others)]
    if spread:
        square = torch.stack([torch.linalg.vector_norm(values) for values in _values(spread)]).square().sum()
        processes.add([square])
        norms.append(square.sqrt())
    norm = torch.linalg.vector_norm(torch.stack(norms))
    factor = (largest / (norm + 1e-6)).clamp(max=1.0)  # as torch.nn.utils.clip_grad_norm_ does it
    for values in _values(parameters):
        values.mul_(factor)


def _apart(parameters: Sequence[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Sharded parameters, and the others."""
    return [p for p in parameters if isinstance(p, DTensor)], [p for p in parameters if not isinstance(p, DTensor)]


def full_state(optimizer: torch.optim.Optimizer, *, keep: bool) -> dict[str, Any]:
    """State of an optimiser with full tensors; empty unless `keep`. A collective call: every process must make it."""
    state = optimizer.state_dict()
    gathered: dict[int, dict[str, Any]] = {}
    for number, values in state["state"].items():  # one after the other: a device need not hold them all
        found = {key: gather_full(value).cpu() if keep else gather_full(value) for key, value in values.items()}
        gathered[number] = found if keep else {}
    return {**state, "state": gathered} if keep else {}
