"""Adaptive average pooling as a matrix, so that pooling and projection fold into one vector."""

from __future__ import annotations

import torch
from torch import Tensor


def pooling_matrix(hidden: int, bins: int) -> Tensor:
    """The matrix [bins, hidden] in fp64 whose product with a vector is `AdaptiveAvgPool1d(bins)` of it.

    Bin i averages the dimensions from `floor(i·hidden/bins)` up to `ceil((i+1)·hidden/bins)`. Bins overlap where `bins` does not
    divide `hidden`.
    """
    bin_number = torch.arange(bins).unsqueeze(1)
    start = bin_number * hidden // bins
    end = -(-(bin_number + 1) * hidden // bins)
    dimension = torch.arange(hidden)
    return ((dimension >= start) & (dimension < end)).double() / (end - start)
