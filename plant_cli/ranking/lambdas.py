"""The stage 1 loss: pairs weighted by what swapping them changes in nDCG@k, loss and gradient in one pass over each pair.

    loss of a list = Σ over pairs with r_j > r_h of |ΔnDCG@k|_jh · log2(1 + exp(−σ (s_j − s_h)))

The change of nDCG is a constant to the gradient, so the gradient (the lambdas) is known in closed form and is summed beside the
loss: nothing of size pairs is kept, and memory grows with the items. Items are put in order of relevance first, so that an item
meets only those behind it, and items of no relevance never lead a pair. On a GPU a Triton kernel does the same.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from plant_cli.base.kernels import uses_triton
from plant_cli.ranking.ndcg import dcg, discounts, gains
from plant_cli.ranking.ragged import Chunk, chunks, order_within, ranks, sum_lists

PAIRS = {"cpu": 1 << 18, "cuda": 1 << 26}
"""Pairs held at a time."""

BLOCK = 16
"""Leading items taken at a time: the fewer, the fewer pairs are visited that cannot count."""


def lambda_loss(
    scores: Tensor, relevance: Tensor, offsets: Tensor, *, sigma: float = 1.0, k: int = 1000, pairs: int | None = None
) -> Tensor:
    """Mean of the loss over lists that have two items or more and an item of relevance; 0 if there is none.

    Args:
        scores: s [n], differentiable.
        relevance: r [n], ≥ 0, without gradient.
        offsets: list boundaries [lists + 1], int64: list i is `offsets[i]:offsets[i+1]`.
        sigma: steepness of the pairwise logistic.
        k: ranks that count in nDCG (ranks by score, ties by position).
        pairs: pairs held at a time (default: `PAIRS` of the device); ignored by the Triton kernel.

    Source: PLANT v2, equation 2; LambdaRank (Burges 2010) in the form of LambdaLoss (Wang et al. 2018).
    """
    budget = pairs or PAIRS.get(scores.device.type, PAIRS["cuda"])
    loss: Tensor = _LambdaLoss.apply(scores, relevance, offsets, sigma, k, budget)  # type: ignore[no-untyped-call]
    return loss


class _LambdaLoss(torch.autograd.Function):
    """Sums loss and gradient together; keeps the gradient [n] for the backward pass."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, relevance: Tensor, offsets: Tensor, sigma: float, k: int, pairs: int) -> Tensor:
        exact = torch.promote_types(scores.dtype, torch.float32)
        s, r = scores.to(exact), relevance.to(exact)
        if uses_triton(scores.device.type):
            from plant_cli.ranking.kernels import pair_sums

            losses, ideals, gradient = pair_sums(s, r, offsets, sigma, k)
        else:
            losses, ideals, gradient = _pair_sums(s, r, offsets, sigma, k, pairs)
        counted = (offsets.diff() > 1) & (ideals > 0)
        share = 1 / (math.log(2) * counted.sum().clamp(min=1).to(exact))
        ctx.save_for_backward((gradient * sigma * share).to(scores.dtype))
        return losses.sum() * share

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        return upstream * ctx.saved_tensors[0], None, None, None, None, None


def _pair_sums(scores: Tensor, relevance: Tensor, offsets: Tensor, sigma: float, k: int, pairs: int) -> tuple[Tensor, Tensor, Tensor]:
    """What `kernels.pair_sums` gives, by chunks of pairs."""
    order = order_within(relevance, offsets)
    r = relevance[order]
    ideals = dcg(r, offsets, k)
    items = torch.stack([scores[order], gains(r), discounts(ranks(scores, offsets), k, r.dtype)[order]])
    leaders = sum_lists((r > 0).long(), offsets) * (offsets.diff() > 1)
    losses, in_order = torch.zeros_like(ideals), torch.zeros_like(r)
    for chunk in chunks(offsets, leaders, pairs, BLOCK):
        list_loss, item_gradient = _chunk_lambdas(items[:, chunk.items], chunk, sigma)
        weight = 1 / ideals[chunk.lists]
        losses[chunk.lists] = list_loss * weight
        in_order[chunk.items[chunk.valid]] = (item_gradient * weight.unsqueeze(1))[chunk.valid]
    return losses, ideals, torch.empty_like(in_order).scatter_(0, order, in_order)


def _chunk_lambdas(items: Tensor, chunk: Chunk, sigma: float) -> tuple[Tensor, Tensor]:
    """Loss of each list [c] and gradient of each item [c, m], both before division by the ideal DCG, by ln 2 and (gradient) times σ."""
    scores, gain, discount = items
    # A pair counts where the leader's gain is greater. Padding beyond a list's end has no gain as leader and infinite gain as follower.
    leading, following = gain.masked_fill(~chunk.valid, 0), gain.masked_fill(~chunk.valid, math.inf)
    loss, gradient, zero = scores.new_zeros(len(scores)), torch.zeros_like(scores), scores.new_zeros(())
    room = scores.new_empty(3, min(BLOCK, chunk.leaders) * scores.numel())  # for every block again: fresh memory costs more than sums
    for start in range(0, chunk.leaders, BLOCK):
        lead, rest = slice(start, min(start + BLOCK, chunk.leaders)), slice(start, None)
        shape = len(scores), lead.stop - start, scores.shape[1] - start
        weight, behind, cost = (x[: math.prod(shape)].view(shape) for x in room)
        torch.sub(leading[:, lead, None], following[:, None, rest], out=weight).clamp_(min=0)
        weight.mul_(torch.sub(discount[:, lead, None], discount[:, None, rest], out=behind).abs_())
        torch.sub(scores[:, None, rest], scores[:, lead, None], out=behind).mul_(sigma)
        loss += torch.logaddexp(behind, zero, out=cost).mul_(weight).sum((1, 2))
        pull = behind.sigmoid_().mul_(weight)
        gradient[:, rest] += pull.sum(1)
        gradient[:, lead] -= pull.sum(2)
    return loss, gradient
