"""What the training loop asks of the processes that train one network together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from plant_cli.parallel.group import Processes

Group = tuple[nn.Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class Trainable:
    """The network and optimiser that are trained, as a strategy needs them.

    Args:
        backbone: the same in all processes, whole.
        decoder: likewise.
        hidden_size: of the backbone.
        groups: the parameters that are trained, by group; all ask for gradients.
        tables: those of them with sparse gradients.
        optimizer: of these groups, with the state that training continues from.
        clip: largest norm of the gradient.
        device: where the network is.
        processes: those that train together.
    """

    backbone: nn.Module
    decoder: nn.Module
    hidden_size: int
    groups: Sequence[Group]
    tables: Sequence[nn.Parameter]
    optimizer: torch.optim.Optimizer
    clip: float
    device: torch.device
    processes: Processes


class Strategy(Protocol):
    """How processes that train one network share its parameters, gradients and optimiser state.

    All calls but `backward` are collective: every process must make them.

    Attributes:
        groups: the parameters that are trained, whole or sharded.
        lockstep: whether all processes must make the same number of forward and backward passes between two steps; a process
            without work makes one of weight zero.
    """

    groups: Sequence[Group]
    lockstep: bool

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a micro-batch; `last`: the last one of this process before a step."""
        ...

    def step(self, weight: float) -> None:
        """One step with the gradients of all processes, divided by `weight` and clipped; weight 0: only clear the gradients."""
        ...

    def state(self, *, keep: bool) -> dict[str, Any]:
        """State of the optimiser over whole parameters, from which any number of processes can continue; empty unless `keep`."""
        ...

    def gathered(self) -> AbstractContextManager[None]:
        """Inside: all parameters whole in every process, for reading only, without further communication."""
        ...

    def end(self) -> None:
        """Make the network's parameters whole in every process."""
        ...
