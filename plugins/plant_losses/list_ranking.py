"""Losses of learning to rank over ragged lists: LambdaRank, smooth nDCG, ListNet.

Throughout, scores and relevance (≥ 0) are [n]; list i is `offsets[i]:offsets[i+1]` of them, with
offsets int64 [lists + 1].
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from plant_network.compute import uses_triton
from plant_network.ranked_lists import (
    HELD_PAIRS,
    Chunk,
    chunks,
    dcg,
    discounts,
    gains,
    list_numbers,
    list_positions,
    order_within,
    ranks,
    sum_lists,
)
from torch import Tensor
from torch.utils.checkpoint import checkpoint

RANKED_PAIRS = {"cpu": 1 << 18, "cuda": 1 << 26}  # pairs held at a time, by LambdaRank
LEADERS_PER_BLOCK = (
    16  # leading items taken at a time: the fewer, the fewer pairs are visited that cannot count
)


def lambda_loss(
    scores: Tensor,
    relevance: Tensor,
    offsets: Tensor,
    *,
    sigma: float = 1.0,
    k: int = 1000,
    pairs: int | None = None,
) -> Tensor:
    """Mean of the loss over lists that have two items or more and an item of relevance; 0 if there
    is none.

    Args:
        sigma: steepness of the pairwise logistic.
        k: ranks that count in nDCG (ranks by score, ties by position).
        pairs: pairs held at a time (default: `RANKED_PAIRS` of the device); ignored by the Triton
            kernel.

    Source: PLANT v2, equation 2; LambdaRank (Burges 2010) in the form of LambdaLoss (Wang et al.
    2018).
    """
    budget = pairs or RANKED_PAIRS.get(scores.device.type, RANKED_PAIRS["cuda"])
    loss: Tensor = _LambdaLoss.apply(scores, relevance, offsets, sigma, k, budget)  # type: ignore[no-untyped-call]
    return loss


class _LambdaLoss(torch.autograd.Function):
    """Sums loss and gradient together; keeps the gradient [n] for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        relevance: Tensor,
        offsets: Tensor,
        sigma: float,
        k: int,
        pairs: int,
    ) -> Tensor:
        exact = torch.promote_types(scores.dtype, torch.float32)
        s, r = scores.to(exact), relevance.to(exact)
        if uses_triton(scores.device.type):
            from plant_losses.ranking_kernels import pair_sums

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


