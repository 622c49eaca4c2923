"""What a computation does and holds: operations of its matrix products, and the bytes that it allocates at most."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from plant_cli.base.threads import in_one_thread

SILENT = "6"  # the highest level of torch's profiler, above the lines about itself that it writes to stderr


def count_operations(run: Callable[[], object], formulas: Mapping[Any, Callable[..., int]] | None = None) -> int:
    """Floating-point operations of all matrix products in a computation, recomputed ones included.

    Args:
        run: the computation. What torch has no formula for counts nothing: kernels of our own, its fused attention on processors.
        formulas: operations of further torch operators, each a function of the shapes of the arguments and of `out_shape`.
    """
    counter = FlopCounterMode(display=False, custom_mapping=dict(formulas or {}))
    counter.mod_tracker = _WholeComputation()  # type: ignore[assignment]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # torch's whole layers have no formula, their products have
    try:
        with counter, in_one_thread():
            run()
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return int(counter.get_total_flops())


class _WholeComputation(AbstractContextManager["_WholeComputation"]):
    """Stands in for torch's record of which module runs, which fails on modules that are called without gradients inside a step."""

    parents = frozenset({"Global"})

    def __exit__(self, *raised: object) -> None:
        """Nothing was recorded."""


def peak_allocated(run: Callable[[], object], device: torch.device) -> int:
    """Bytes of tensors that a computation holds at most, beside those that were there before.

    Args:
        run: the computation.
        device: whose memory is counted.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    os.environ.setdefault("KINETO_LOG_LEVEL", SILENT)
    with in_one_thread(), torch.autograd.profiler.profile(profile_memory=True, use_kineto=True) as profile:
        run()
    held = peak = 0
    for event in sorted(profile.function_events or (), key=lambda event: float(event.time_range.end)):
        freed = event.name == "[memory]"  # outside of any operation
        held += int(event.cpu_memory_usage if freed else event.self_cpu_memory_usage)
        peak = max(peak, held)
    return peak
