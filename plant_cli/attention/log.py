"""The logarithm of label attention, averaged over heads: what stage 1 ranks words by."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def log_attention(queries: Tensor, keys: Tensor, mask: Tensor, *, heads: int) -> Tensor:
    """Log of the attention of each label on each position, averaged over heads.

    Computed from log-softmax and log-sum-exp in fp32 or better, so that a position with next to no attention keeps a finite
    logarithm and a gradient.

    Args:
        queries: q [l, H], heads side by side.
        keys: k [B, T, H].
        mask: bool [B, T], true for real positions.
        heads: number of heads, a divisor of H.

    Returns:
        [B, l, T]; −inf where masked.
    """
    exact = torch.promote_types(queries.dtype, torch.float32)
    q = queries.reshape(len(queries), heads, -1).transpose(0, 1)
    k = keys.reshape(*keys.shape[:2], heads, -1).transpose(1, 2) * (q.shape[-1] ** -0.5)
    padding = ~mask[:, None, None, :]
    scores = torch.matmul(q, k.mT).to(exact).masked_fill(padding, torch.finfo(exact).min)
    mean = torch.logsumexp(torch.log_softmax(scores, dim=-1), dim=1) - math.log(heads)
    return mean.masked_fill(padding.squeeze(1), -math.inf)
