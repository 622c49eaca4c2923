"""What a computation does and holds: operations of its matrix products, and the bytes that it allocates at most."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, shape_wrapper

SILENT = "6"  # the highest level of torch's profiler, above the lines about itself that it writes to stderr


def count_operations(run: Callable[[], object], formulas: Mapping[Any, Callable[..., int]] | None = None) -> int:
    """Floating-point operations of all matrix products in a computation, recomputed ones included.

    Args:
        run: the computation. What torch has no formula for counts nothing: kernels of our own, its fused attention on processors.
        formulas: operations of further torch operators, each a function of the shapes of the arguments and of `out_shape`.
    """
    own = {operator: shape_wrapper(formula) for operator, formula in (formulas or {}).items()}  # type: ignore[no-untyped-call]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # torch's whole layers have no formula, their products have
    try:
        with _Operations({**flop_registry, **own}) as counted:
            run()
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return int(counted.total)


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts by the formulas of `torch.utils.flop_counter.FlopCounterMode`, which itself fails on modules called without gradients."""

    def __init__(self, formulas: Mapping[Any, Callable[..., int]]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.formulas = formulas
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        formula = self.formulas.get(func._overloadpacket)
        self.total += int(formula(*args, **(kwargs or {}), out_val=result)) if formula else 0
        return result


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
    with torch.autograd.profiler.profile(profile_memory=True, use_kineto=True) as profile:
        run()
    held = peak = 0
    for event in sorted(profile.function_events or (), key=lambda event: float(event.time_range.end)):
        freed = event.name == "[memory]"  # outside of any operation
        held += int(event.cpu_memory_usage if freed else event.self_cpu_memory_usage)
        peak = max(peak, held)
    return peak
