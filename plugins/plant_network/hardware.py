"""The device and number format of a run on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import torch

from plant_cli.api import MachineSection
from plant_cli.api.errors import ComponentError, ResourceError
from plant_cli.runs.machine import available_memory, bound_heaps, resident_memory
from plant_cli.runs.processes import default_threads, local_rank, process_count, was_launched
from plant_network.compute import in_one_thread
from plant_network.group import SINGLE_PROCESS, Processes, join_processes


def find_device(name: str) -> torch.device:
    """The device of a machine section's `device`; `ResourceError` if this machine does not have it.

    `auto` is CUDA where there is one, else the CPU. MPS is used only where it is named: it has no
    float64, which stage 1 counts in.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = name.partition(":")
    there = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    if kind in there and int(number or 0) < there[kind]:
        return torch.device(name)
    raise ResourceError(
        f"there is no device '{name}' here",
        where="machine.device",
        expected="one of " + ", ".join(k for k, count in there.items() if count),
        todo="leave it at --device auto, or see `plant doctor` for what torch finds",
    )


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A device, the number format of its matrix products, and the processes that share the work."""

    device: torch.device
    dtype: torch.dtype
    processes: Processes = SINGLE_PROCESS

    def autocast(self) -> AbstractContextManager[object]:
        """Run matrix products in `dtype`; softmax and losses stay in fp32."""
        return torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.dtype == torch.bfloat16
        )


def cpu_has_bf16() -> bool:
    """Whether this processor multiplies bf16 matrices in hardware."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def choose_hardware(machine: MachineSection) -> Hardware:
    """The device and precision of a machine section on this machine.

    From here on, numbers too small for full precision (below 1e-38) count as zero: sharp attention
    is full of them, and a step took 4 to 15 times as long.
    """
    torch.set_flush_denormal(
        True
    )  # before the first product: threads take it over from the one that starts them
    torch.set_num_threads(machine.threads or default_threads())
    bound_heaps(torch.get_num_threads())
    device = find_device(machine.device)
    if device.type == "cuda" and device.index is None and process_count() > 1:
        device = find_device(f"cuda:{local_rank()}")
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)
    return Hardware(
        device=device, dtype=find_dtype(device, machine.precision), processes=join_processes()
    )


def find_dtype(device: torch.device, precision: str) -> torch.dtype:
    """The number format of products on a device, for a machine section's `precision`; auto: bf16
    where the device has it.

    A graphics card without bf16 computes in fp32 whatever is asked for: it would only imitate bf16,
    slowly.
    """
    fast = precision == "bf16" or (precision == "auto" and device.type == "cpu" and cpu_has_bf16())
    if device.type == "cuda":
        fast = precision != "fp32" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.bfloat16 if fast else torch.float32


def free_memory(device: torch.device) -> int:
    """Bytes that are free for a computation; on a processor, what this process holds is free
    for one that comes after it.
    """
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(
            device
        )  # of what this process has taken
        return int(torch.cuda.mem_get_info(device)[0]) + unused
    return available_memory() + resident_memory()


# the highest level of torch's profiler, above the lines about itself that it writes to stderr
SILENT = "6"


def peak_allocated(run: Callable[[], object], device: torch.device) -> int:
    """Bytes of tensors that a computation holds at most, beside those that were there before."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        run()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    os.environ.setdefault("KINETO_LOG_LEVEL", SILENT)
    with (
        in_one_thread(),
        torch.autograd.profiler.profile(profile_memory=True, use_kineto=True) as profile,
    ):
        run()
    held = peak = 0
    for event in sorted(
        profile.function_events or (), key=lambda event: float(event.time_range.end)
    ):
        freed = event.name == "[memory]"  # outside of any operation
        held += int(event.cpu_memory_usage if freed else event.self_cpu_memory_usage)
        peak = max(peak, held)
    return peak


def free_unused(device: torch.device) -> None:
    """Give back what torch keeps of a card's memory without using it."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def sharing_mode() -> Literal["whole", "fsdp", "deepspeed"]:
    """What `distributed_type` asks for: a whole network in every process, a sharded one (FSDP),
    or DeepSpeed's engine.
    """
    if was_launched() and os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
        if find_spec("deepspeed") is None:
            raise ComponentError(
                "the launch configuration asks for DeepSpeed, which is not installed",
                where="distributed_type: DEEPSPEED",
                expected="the package deepspeed in this environment",
                todo="pip install deepspeed, or distributed_type: FSDP, which needs no further "
                "package",
            )
        return "deepspeed"
    return (
        "fsdp"
        if process_count() > 1 and os.environ.get("ACCELERATE_USE_FSDP") == "true"
        else "whole"
    )
