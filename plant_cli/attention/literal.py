"""Label attention exactly as the paper writes it, step by step: the reference of the fused form, not for training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, kw_only=True)
class LiteralHead:
    """The weights of the network after the backbone.

    Args:
        queries: label queries E [L, H].
        attention: the multi-head attention, batch first, with all its biases.
        boost_scale: B_m [L, H].
        boost_shift: B_a [L, H].
        projection: W_c [p], shared by all labels.
        bias: per label [L].
    """

    queries: Tensor
    attention: nn.MultiheadAttention
    boost_scale: Tensor
    boost_shift: Tensor
    projection: Tensor
    bias: Tensor


def literal_logits(head: LiteralHead, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [B, L] and attention averaged over heads [B, L, T], through full [B, L, H] arrays.

    Args:
        head: the weights.
        hidden: hidden states [B, T, H].
        mask: bool [B, T], true for positions that count; at least one in each document.
    """
    queries = head.queries.expand(len(hidden), -1, -1)
    attended, weights = head.attention(queries, hidden, hidden, key_padding_mask=~mask, need_weights=True)
    boosted = head.boost_shift + attended * head.boost_scale
    pooled = functional.adaptive_avg_pool1d(boosted, len(head.projection))
    return torch.matmul(pooled, head.projection) + head.bias, weights
