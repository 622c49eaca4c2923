"""Other stage 1 losses over ragged lists: approximate nDCG, ListNet and squared error."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from plant_cli.ranking.ndcg import discounts, gains
from plant_cli.ranking.ragged import Chunk, chunks, list_numbers, list_positions, order_within, sum_lists

PAIRS = 1 << 20
"""Pairs held at a time."""


def approx_ndcg_loss(
    scores: Tensor, relevance: Tensor, offsets: Tensor, *, temperature: float, gain: Literal["exponential", "linear"] = "exponential"
) -> Tensor:
    """Mean over lists of 1 − nDCG, with each rank replaced by 1 + Σ_j sigmoid((s_j − s_i) / temperature); all ranks count.

    An item's gain is 2^r − 1, or r itself where it is linear. Lists without relevance or with fewer than two items do not count.
    Source: Qin, Liu and Li 2010.
    """
    order = order_within(relevance, offsets)
    s, r = _exact(scores[order]), _exact(relevance[order])
    worth = gains(r) if gain == "exponential" else r
    ideal = sum_lists(worth * discounts(list_positions(offsets), len(r), r.dtype), offsets)
    counted = (offsets.diff() > 1) & (ideal > 0)
    leaders = sum_lists((r > 0).long(), offsets) * counted
    total = 0 * s.sum()
    for chunk in chunks(offsets, leaders, PAIRS, block=len(r)):
        total = total + checkpoint(_approx_ndcg, s, worth, ideal, chunk, temperature, use_reentrant=False)
    return (counted.sum() - total) / counted.sum().clamp(min=1)


def _approx_ndcg(scores: Tensor, gain: Tensor, ideal: Tensor, chunk: Chunk, temperature: float) -> Tensor:
    """Sum of the approximate nDCG of the chunk's lists; a checkpoint, so that its pairs are not kept."""
    lead = chunk.items[:, : chunk.leaders]
    behind = (scores[chunk.items].unsqueeze(1) - scores[lead].unsqueeze(2)) / temperature
    rank = torch.where(chunk.valid.unsqueeze(1), behind.sigmoid(), 0).sum(2) + 0.5  # an item's 1/2 against itself completes its 1
    dcg = torch.where(chunk.valid[:, : chunk.leaders], gain[lead] / torch.log2(1 + rank), 0).sum(1)
    return (dcg / ideal[chunk.lists]).sum()


def listnet_loss(scores: Tensor, relevance: Tensor, offsets: Tensor, *, temperature: float) -> Tensor:
    """Mean over lists of the cross-entropy of softmax(s) under softmax(r / temperature); with log attention as s, of the attention.

    Lists with fewer than two items do not count. Source: Cao et al. 2007, top-one probabilities.
    """
    wanted = _log_softmax(_exact(relevance) / temperature, offsets).exp()
    losses = -sum_lists(wanted * _log_softmax(_exact(scores), offsets), offsets)
    return _mean(losses, offsets.diff() > 1)


def standardised_mse(scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
    """Mean over lists of the mean squared difference of s − mean(s) and (r − mean(r)) / std(r).

    Only differences of scores mean something, so both sides are centred; a word one standard deviation above the list's mean
    relevance is to score 1 above its mean score (log attention: e times the attention). Lists whose relevance does not vary do
    not count.
    """
    s, r = (_centred(_exact(x), offsets) for x in (scores, relevance))
    lengths, lists = offsets.diff().clamp(min=1), list_numbers(offsets)
    spread = (sum_lists(r.square(), offsets) / lengths).sqrt()
    counted = spread > 1e-6
    errors = sum_lists((s - r / spread.clamp(min=1e-6)[lists]).square(), offsets) / lengths
    return _mean(errors, counted)


def _exact(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _centred(x: Tensor, offsets: Tensor) -> Tensor:
    return x - (sum_lists(x, offsets) / offsets.diff().clamp(min=1))[list_numbers(offsets)]


def _mean(losses: Tensor, counted: Tensor) -> Tensor:
    return (losses * counted).sum() / counted.sum().clamp(min=1)


def _log_softmax(x: Tensor, offsets: Tensor) -> Tensor:
    lists = list_numbers(offsets)
    highest = x.new_full((len(offsets) - 1,), -math.inf).scatter_reduce(0, lists, x.detach(), "amax")
    shifted = x - highest[lists]
    return shifted - sum_lists(shifted.exp(), offsets).log()[lists]
