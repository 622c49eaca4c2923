"""One step of the optimiser along gradients that all processes made: what the loop asks of it, and the plain way of doing it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.processes import Processes
from plant_cli.training.optimiser import add_gradients, clip_gradients, scale_gradients, sparse_tables, whole_state
from plant_cli.training.unfreezing import Group


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What learns in this process.

    Args:
        network: the same in all processes, whole.
        hardware: where it is, and with which processes.
        groups: of those of its parameters that learn; all ask for gradients.
        optimizer: of these groups, with the state that it goes on from.
        clip: largest norm of the gradient.
    """

    network: Network
    hardware: Hardware
    groups: Sequence[Group]
    optimizer: torch.optim.Optimizer
    clip: float

    @property
    def processes(self) -> Processes:
        """Those that learn together."""
        return self.hardware.processes


class Stepping(Protocol):
    """How processes that train one network share its parameters, their gradients and the optimiser's state.

    Each call that meets the other processes (all but `backward` may) is made by all of them.

    Attributes:
        groups: of the parameters that learn, as they are while this lasts.
        together: whether all processes must make the same number of forward and backward passes between two steps; one that has
            nothing to do makes one of weight zero.
    """

    groups: Sequence[Group]
    together: bool

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


class Summing:
    """The network whole in every process, which sum their gradients; also what a process does that is alone."""

    together = False

    def __init__(self, learning: Learning) -> None:
        self.network = learning.network
        self.processes = learning.processes
        self.groups = learning.groups
        self.optimizer = learning.optimizer
        self.clip = learning.clip

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """See `Stepping.backward`."""
        torch.autograd.backward(loss)

    def step(self, weight: float) -> None:
        """See `Stepping.step`."""
        if weight:
            learning = self._learning()
            add_gradients(self.processes, learning, sparse_tables(self.network))
            scale_gradients(learning, 1.0 / weight, self.processes)
            clip_gradients(learning, self.clip, self.processes)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _learning(self) -> list[nn.Parameter]:
        """The parameters that have a gradient in any process."""
        parameters = [p for group in self.groups for p in group.parameters]
        counts = torch.tensor([float(p.grad is not None) for p in parameters])
        self.processes.add([counts])
        return [parameter for parameter, count in zip(parameters, counts.tolist(), strict=True) if count]

    def state(self, *, keep: bool) -> dict[str, Any]:
        """See `Stepping.state`."""
        return whole_state(self.optimizer, keep=keep)

    def gathered(self) -> AbstractContextManager[None]:
        """See `Stepping.gathered`."""
        return nullcontext()

    def end(self) -> None:
        """See `Stepping.end`: they are."""
