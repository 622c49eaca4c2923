"""How fast this machine is: the rate of its matrix products."""

from __future__ import annotations

import time

import torch

from plant_cli.model.hardware import Hardware

SIZE = {"cpu": 1024, "cuda": 8192}
REPEATS = 5
REACHED = 0.35
"""Share of that rate that whole steps of training reach; a rule of thumb, which a probe replaces by measurement."""


def matrix_rate(hardware: Hardware) -> float:
    """Floating-point operations a second of matrix products in the run's number format: the best of a few."""
    size = SIZE.get(hardware.device.type, 4096)
    left = torch.ones(size, size, device=hardware.device, dtype=hardware.dtype)
    best = float("inf")
    for _ in range(REPEATS):
        started = time.perf_counter()
        (left @ left)[0, 0].item()  # reading a value waits for the device
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best
