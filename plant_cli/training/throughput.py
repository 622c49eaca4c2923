"""How fast a stage trained, against what the machine can do, and what the cache of hidden states saved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from plant_cli.base.memory import peak_memory_gb
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.reading import HiddenReader, Rows, lengths
from plant_cli.training.cache import CachedReader
from plant_cli.training.loop import BatchLoss, TrainingResult

SIDE = {"cpu": 1024, "cuda": 8192}
"""Side of the matrices whose product tells the machine's rate: under a tenth of a second."""


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """Speed and memory of a training stage.

    Args:
        documents_per_second: trained on, validation not counted.
        tokens_per_second: likewise, without padding.
        padding_share: share of the positions in batches that are padding.
        share_of_peak: operations of matrix products in training, over what the machine does in one large product in the same time.
        peak_memory_gb: largest resident memory of the process so far, on a GPU of the device.
        cache_seconds: time in which the frozen backbone read train once; None without a cache, or where it was there before.
        epoch_seconds: of each epoch.
    """

    documents_per_second: float
    tokens_per_second: float
    padding_share: float
    share_of_peak: float
    peak_memory_gb: float
    cache_seconds: float | None
    epoch_seconds: Sequence[float]

    @property
    def cache_ratio(self) -> float | None:
        """How many times as long the first epoch took, with what the backbone read for it, as a later one (the median)."""
        if self.cache_seconds is None or len(self.epoch_seconds) < 2:
            return None
        return (self.cache_seconds + self.epoch_seconds[0]) / max(float(np.median(self.epoch_seconds[1:])), 1e-9)

    def summary(self) -> dict[str, float | None]:
        """For stage.json."""
        return {
            "documents_per_second": self.documents_per_second,
            "tokens_per_second": self.tokens_per_second,
            "padding_share": self.padding_share,
            "share_of_peak": self.share_of_peak,
            "peak_memory_gb": self.peak_memory_gb,
            "cache_seconds": self.cache_seconds,
            "cache_ratio": self.cache_ratio,
        }

    def notes(self) -> list[str]:
        """For a person."""
        speed = (
            f"{self.documents_per_second:.1f} documents/s, {self.tokens_per_second:.0f} tokens/s "
            f"({100 * self.padding_share:.0f}% of the positions are padding), {100 * self.share_of_peak:.0f}% of the machine's rate in "
            f"one large matrix product; {self.peak_memory_gb:.2f} GB at most"
        )
        if self.cache_ratio is None or self.cache_seconds is None:
            return [speed]
        first = self.cache_seconds + self.epoch_seconds[0]
        return [speed, f"hidden states cached: the first epoch took {first:.1f} s, {self.cache_ratio:.1f} times as long as later ones"]


def measure_throughput(
    network: Network, reader: HiddenReader, hardware: Hardware, step: BatchLoss, outcome: TrainingResult, batch: int
) -> Throughput:
    """The figures of a training that has ended; runs one more micro-batch, to count its operations.

    Args:
        network: that was trained; its weights stay as they are.
        reader: of train.
        hardware: it was trained on.
        step: the loss of a micro-batch.
        outcome: what the loop tells.
        batch: documents of a micro-batch.
    """
    sizes = lengths(reader.tokens)
    order = np.argsort(sizes, kind="stable")
    middle = np.sort(order[max(0, len(order) // 2 - batch // 2) :][:batch])  # documents of middling length stand for all
    tokens_per_second = outcome.documents_per_second * float(sizes.mean())
    per_token = count_operations(network, step, middle) / max(1, int(sizes[middle].sum()))
    return Throughput(
        documents_per_second=outcome.documents_per_second,
        tokens_per_second=tokens_per_second,
        padding_share=outcome.padding,
        share_of_peak=tokens_per_second * per_token / (matrix_rate(hardware) * hardware.processes.count),
        peak_memory_gb=torch.cuda.max_memory_allocated(hardware.device) / 1e9 if hardware.device.type == "cuda" else peak_memory_gb(),
        cache_seconds=reader.filled_in if isinstance(reader, CachedReader) else None,
        epoch_seconds=outcome.epoch_seconds,
    )


def count_operations(network: Network, step: BatchLoss, rows: Rows) -> int:
    """Operations of the matrix products in one micro-batch, forward and backward; gradients are thrown away."""
    with _Operations() as counted:
        loss, weight = step(rows, epoch=0, seed=0)
        if weight and loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
    network.zero_grad(set_to_none=True)
    return int(counted.total)


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts as `torch.utils.flop_counter.FlopCounterMode` does, which cannot follow modules that are run without gradient too."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        count = flop_registry.get(func._overloadpacket)
        self.total += int(count(*args, **(kwargs or {}), out_val=result)) if count else 0
        return result


def matrix_rate(hardware: Hardware) -> float:
    """Operations a second of one large matrix product in the number format of training, the best of three."""
    side = SIDE.get(hardware.device.type, SIDE["cpu"])
    left, right = (torch.randn(side, side, dtype=hardware.dtype, device=hardware.device) for _ in range(2))
    times = []
    for _ in range(4):  # the first warms up
        began = time.perf_counter()
        product = left @ right
        float(product[0, 0])  # waits for the device
        times.append(time.perf_counter() - began)
    return 2 * side**3 / min(times[1:])
