"""Which device and number format a run uses, decided once from the machine section."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from plant_cli.api import MachineSection, ResourceError


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """A device and the number format of its matrix products."""

    device: torch.device
    dtype: torch.dtype

    def autocast(self) -> AbstractContextManager[object]:
        """Run matrix products in `dtype`; softmax and losses stay in fp32."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.dtype == torch.bfloat16)


def cpu_has_bf16() -> bool:
    """Whether this processor multiplies bf16 matrices in hardware."""
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def choose_hardware(machine: MachineSection) -> Hardware:
    """The device and precision that a machine section means here.

    Raises:
        ResourceError: the named device is not there.
    """
    torch.set_num_threads(machine.threads or len(os.sched_getaffinity(0)))
    name = machine.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    _require(name)
    device = torch.device(name)
    if machine.precision != "auto":
        return Hardware(device=device, dtype=torch.bfloat16 if machine.precision == "bf16" else torch.float32)
    fast = torch.cuda.is_bf16_supported() if device.type == "cuda" else device.type == "cpu" and cpu_has_bf16()
    return Hardware(device=device, dtype=torch.bfloat16 if fast else torch.float32)


def _require(name: str) -> None:
    kind, _, number = name.partition(":")
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if kind in there and int(number or 0) < there[kind]:
        return
    raise ResourceError(
        f"there is no device '{name}' here",
        where="machine.device",
        expected="one of " + ", ".join(k for k, count in there.items() if count),
        todo="leave it at --device auto, or see `plant doctor` for what torch finds",
    )
