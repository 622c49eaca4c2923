"""nDCG@k of ragged lists: gain 2^r − 1, discount 1 / log2(1 + rank), cut at k (Järvelin and Kekäläinen 2002, as Burges 2005 uses it)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from plant_cli.ranking.ragged import list_positions, order_within, sum_lists


def gains(relevance: Tensor) -> Tensor:
    """2^r − 1, precise near 0."""
    return torch.expm1(relevance * math.log(2))


def discounts(rank: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """1 / log2(2 + rank) for ranks from 0, and 0 from rank k on."""
    return (1 / torch.log2(rank.to(dtype) + 2)).masked_fill_(rank >= k, 0)


def dcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """DCG@k of each list [lists] in the order it stands in; the ideal one where relevance falls."""
    return sum_lists(gains(relevance) * discounts(list_positions(offsets), k, relevance.dtype), offsets)


def ndcg(scores: Tensor, relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """nDCG@k of each list [lists] in the order of its scores; NaN where no item has relevance.

    Args:
        scores: [n]; ties are ordered by position.
        relevance: [n], ≥ 0.
        offsets: list boundaries [lists + 1].
        k: ranks that count.
    """
    in_order = dcg(relevance[order_within(scores, offsets)], offsets, k)
    return in_order / _ideal_dcg(relevance, offsets, k)


def random_ndcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """Expected nDCG@k of each list [lists] in random order: mean gain times the sum of discounts; NaN where no item has relevance."""
    discount = sum_lists(discounts(list_positions(offsets), k, relevance.dtype), offsets)
    return sum_lists(gains(relevance), offsets) / offsets.diff() * discount / _ideal_dcg(relevance, offsets, k)


def _ideal_dcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    return dcg(relevance[order_within(relevance, offsets)], offsets, k)
