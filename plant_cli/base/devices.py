"""Which device a name stands for on this machine."""

from __future__ import annotations

import torch

from plant_cli.api.errors import ResourceError


def find_device(name: str) -> torch.device:
    """The device of a machine section's `device`; `auto` is the first of CUDA, MPS and CPU that is there.

    Raises:
        ResourceError: the named device is not there.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    kind, _, number = name.partition(":")
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if kind in there and int(number or 0) < there[kind]:
        return torch.device(name)
    raise ResourceError(
        f"there is no device '{name}' here",
        where="machine.device",
        expected="one of " + ", ".join(k for k, count in there.items() if count),
        todo="leave it at --device auto, or see `plant doctor` for what torch finds",
    )
