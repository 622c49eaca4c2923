"""Which devices run the numerics as kernels of their own; every kernel has a form in plain PyTorch that gives the same."""

from __future__ import annotations

from importlib.util import find_spec


def uses_triton(device: str) -> bool:
    """Whether tensors of a device type ("cuda", "cpu") are left to Triton's kernels: on a graphics card, where Triton is installed."""
    return device == "cuda" and find_spec("triton") is not None
