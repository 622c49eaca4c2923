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
    """What is trained in this process.

    Args:
        backbone: the same in all processes, whole.
        decoder: likewise.
        hidden_size: of the backbone.
        groups: the parameters that are trained, by group; all ask for gradients.
        tables: those of them that have sparse gradients, row by row.
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
    """How processes that train one network share its parameters, their gradients and the optimiser's state.

    Each call that meets the other processes (all but `backward` may) is made by all of them.

    Attributes:
        groups: of the parameters that learn, as they are while this lasts.
        lockstep: whether all processes must make the same number of forward and backward passes between two steps; one that has
            nothing to do makes one of weight zero.
    """

    groups: Sequence[Group]
    lockstep: bool

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradients of a micro-batch, the last of this process before a step or another."""
        ...

    def step(self, weight: float) -> None:
        """Step along the gradients of all processes, divided by the weight of all micro-batches and clipped; 0: only forget them."""
        ...

    def state(self, *, keep: bool) -> dict[str, Any]:
        """The state of an optimiser that has whole parameters, to continue from with any number of processes; empty unless kept."""
        ...

    def gathered(self) -> AbstractContextManager[None]:
        """All parameters whole in every process, for reading alone: none waits for another inside."""
        ...

    def end(self) -> None:
        """Give the network whole parameters of its own in every process."""
        ...
