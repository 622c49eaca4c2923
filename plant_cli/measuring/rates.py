"""How many operations a second a device does in one large matrix product: what every other speed is compared with."""

from __future__ import annotations

import torch

from plant_cli.measuring.clock import time_fastest

SIDE = {"cpu": 1024, "cuda": 8192}
"""Rows and columns of the matrices by type of device: a product takes under a tenth of a second."""


def matrix_side(device: torch.device) -> int:
    """Rows and columns of the matrices that are multiplied on a device."""
    return SIDE.get(device.type, SIDE["cpu"])


def matrix_rate(device: torch.device, dtype: torch.dtype, repeats: int = 3) -> float:
    """Floating-point operations a second of one large matrix product, the fastest of some.

    Args:
        device: where it runs.
        dtype: type of both matrices.
        repeats: how many products are timed.
    """
    side = matrix_side(device)
    left, right = (torch.randn(side, side, dtype=dtype, device=device) for _ in range(2))
    return 2 * side**3 / time_fastest(lambda: left @ right, device, repeats)
