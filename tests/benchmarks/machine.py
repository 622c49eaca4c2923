"""What the machine does at most: products of one large pair of matrices, bytes of one large
copy.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

import torch
from plant_network.throughput import MATRIX_SIDE

COPIED = {"cpu": 1 << 28, "cuda": 1 << 31}
"""Bytes that are read and then written."""


def matrix(options: argparse.Namespace) -> Callable[[], object]:
    """One product in the benchmark's type."""
    shape = (MATRIX_SIDE[options.device],) * 2
    left, right = (
        torch.randn(shape, dtype=getattr(torch, getattr(options, "dtype", "float32")))
        for _ in range(2)
    )
    return lambda: left @ right


def copy(options: argparse.Namespace) -> Callable[[], object]:
    """One copy."""
    source = torch.zeros(COPIED[options.device], dtype=torch.uint8)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


MACHINE = {"matrix": matrix, "copy": copy}


def rates(
    figures: Mapping[str, Mapping[str, float]], work: Mapping[str, float], device: str
) -> dict[str, float]:
    """What ours reached (`operations_per_second`, `bytes_per_second`), and as a share of the
    machine's rates (`operations_share`, …).

    Args:
        figures: of `ours`, `matrix` and `copy`, each with `seconds`.
        work: `operations` and `bytes` of ours.
        device: where they ran.
    """
    most = {
        "operations": 2 * MATRIX_SIDE[device] ** 3 / figures["matrix"]["seconds"],
        "bytes": 2 * COPIED[device] / figures["copy"]["seconds"],
    }
    reached = {name: amount / figures["ours"]["seconds"] for name, amount in work.items()}
    shares = {f"{name}_share": rate / most[name] for name, rate in reached.items()}
    return {**{f"{name}_per_second": rate for name, rate in reached.items()}, **shares}
