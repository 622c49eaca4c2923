"""Which device a name stands for on this machine."""

from __future__ import annotations

import re

import torch

from plant_cli.api.errors import ResourceError

_NAME = re.compile(r"(cpu|cuda|mps)(?::(\d{1,4}))?")


def find_device(name: str) -> torch.device:
    """The device of a machine section's `device`; `auto` is CUDA where there is one, else the CPU.

    MPS is used only where it is named: it has no float64, which stage 1 counts in.

    Raises:
        ResourceError: the named device is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    fits = _NAME.fullmatch(name)
    kind, number = fits.groups() if fits else ("", None)
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if kind in there and int(number or 0) < there[kind]:
        return torch.device(name)
    raise ResourceError(
        f"there is no device '{name}' here",
        where="machine.device",
        expected="one of " + ", ".join(k for k, count in there.items() if count),
        todo="leave it at --device auto, or see `plant doctor` for what torch finds",
    )
