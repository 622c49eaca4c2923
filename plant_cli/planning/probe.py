"""A short measurement of a stage with made-up weights: one and two documents, through one and two layers of each kind.

Memory, operations and time grow linearly with documents and with layers of a kind, so these few runs stand for the whole network,
whose weights need not be there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from plant_cli.api import ComponentError, Reading, TokenBatch, first_line
from plant_cli.base.padding import TOKEN_MULTIPLE, round_up
from plant_cli.measuring.clock import time_fastest
from plant_cli.measuring.counting import count_operations, peak_allocated
from plant_cli.model.hardware import Hardware
from plant_cli.model.reading import pad_to_multiple
from plant_cli.planning.documents import Documents
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline, size_of

Source = Literal["trained", "frozen", "cached", "reading"]
"""Where hidden states come from: a backbone that is trained, a frozen one, the cache; or the frozen backbone reads and nothing else."""
Figures = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Bytes, operations and seconds [3] of a micro-batch: `fixed`, and more with every document."""

    fixed: Figures
    document: Figures

    def memory(self, documents: int) -> int:
        """Bytes held at most, beside weights and gradients."""
        return max(0, int(self.fixed[0] + documents * self.document[0]))

    def each(self, documents: int) -> tuple[float, float]:
        """Operations and seconds of one document of typical length, in micro-batches of so many."""
        operations, seconds = np.maximum(0.0, self.fixed[1:] / documents + self.document[1:])
        return float(operations), float(seconds)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Measures stages.

    Args:
        sketch: the network; its weights come and go.
        job: the stage.
        documents: the training documents.
        hardware: where it runs.
        timed: whether to measure seconds, too.
    """

    sketch: Outline
    job: Job
    documents: Documents
    hardware: Hardware
    timed: bool

    def measure(self, source: Source) -> Cost:
        """The cost of a micro-batch.

        Args:
            source: where hidden states come from.

        Raises:
            ComponentError: the network does not run with made-up weights, or with fewer layers.
        """
        one, two = self._extrapolate(source)
        two = np.maximum(one, two)  # on a busy machine two documents may seem to take less time
        return Cost(fixed=2 * one - two, document=two - one)

    def _extrapolate(self, source: Source) -> Figures:
        """Figures [2, 3] of one and two documents through all blocks, from one block of each kind and from one more of each."""
        network = self.sketch.network
        if source == "cached":
            return self._run(network.decoder, source)
        blocks = Blocks(network.backbone_module)
        with blocks.keep():
            total = least = self._run(network, source)
        for kind, number in blocks.kinds.items():
            if number > 1:
                with blocks.keep(kind):
                    total = total + (number - 1) * np.maximum(0.0, self._run(network, source) - least)
        return total

    def _run(self, part: nn.Module, source: Source) -> Figures:
        """Figures [2, 3] of one and two documents through a part of the network, whose weights come and go."""
        section = self.sketch.network.section
        try:
            part.to_empty(device=self.hardware.device)
            _fill(part)
            return np.array([self._count(part, documents, source) for documents in (1, 2)])
        except (NotImplementedError, RuntimeError, IndexError) as error:
            raise ComponentError(
                f"this network cannot be tried with made-up weights: {first_line(error)}",
                where=f"backbone '{section.backbone.name}', decoder '{section.decoder.name}'",
                expected="a network that runs with one layer of each kind, and that fits into memory so",
                todo="train it for one epoch and see `peak_memory_gb` in stage.json",
            ) from error
        finally:
            part.to("meta")

    def _count(self, part: nn.Module, documents: int, source: Source) -> list[float]:
        """Bytes for the longest documents, operations and seconds for typical ones."""
        longest, typical = (batch.select([0] * documents) for batch in (self.documents.longest, self.documents.typical))
        self.sketch.network.train(bool(self.job.roles) and source != "reading")
        learning = [] if source == "reading" else [p for p in part.parameters() if p.requires_grad]
        passes = min(2, self.job.micro_batches) if learning else 1
        peak = peak_allocated(partial(self._pass, longest, source, passes), self.hardware.device) - size_of(learning)
        once = partial(self._pass, typical, source, 1)
        return [peak, count_operations(once), time_fastest(once, self.hardware.device) if self.timed else 0.0]

    def _pass(self, batch: TokenBatch, source: Source, passes: int) -> None:
        network, learns = self.sketch.network, bool(self.job.roles) and source != "reading"
        for _ in range(passes):
            with self._autocast(), torch.set_grad_enabled(learns):
                reading = Reading.of(*self._read(batch, source))
                found = None if source == "reading" else self.job.score(network, reading)
            if found is not None and found.requires_grad:
                found.backward()  # type: ignore[no-untyped-call]
        network.zero_grad(set_to_none=True)

    def _autocast(self) -> torch.autocast:
        half = self.hardware.dtype == torch.bfloat16 or bool(self.sketch.unpacked)  # weights in few bits compute in bf16
        return torch.autocast(self.hardware.device.type, dtype=torch.bfloat16, enabled=half)

    def _read(self, batch: TokenBatch, source: Source) -> tuple[Tensor, Tensor]:
        backbone, device = self.sketch.network.backbone, self.hardware.device
        if source != "cached":
            with torch.set_grad_enabled(source == "trained" and torch.is_grad_enabled()):
                return pad_to_multiple(*backbone.encode(batch))
        length = round_up(len(batch.ids[0]), TOKEN_MULTIPLE)
        mask = (torch.arange(length, device=device) < len(batch.ids[0])).expand(len(batch), -1)
        return torch.randn(len(batch), length, backbone.hidden_size, dtype=self.hardware.dtype, device=device), mask


class Blocks:
    """The layers of a backbone: its largest list of modules. Layers are of one kind if their shapes and what is trained of them agree.

    Args:
        module: the backbone, its parameters unfrozen as in training.
    """

    def __init__(self, module: nn.Module) -> None:
        lists = [(name, part) for name, part in module.named_modules() if isinstance(part, nn.ModuleList) and name]
        name, found = max(lists, key=lambda item: sum(p.numel() for p in item[1].parameters()), default=("", nn.ModuleList()))
        self._owner, self._name = module.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]
        self._all = list(found)
        self._kinds = [tuple((n, p.shape, p.requires_grad) for n, p in block.named_parameters()) for block in self._all]
        self.kinds = Counter(self._kinds)

    @contextmanager
    def keep(self, twice: object = None) -> Iterator[None]:
        """Leave one block of each kind in the backbone, in their order, and two of the kind `twice`."""
        seen: Counter[object] = Counter()
        kept: list[nn.Module] = []
        for block, kind in zip(self._all, self._kinds, strict=True):
            seen[kind] += 1
            if seen[kind] <= 1 + (kind == twice):
                kept.append(block)
        self._put(kept)
        try:
            yield
        finally:
            self._put(self._all)

    def _put(self, blocks: Sequence[nn.Module]) -> None:
        if self._all:
            setattr(self._owner, self._name, nn.ModuleList(blocks))


@torch.no_grad()
def _fill(module: nn.Module) -> None:
    """Equal weights and empty buffers: memory and time do not depend on them, unless they are no numbers or next to zero."""
    for parameter in module.parameters():
        parameter.fill_(0.02)
    for buffer in module.buffers():
        buffer.zero_()
