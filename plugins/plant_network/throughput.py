"""How fast work goes: time, operations and memory of a computation, and the throughput of a
training.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from plant_cli.runs.machine import peak_memory_gb
from plant_network.assembly import Network
from plant_network.compute import in_one_thread
from plant_network.hardware import Hardware
from plant_network.loop import BatchLoss, TrainingResult
from plant_network.reading import HiddenReader, lengths
from plant_network.replays import without_replays
from plant_network.state_cache import CachedReader


def time_fastest(run: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """Seconds of the fastest of some runs on a device, after one that is not counted."""
    run()
    seconds = []
    for _ in range(repeats):
        _finish(device)
        started = time.perf_counter()
        run()
        _finish(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _finish(device: torch.device) -> None:
    """Wait for the work that a GPU still has to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _count_added(
    result: Sequence[int], left: Sequence[int], right: Sequence[int], **_: object
) -> int:
    return 2 * left[0] * left[1] * right[1]


def _count_attention(
    query: Sequence[int], key: Sequence[int], value: Sequence[int], *rest: object, **more: object
) -> int:
    return 2 * math.prod(query[:3]) * key[2] * (query[3] + value[3])


def _count_attention_backward(
    gradient: object,
    query: Sequence[int],
    key: Sequence[int],
    value: Sequence[int],
    *rest: object,
    **_: object,
) -> int:
    return (
        2 * math.prod(query[:3]) * key[2] * (3 * query[3] + 2 * value[3])
    )  # scores are computed again


FORMULAS: Mapping[Any, Callable[..., int]] = {
    torch.ops.aten.addmm_: _count_added,
    **{
        getattr(torch.ops.aten, f"_scaled_dot_product_{kernel}_attention{direction}"): count
        for kernel in ("flash", "efficient", "cudnn")
        for direction, count in (("", _count_attention), ("_backward", _count_attention_backward))
    },
}
"""Of operators that torch does not count, or counts only where queries have as many heads as
keys.
"""


def count_operations(
    run: Callable[[], object], formulas: Mapping[Any, Callable[..., int]] | None = None
) -> int:
    """Floating-point operations of all matrix products in a computation, recomputed ones included.

    What torch has no formula for counts nothing: kernels of our own, its fused attention on
    processors. `formulas` are those of further torch operators, each a function of the shapes of
    the arguments and of `out_shape`.
    """
    counter = FlopCounterMode(display=False, custom_mapping={**FORMULAS, **(formulas or {})})
    counter.mod_tracker = _WholeComputation()  # type: ignore[assignment]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(
        False
    )  # torch's whole layers have no formula, their products have
    try:
        with counter, in_one_thread(), without_replays():
            run()
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return int(counter.get_total_flops())


class _WholeComputation(AbstractContextManager["_WholeComputation"]):
    """Stands in for torch's record of which module runs, which fails on modules that are called
    without gradients inside a step.
    """

    parents = frozenset({"Global"})

    def __exit__(self, *raised: object) -> None: ...


MATRIX_SIDE = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the matrices by type of device: a product takes under a tenth of a second."""


def matrix_rate(device: torch.device, dtype: torch.dtype, repeats: int = 3) -> float:
    """Floating-point operations a second of one large matrix product, the fastest of some."""
    side = MATRIX_SIDE.get(device.type, MATRIX_SIDE["cpu"])
    left, right = (torch.randn(side, side, dtype=dtype, device=device) for _ in range(2))
    return 2 * side**3 / time_fastest(lambda: left @ right, device, repeats)


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """Speed and memory of a training stage."""

    documents_per_second: float  # trained on, validation not counted
    tokens_per_second: float  # likewise, without padding
    padding_share: float  # share of the positions in batches that are padding
    # operations of matrix products in training, over what the machine does in one large product in
    # the same time
    share_of_peak: float
    peak_memory_gb: float  # largest resident memory of the process so far, on a GPU of the device
    cache_seconds: (
        float | None
        # time in which the frozen backbone read train once; None without a cache, or where it was
        # there before
    )
    epoch_seconds: Sequence[float]  # of each epoch
    operations_per_document: float
    """Of matrix products, forward and backward, for a training document of mean length; a
    backbone whose states are cached is not counted.
    """
    # numbers in the network's weights; of those that are quantised, the numbers that hold them
    parameters: int
    trained_parameters: int  # those of them that were trained

    @property
    def cache_ratio(self) -> float | None:
        """How many times as long the first epoch took, with what the backbone read for it, as a
        later one (the median).
        """
        if self.cache_seconds is None or len(self.epoch_seconds) < 2:
            return None
        return (self.cache_seconds + self.epoch_seconds[0]) / max(
            float(np.median(self.epoch_seconds[1:])), 1e-9
        )

    def summary(self) -> dict[str, float | None]:
        """For stage.json."""
        figures = {name: value for name, value in asdict(self).items() if name != "epoch_seconds"}
        return {**figures, "cache_ratio": self.cache_ratio}

    @property
    def note(self) -> str:
        """What the user reads of it."""
        memory = f"peak memory {self.peak_memory_gb:.2f} GB"
        return (
            f"{self.documents_per_second:.1f} documents/s, {self.tokens_per_second:.0f} "
            f"tokens/s; {memory}"
        )


def measure_throughput(
    network: Network,
    reader: HiddenReader,
    hardware: Hardware,
    step: BatchLoss,
    outcome: TrainingResult,
    batch: int,
) -> Throughput:
    """The figures of a training that has ended; runs one more micro-batch, to count its operations.

    The optimiser and the copy of the best epoch should be gone by then: the micro-batch needs
    memory, too.
    """
    sizes = lengths(reader.tokens)
    order = np.argsort(sizes, kind="stable")
    middle = np.sort(
        order[max(0, len(order) // 2 - batch // 2) :][:batch]
    )  # documents of median length stand for all
    tokens_per_second = outcome.documents_per_second * float(sizes.mean())

    def run_once() -> None:
        loss, weight = step(middle, epoch=0, seed=0)
        if weight and loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]

    operations = count_operations(run_once)
    network.zero_grad(set_to_none=True)
    weights = list(network.parameters())
    per_token = operations / max(1, int(sizes[middle].sum()))
    return Throughput(
        documents_per_second=outcome.documents_per_second,
        tokens_per_second=tokens_per_second,
        padding_share=outcome.padding,
        share_of_peak=tokens_per_second
        * per_token
        / (matrix_rate(hardware.device, hardware.dtype) * hardware.processes.count),
        peak_memory_gb=torch.cuda.max_memory_allocated(hardware.device) / 1e9
        if hardware.device.type == "cuda"
        else peak_memory_gb(),
        cache_seconds=reader.filled_in if isinstance(reader, CachedReader) else None,
        epoch_seconds=outcome.epoch_seconds,
        operations_per_document=per_token * float(sizes.mean()),
        parameters=sum(weight.numel() for weight in weights),
        trained_parameters=sum(weight.numel() for weight in weights if weight.requires_grad),
    )
