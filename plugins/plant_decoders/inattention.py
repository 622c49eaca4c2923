"""Softmax over real tokens, and inattention: all but the k largest scores of a row are left out before it."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Literally = Literal["mask", "zero"]


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where the mask is true, in fp32 or better; zero elsewhere and in rows that are all masked."""
    exact = _fill(scores, mask)
    return torch.softmax(exact, -1) * mask.to(exact.dtype)


def masked_log_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Its logarithm; −inf where the mask is false."""
    return torch.log_softmax(_fill(scores, mask), -1).masked_fill(~mask, -torch.inf)


def _fill(scores: Tensor, mask: Tensor) -> Tensor:
    exact = scores.to(torch.promote_types(scores.dtype, torch.float32))
    return exact.masked_fill(~mask, torch.finfo(exact.dtype).min)  # not −inf: a row that is all −inf would be NaN


def k_largest(scores: Tensor, mask: Tensor, k: int | None) -> Tensor:
    """Which real positions hold one of the k largest scores of their row; equal to the k-th: all of them. Without k: all real ones.

    Args:
        scores: [..., T].
        mask: true for real positions, of a shape that broadcasts to that of the scores.
        k: positions of a row.
    """
    there = mask.expand(scores.shape)
    if k is None or k >= scores.shape[-1]:
        return there
    filled = scores.detach().masked_fill(~there, -torch.inf)
    return (filled >= filled.topk(k, dim=-1).values[..., -1:]) & there


def inattention(scores: Tensor, mask: Tensor, k: int | None, dropped: Literally) -> Tensor:
    """Attention [..., T] whose scores are those of the k largest positions.

    Args:
        scores: [..., T].
        mask: true for real positions.
        k: positions that are attended to (None: all).
        dropped: `mask`: the others get no attention, their score is −inf. `zero`: their score becomes 0, as the paper's words and the
            authors' code have it, and they keep a weight of e⁰.

    Source: PLANT v1, inattention.
    """
    kept = k_largest(scores, mask, k)
    if dropped == "mask":
        return masked_softmax(scores, kept)
    return masked_softmax(scores.masked_fill(~kept, 0.0), mask.expand(scores.shape))