def _pair_sums(
    scores: Tensor, relevance: Tensor, offsets: Tensor, sigma: float, k: int, pairs: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The result of `ranking_kernels.pair_sums`, by chunks of pairs."""
    order = order_within(relevance, offsets)
    r = relevance[order]
    ideals = dcg(r, offsets, k)
    items = torch.stack(
        [scores[order], gains(r), discounts(ranks(scores, offsets), k, r.dtype)[order]]
    )
    leaders = sum_lists((r > 0).long(), offsets) * (offsets.diff() > 1)
    losses, in_order = torch.zeros_like(ideals), torch.zeros_like(r)
    for chunk in chunks(offsets, leaders, pairs, LEADERS_PER_BLOCK):
        list_loss, item_gradient = _chunk_lambdas(items[:, chunk.items], chunk, sigma)
        weight = 1 / ideals[chunk.lists]
        losses[chunk.lists] = list_loss * weight
        in_order[chunk.items[chunk.valid]] = (item_gradient * weight.unsqueeze(1))[chunk.valid]
    return losses, ideals, torch.empty_like(in_order).scatter_(0, order, in_order)


def _chunk_lambdas(items: Tensor, chunk: Chunk, sigma: float) -> tuple[Tensor, Tensor]:
    """Loss of each list [c] and gradient of each item [c, m], both before division by the ideal
    DCG, by ln 2 and (gradient) times σ.
    """
    scores, gain, discount = items
    # A pair counts where the leader's gain is greater. Padding beyond a list's end has no gain as
    # leader and infinite gain as follower.
    leading, following = gain.masked_fill(~chunk.valid, 0), gain.masked_fill(~chunk.valid, math.inf)
    loss, gradient, zero = (
        scores.new_zeros(len(scores)),
        torch.zeros_like(scores),
        scores.new_zeros(()),
    )
    room = scores.new_empty(
        3, min(LEADERS_PER_BLOCK, chunk.leaders) * scores.numel()
    )  # for every block again: fresh memory costs more than sums
    for start in range(0, chunk.leaders, LEADERS_PER_BLOCK):
        lead, rest = slice(start, min(start + LEADERS_PER_BLOCK, chunk.leaders)), slice(start, None)
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


def approx_ndcg_loss(
    scores: Tensor,
    relevance: Tensor,
    offsets: Tensor,
    *,
    temperature: float,
    gain: Literal["exponential", "linear"] = "exponential",
) -> Tensor:
    """Mean over lists of 1 − nDCG, with each rank replaced by 1 + Σ_j sigmoid((s_j − s_i) /
    temperature); all ranks count.

    An item's gain is 2^r − 1, or r itself where it is linear. Lists without relevance or with fewer
    than two items do not count.
    Source: Qin, Liu and Li 2010.
    """
    order = order_within(relevance, offsets)
    s, r = _exact(scores[order]), _exact(relevance[order])
    worth = gains(r) if gain == "exponential" else r
    ideal = sum_lists(worth * discounts(list_positions(offsets), len(r), r.dtype), offsets)
    counted = (offsets.diff() > 1) & (ideal > 0)
    leaders = sum_lists((r > 0).long(), offsets) * counted
    total = 0 * s.sum()
    for chunk in chunks(offsets, leaders, HELD_PAIRS, block=len(r)):
        total = total + checkpoint(
            _approx_ndcg, s, worth, ideal, chunk, temperature, use_reentrant=False
        )
    return (counted.sum() - total) / counted.sum().clamp(min=1)


def _approx_ndcg(
    scores: Tensor, gain: Tensor, ideal: Tensor, chunk: Chunk, temperature: float
) -> Tensor:
    """Sum of the approximate nDCG of the chunk's lists; a checkpoint, so that its pairs are not
    kept.
    """
    lead = chunk.items[:, : chunk.leaders]
    behind = (scores[chunk.items].unsqueeze(1) - scores[lead].unsqueeze(2)) / temperature
    rank = (
        torch.where(chunk.valid.unsqueeze(1), behind.sigmoid(), 0).sum(2) + 0.5
    )  # an item's 1/2 against itself completes its 1
    dcg = torch.where(chunk.valid[:, : chunk.leaders], gain[lead] / torch.log2(1 + rank), 0).sum(1)
    return (dcg / ideal[chunk.lists]).sum()


def listnet_loss(
    scores: Tensor, relevance: Tensor, offsets: Tensor, *, temperature: float
) -> Tensor:
    """Mean over lists of the cross-entropy of softmax(s) under softmax(r / temperature); with log
    attention as s, of the attention.

    Lists with fewer than two items do not count. Source: Cao et al. 2007, top-one probabilities.
    """
    wanted = _log_softmax(_exact(relevance) / temperature, offsets).exp()
    losses = -sum_lists(wanted * _log_softmax(_exact(scores), offsets), offsets)
    return _mean(losses, offsets.diff() > 1)


def standardised_mse(scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
    """Mean over lists of the mean squared difference of s − mean(s) and (r − mean(r)) / std(r).

    Only differences of scores mean something, so both sides are centred; a word one standard
    deviation above the list's mean relevance is to score 1 above its mean score (log attention: e
    times the attention). Lists whose relevance does not vary do not count.
    """
    lengths, lists = offsets.diff().clamp(min=1), list_numbers(offsets)
    s, r = (x - (sum_lists(x, offsets) / lengths)[lists] for x in map(_exact, (scores, relevance)))
    spread = (sum_lists(r.square(), offsets) / lengths).sqrt()
    counted = spread > 1e-6
    errors = sum_lists((s - r / spread.clamp(min=1e-6)[lists]).square(), offsets) / lengths
    return _mean(errors, counted)


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _mean(losses: Tensor, counted: Tensor) -> Tensor:
    return (losses * counted).sum() / counted.sum().clamp(min=1)


def _log_softmax(x: Tensor, offsets: Tensor) -> Tensor:
    lists = list_numbers(offsets)
    highest = x.new_full((len(offsets) - 1,), -math.inf).scatter_reduce(
        0, lists, x.detach(), "amax"
    )
    shifted = x - highest[lists]
    return shifted - sum_lists(shifted.exp(), offsets).log()[lists]
