"""One micro-batch of a stage, run on shapes alone: what it holds at most, and how many operations it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from plant_cli.api import ComponentError, TokenBatch
from plant_cli.base.padding import TOKEN_MULTIPLE, round_up
from plant_cli.model.hardware import Hardware
from plant_cli.model.reading import pad_to_multiple
from plant_cli.planning.jobs import Job
from plant_cli.planning.ledger import keeping_books
from plant_cli.planning.outline import Outline

Reading = Literal["trained", "frozen", "cached"]
"""How hidden states come about: by a backbone that learns, by a frozen one in every epoch, or from the cache on disk."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Bytes beside weights and gradients, and floating-point operations of products.

    Args:
        activations: what is held once the documents are read.
        peak: what is held at most.
        operations: for each of its positions, padding included.
    """

    activations: int
    peak: int
    operations: float


def trace_reading(sketch: Outline, batch: TokenBatch, hardware: Hardware) -> Trace:
    """Reading documents without learning."""
    sketch.network.eval()
    known = [*sketch.network.parameters(), *sketch.network.buffers()]
    with _explained(sketch), keeping_books(known, 0) as ledger, torch.no_grad(), _computing(sketch, hardware):
        hidden, _ = sketch.network.backbone.encode(batch)
        return Trace(
            activations=hidden.numel() * hidden.element_size(),
            peak=ledger.peak + sketch.unpacked,
            operations=ledger.operations / hidden.shape[:2].numel(),
        )


def trace_step(
    sketch: Outline, job: Job, batch: TokenBatch, hardware: Hardware, reading: Reading, learning: list[nn.Parameter], *, gathered: bool
) -> Trace:
    """A micro-batch of a stage: forward, and backward where it learns.

    Args:
        sketch: the network, unfrozen as the stage does.
        job: the stage.
        batch: the documents.
        hardware: its number format decides the size of activations.
        reading: where hidden states come from.
        learning: the parameters that get gradients.
        gathered: whether gradients of an earlier micro-batch are there already.
    """
    network = sketch.network.train(bool(learning))
    for parameter in learning:
        parameter.grad = torch.empty_like(parameter) if gathered else None
    known = [*network.parameters(), *network.buffers(), *(p.grad for p in learning if p.grad is not None)]
    with _explained(sketch), keeping_books(known, job.chosen(network)) as ledger, torch.set_grad_enabled(bool(learning)):
        with _computing(sketch, hardware):
            hidden, mask = _read(sketch, batch, hardware, reading)
            activations = ledger.now
            found = job.judge(network, hidden, mask)
        if learning:
            found.backward()  # type: ignore[no-untyped-call]
        own = 0 if gathered else sum(p.numel() * p.element_size() for p in learning)
        peak = max(ledger.peak - own, activations) + (sketch.unpacked if reading != "cached" else 0)
        trace = Trace(activations=activations, peak=peak, operations=ledger.operations / hidden.shape[:2].numel())
    for parameter in learning:
        parameter.grad = None
    return trace


def _read(sketch: Outline, batch: TokenBatch, hardware: Hardware, reading: Reading) -> tuple[Tensor, Tensor]:
    if reading != "cached":
        with torch.set_grad_enabled(reading == "trained" and torch.is_grad_enabled()):
            return pad_to_multiple(*sketch.network.backbone.encode(batch))
    sizes = np.array([len(ids) for ids in batch.ids])
    shape = (len(batch), round_up(max(1, int(sizes.max())), TOKEN_MULTIPLE), sketch.network.backbone.hidden_size)
    hidden = next(sketch.network.decoder.parameters()).new_empty(shape, dtype=hardware.dtype)
    return hidden, torch.from_numpy(np.arange(shape[1])[None, :] < sizes[:, None]).to(hardware.device)


def _computing(sketch: Outline, hardware: Hardware) -> AbstractContextManager[object]:
    """The stage's number format; weights in few bits compute in bf16 in any case."""
    return Hardware(device=hardware.device, dtype=torch.bfloat16).autocast() if sketch.unpacked else hardware.autocast()


@contextmanager
def _explained(sketch: Outline) -> Iterator[None]:
    """Turns what cannot be run on shapes alone into an error that says so."""
    try:
        yield
    except (NotImplementedError, RuntimeError) as error:
        section = sketch.network.section
        raise ComponentError(
            f"a step of this network cannot be followed on shapes alone: {str(error).splitlines()[0]}",
            where=f"backbone '{section.backbone.name}', decoder '{section.decoder.name}'",
            expected="computations whose shapes do not depend on values",
            todo="train it for one epoch and see `peak_memory_gb` in stage.json",
        ) from error
