"""nDCG@k of ragged lists: gain 2^r − 1, discount 1 / log2(1 + rank), cut at k (Järvelin and Kekäläinen 2002, as Burges 2005 uses it)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from plant_cli.ranking.ragged import list_numbers, ranks, sum_lists


def gains(relevance: Tensor) -> Tensor:
    """2^r − 1, precise near 0."""
    return torch.expm1(relevance * math.log(2))


def discounts(rank: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """1 / log2(2 + rank) for ranks from 0, and 0 from rank k on."""
    return (1 / torch.log2(rank.to(dtype) + 2)).masked_fill_(rank >= k, 0)


def ideal_dcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """DCG@k of the best order of each list [lists]."""
    return _dcg(relevance, relevance, offsets, k)


def ndcg(scores: Tensor, relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """nDCG@k of each list [lists] in the order of its scores; NaN where no item has relevance.

    Args:
        scores: [n]; ties are ordered by position.
        relevance: [n], ≥ 0.
        offsets: list boundaries [lists + 1].
        k: ranks that count.
    """
    return _dcg(scores, relevance, offsets, k) / ideal_dcg(relevance, offsets, k)


def random_ndcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """Expected nDCG@k of each list [lists] in random order: mean gain times the sum of discounts; NaN where no item has relevance."""
    places = torch.arange(len(relevance), device=relevance.device) - offsets[list_numbers(offsets)]
    discount = sum_lists(discounts(places, k, relevance.dtype), offsets)
    return sum_lists(gains(relevance), offsets) / offsets.diff() * discount / ideal_dcg(relevance, offsets, k)


def _dcg(scores: Tensor, relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    return sum_lists(gains(relevance) * discounts(ranks(scores, offsets), k, relevance.dtype), offsets)
