"""Passes of a language model that a graphics card replays (CUDA graphs): Python starts each as one,
not as thousands of operations.

A pass is captured for each shape of a batch that comes often. Few shapes come: positions and
documents are rounded up.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from plant_network.compute import round_up

POSITION_MULTIPLE, ROW_MULTIPLE = 64, 4  # what positions and rows of a batch are rounded up to
USES = 20
"""Batches of a shape that are read as usual before one is captured: a capture takes four
passes, and a replay saves 3% to 20% of one.
"""
MOST_SHAPES = 12
WARM_UPS = 3
"""Passes before a capture, in which kernels are chosen and memory is taken."""
PASS_SHARE = 0.5
"""Part of a card's free memory that the activations of a captured pass may take: it keeps that
memory.
"""

log = logging.getLogger(__name__)
_replaying = ContextVar("_replaying", default=True)


@contextmanager
def without_replays() -> Iterator[None]:
    """Inside, every operation is started by itself, so that it can be counted."""
    token = _replaying.set(False)
    try:
        yield
    finally:
        _replaying.reset(token)


Reader = Callable[[Tensor], tuple[Tensor, Sequence[Tensor]]]
"""Reads token ids of a shape for a pass of its own: hidden states, and leaves that stand for
the parameters that learn. Parameters themselves may belong to the graph of the batch before,
which computed on another stream.
"""


class CapturedPass:
    """A forward and a backward pass over token ids of one shape; `gradients` are those of the
    parameters that learn.
    """

    def __init__(self, read: Reader, ids: Tensor, pool: Any) -> None:
        self.ids = ids.clone()
        outside = torch.cuda.current_stream(ids.device)
        try:
            with torch.random.fork_rng(devices=[ids.device]):
                beside = torch.cuda.Stream(ids.device)  # type: ignore[no-untyped-call]
                beside.wait_stream(outside)
                with torch.cuda.stream(beside):
                    self.upstream = self._warm_up(read)
                outside.wait_stream(beside)
                self.graphs = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graphs[0], pool=pool):
                    states, leaves = read(self.ids)
                with torch.cuda.graph(self.graphs[1], pool=pool):
                    self.gradients = torch.autograd.grad(
                        states, leaves, self.upstream, allow_unused=True
                    )
            self.states = states.detach()
        except Exception:
            torch.cuda.set_stream(
                outside
            )  # a capture that fails may leave its own, and random numbers that wait for its end
            fresh = torch.Generator(ids.device).manual_seed(torch.cuda.initial_seed())
            torch.cuda.default_generators[outside.device.index].graphsafe_set_state(
                fresh.graphsafe_get_state()
            )
            raise

    def _warm_up(self, read: Reader) -> Tensor:
        """Zeros in the form of the states; the graphs of these passes are gone afterwards."""
        for _ in range(WARM_UPS):
            states, leaves = read(self.ids)
            zeros = torch.zeros_like(states)
            torch.autograd.grad(states, leaves, zeros, allow_unused=True)
        return zeros

    def forward(self, ids: Tensor) -> Tensor:
        """Hidden states, until the next forward pass."""
        self.ids.copy_(ids)
        self.graphs[0].replay()
        return self.states.detach()

    def backward(self, gradient: Tensor) -> None:
        """Make the gradients from those of the states of the last forward pass."""
        self.upstream.copy_(gradient)
        self.graphs[1].replay()


class _Replay(torch.autograd.Function):
    """The states of a replayed pass; its backward pass adds to the gradients of the parameters
    itself, all in one call.
    """

    @staticmethod
    def forward(
        ctx: Any, known: Tensor, found: Any, ids: Tensor, parameters: Sequence[nn.Parameter]
    ) -> Tensor:
        states: Tensor = found.forward(ids)
        found.turn = ctx.turn = object()
        ctx.found, ctx.parameters = found, parameters
        return states

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, ...]:
        assert ctx.found.turn is ctx.turn, (
            "another batch of this shape was read before the backward pass of this one"
        )
        ctx.found.backward(gradient)
        add_to_gradients(ctx.parameters, ctx.found.gradients)
        return None, None, None, None


def add_to_gradients(
    parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None]
) -> None:
    """Add gradients that the next pass will write over; None adds nothing."""
    copied: list[list[Tensor]] = [[], []]
    added: list[list[Tensor]] = [[], []]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            held, new = added if parameter.grad is not None else copied
            if parameter.grad is None:
                parameter.grad = torch.empty_like(parameter)
            held.append(parameter.grad)
            new.append(gradient)
    if copied[0]:
        torch._foreach_copy_(copied[0], copied[1])
    if added[0]:
        torch._foreach_add_(added[0], added[1])


class Replays:
    """The captured passes of a network that reads token ids [W, S] without a mask.

    `parameters`: those that may learn; `fits` says whether the activations of so many positions may
    be kept for good.
    """

    def __init__(
        self,
        read: Reader,
        parameters: Sequence[nn.Parameter],
        fits: Callable[[int], bool],
        capture: Callable[..., CapturedPass] = CapturedPass,
    ) -> None:
        self.read, self.parameters, self.fits, self.capture = read, parameters, fits, capture
        self.passes: dict[tuple[int, ...], CapturedPass] = {}
        self.uses: Counter[tuple[int, ...]] = Counter()
        self.pool: Any = None
        self.failed = False

    def find(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """The shape that a batch of training gets for a captured pass; None where it is read as
        usual.
        """
        learnt = tuple(parameter.requires_grad for parameter in self.parameters)
        if self.failed or not torch.is_grad_enabled() or not any(learnt) or not _replaying.get():
            return None
        rows, positions = shape
        key = rows if rows <= ROW_MULTIPLE else round_up(rows, ROW_MULTIPLE), positions, *learnt
        self.uses[key] += 1
        few = self.uses[key] <= USES or len(self.passes) >= MOST_SHAPES
        return (
            None if key not in self.passes and (few or not self.fits(key[0] * positions)) else key
        )

    def run(self, key: tuple[int, ...], ids: Tensor) -> Tensor | None:
        """Hidden states of token ids of a shape that `find` gave; None where it cannot be
        captured, from now on for any shape.
        """
        learnt = [parameter for parameter in self.parameters if parameter.requires_grad]
        if key not in self.passes:
            try:
                self.pool = self.pool or (torch.cuda.graph_pool_handle() if ids.is_cuda else None)
                self.passes[key] = self.capture(self.read, ids, self.pool)
            except (
                Exception
            ) as error:  # of the driver, of memory, or of an operation that cannot be captured
                self.failed = True
                self.passes.clear()
                log.warning(
                    "batches are not replayed as CUDA graphs (%s); training goes on without",
                    str(error).partition("\n")[0],
                )
                return None
        states: Tensor = _Replay.apply(learnt[0], self.passes[key], ids, learnt)  # type: ignore[no-untyped-call]
        return states
