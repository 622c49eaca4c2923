"""The sums of the stage 1 loss as one Triton kernel: a program for each list, which holds a block
of its pairs at a time.

The first walk over the pairs finds ranks by counting the items before each, by score for its
discount and by relevance for the ideal order. The second sums loss and lambdas of each item over
all others, so that no two programs write to one address. Memory grows with the items: one discount
is kept for each between the walks.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from plant_network.ranked_lists import gains
from torch import Tensor

LAUNCH = {"BLOCK": 64, "num_warps": 8}
"""Items on each side of a block of pairs: as many as the compiler still keeps in registers."""


def pair_sums(
    scores: Tensor, relevance: Tensor, offsets: Tensor, sigma: float, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The sums of `lambda_loss`, before division by ln 2: loss and ideal DCG of each list,
    gradient of each item without the factor σ.
    """
    losses, ideals = scores.new_empty(2, len(offsets) - 1)
    discounts, gradient = torch.empty_like(scores), torch.empty_like(scores)
    inputs = scores, relevance, gains(relevance), offsets, discounts
    with torch.cuda.device_of(scores):  # type: ignore[no-untyped-call]  # Triton launches on the current card
        _pair_sums[(len(losses),)](*inputs, losses, ideals, gradient, k, SIGMA=sigma, **LAUNCH)
    return losses, ideals, gradient


@triton.jit
def _discount(rank: tl.tensor, k: int, kind: tl.constexpr) -> tl.tensor:
    """1 / log2(2 + rank) for ranks from 0, and 0 from rank k on."""
    return tl.where(rank < k, 1.0 / tl.log2(rank.to(kind) + 2.0), 0.0)


@triton.jit
def _best_order(
    scores: tl.tensor,
    relevance: tl.tensor,
    gains: tl.tensor,
    discounts: tl.tensor,
    start: tl.tensor,
    end: tl.tensor,
    k: int,
    BLOCK: tl.constexpr,
) -> tl.tensor:
    """The ideal DCG of one list; writes the discount of each item at its rank by score. Ties by
    position.
    """
    kind: tl.constexpr = scores.dtype.element_ty
    ideal = tl.zeros([BLOCK], kind)
    for first in range(start, end, BLOCK):
        item = first + tl.arange(0, BLOCK)
        real = item < end
        score = tl.load(scores + item, mask=real, other=0.0)
        worth = tl.load(relevance + item, mask=real, other=0.0)
        above = tl.zeros([BLOCK], tl.int32)
        better = tl.zeros([BLOCK], tl.int32)
        for second in range(start, end, BLOCK):
            other = second + tl.arange(0, BLOCK)
            earlier = other[None, :] < item[:, None]
            s = tl.load(scores + other, mask=other < end, other=float("-inf"))[None, :]
            r = tl.load(relevance + other, mask=other < end, other=float("-inf"))[None, :]
            above += tl.sum(
                ((s > score[:, None]) | ((s == score[:, None]) & earlier)).to(tl.int32), 1
            )
            better += tl.sum(
                ((r > worth[:, None]) | ((r == worth[:, None]) & earlier)).to(tl.int32), 1
            )
        tl.store(discounts + item, _discount(above, k, kind), mask=real)
        ideal += tl.load(gains + item, mask=real, other=0.0) * _discount(better, k, kind)
    return tl.sum(ideal, 0)


@triton.jit
def _pair_sums(
    scores: tl.tensor,
    relevance: tl.tensor,
    gains: tl.tensor,
    offsets: tl.tensor,
    discounts: tl.tensor,
    losses: tl.tensor,
    ideals: tl.tensor,
    gradient: tl.tensor,
    k: int,
    SIGMA: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Loss, ideal DCG and lambdas of one list."""
    number = tl.program_id(0)
    start, end = tl.load(offsets + number), tl.load(offsets + number + 1)
    ideal = _best_order(scores, relevance, gains, discounts, start, end, k, BLOCK)
    share = 1.0 / tl.where(ideal > 0, ideal, 1.0)
    tl.debug_barrier()  # discounts are not read by the threads that wrote them
    cost = tl.zeros([BLOCK], scores.dtype.element_ty)
    for first in range(start, end, BLOCK):
        item = first + tl.arange(0, BLOCK)
        real = item < end
        score = tl.load(scores + item, mask=real, other=0.0)[:, None]
        gain = tl.load(gains + item, mask=real, other=0.0)[:, None]
        discount = tl.load(discounts + item, mask=real, other=0.0)[:, None]
        pulls = tl.zeros([BLOCK], scores.dtype.element_ty)
        for second in range(start, end, BLOCK):
            other = second + tl.arange(0, BLOCK)
            there = (other < end)[None, :] & real[:, None]
            g = tl.load(gains + other, mask=other < end, other=0.0)[None, :]
            d = tl.load(discounts + other, mask=other < end, other=0.0)[None, :]
            s = tl.load(scores + other, mask=other < end, other=0.0)[None, :]
            weight = tl.where(there, tl.abs((gain - g) * (discount - d)), 0.0)
            leads = gain > g
            behind = SIGMA * tl.where(
                leads, s - score, score - s
            )  # how far the item that should lead is behind
            small = tl.exp(-tl.abs(behind))
            pull = weight * tl.where(behind > 0, 1.0, small) / (1.0 + small)
            pulls += tl.sum(tl.where(leads, -pull, pull), 1)
            cost += tl.sum(
                tl.where(leads, weight * (tl.maximum(behind, 0.0) + tl.log(1.0 + small)), 0.0), 1
            )
        tl.store(gradient + item, pulls * share, mask=real)
    tl.store(ideals + number, ideal)
    tl.store(losses + number, tl.sum(cost, 0) * share)
