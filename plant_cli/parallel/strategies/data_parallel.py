"""Data parallel: the network whole in every process, which sum their gradients; also what a single process does."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from plant_cli.parallel.gradients import add_gradients, clip_gradients, full_state, scale_gradients
from plant_cli.parallel.strategies.strategy import Trainable


class DataParallel:
    """Every process holds the whole network; gradients are summed. Also the strategy of a single process."""

    lockstep = False

    def __init__(self, trained: Trainable) -> None:
        self.trained = trained
        self.processes = trained.processes
        self.groups = trained.groups
        self.optimizer = trained.optimizer

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """See `Strategy.backward`."""
        torch.autograd.backward(loss)

    def step(self, weight: float) -> None:
        """See `Strategy.step`."""
        if weight:
            parameters = self._with_gradient()
            add_gradients(self.processes, parameters, self.trained.tables)
            scale_gradients(parameters, 1.0 / weight, self.processes)
            clip_gradients(parameters, self.trained.clip, self.processes)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _with_gradient(self) -> list[nn.Parameter]:
        """Parameters with a gradient in any process."""
        parameters = [p for group in self.groups for p in group]
        counts = torch.tensor([float(p.grad is not None) for p in parameters])
        self.processes.add([counts])
        return [parameter for parameter, count in zip(parameters, counts.tolist(), strict=True) if count]

    def state(self, *, keep: bool) -> dict[str, Any]:
        """See `Strategy.state`."""
        return full_state(self.optimizer, keep=keep)

    def gathered(self) -> AbstractContextManager[None]:
        """See `Strategy.gathered`."""
        return nullcontext()

    def end(self) -> None:
        """See `Strategy.end`: nothing to do, parameters are whole."""
