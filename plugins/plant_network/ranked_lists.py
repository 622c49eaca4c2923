"""Ragged lists of scores and relevance, side by side: their order, nDCG and Kendall's tau.

Throughout, scores and relevance (≥ 0) are [n]; list i is `offsets[i]:offsets[i+1]` of them, with
offsets int64 [lists + 1].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

HELD_PAIRS = 1 << 20  # pairs held at a time


def list_numbers(offsets: Tensor) -> Tensor:
    """The list of each item [n]."""
    lists = torch.arange(len(offsets) - 1, device=offsets.device)
    return torch.repeat_interleave(lists, offsets.diff())


def list_positions(offsets: Tensor) -> Tensor:
    """Position of each item within its list [n], from 0."""
    lists = list_numbers(offsets)
    return torch.arange(len(lists), device=offsets.device) - offsets[lists]


def order_within(values: Tensor, offsets: Tensor) -> Tensor:
    """Positions of all items [n]: list after list, and within a list by falling value, ties by
    position.
    """
    lengths = offsets.diff()
    longest = int(lengths.max()) if len(lengths) else 0
    if longest * len(lengths) <= 2 * len(values):  # lists of like length are sorted side by side
        there = torch.arange(longest, device=offsets.device) < lengths.unsqueeze(1)
        table = values.new_full(there.shape, -torch.inf).masked_scatter_(there, values)
        return (table.argsort(dim=1, descending=True, stable=True) + offsets[:-1].unsqueeze(1))[
            there
        ]
    by_value = torch.argsort(values, descending=True, stable=True)
    return by_value[torch.argsort(list_numbers(offsets)[by_value], stable=True)]


def ranks(values: Tensor, offsets: Tensor) -> Tensor:
    """Rank of each item within its list [n], from 0 for the highest value; ties by position."""
    order = order_within(values, offsets)
    return torch.empty_like(order).scatter_(0, order, list_positions(offsets))


def sum_lists(values: Tensor, offsets: Tensor) -> Tensor:
    """Sum of each list [lists]."""
    return values.new_zeros(len(offsets) - 1).index_add(0, list_numbers(offsets), values)


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Lists of like length side by side."""

    lists: Tensor  # their numbers [c]
    items: Tensor  # positions of their items [c, m], 0 where a list is shorter
    valid: Tensor  # bool [c, m], false where a list is shorter
    leaders: int  # how many items from the front some list of them compares with the others


def chunks(offsets: Tensor, leaders: Tensor, pairs: int, block: int) -> Iterator[Chunk]:
    """Cut lists into chunks of at most `pairs` comparisons, of `block` leaders a list with all its
    items; a chunk has at least one list.

    `leaders` [lists] says how many items from the front of each list are compared with the others;
    lists with none are left out.
    """
    lengths = offsets.diff()
    order = torch.argsort(leaders, descending=True, stable=True)
    order = order[torch.argsort(lengths[order], descending=True, stable=True)]
    order = order[leaders[order] > 0]
    sizes = list(zip(lengths[order].tolist(), leaders[order].tolist(), strict=True))
    start = 0
    while start < len(sizes):
        longest, most = sizes[
            start
        ]  # lengths fall along the order, so the first list is the longest of its chunk
        end = start + 1
        while (
            end < len(sizes)
            and (end + 1 - start) * longest * min(block, max(most, sizes[end][1])) <= pairs
        ):
            most = max(most, sizes[end][1])
            end += 1
        lists = order[start:end]
        columns = torch.arange(longest, device=offsets.device)
        valid = columns < lengths[lists].unsqueeze(1)
        items = (offsets[lists].unsqueeze(1) + columns).masked_fill_(~valid, 0)
        yield Chunk(lists=lists, items=items, valid=valid, leaders=most)
        start = end


def gains(relevance: Tensor) -> Tensor:
    """2^r − 1, precise near 0."""
    return torch.expm1(relevance * math.log(2))


def discounts(rank: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """1 / log2(2 + rank) for ranks from 0, and 0 from rank k on."""
    return (1 / torch.log2(rank.to(dtype) + 2)).masked_fill_(rank >= k, 0)


def dcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """DCG@k of each list [lists] in its present order; the ideal one where relevance falls."""
    return sum_lists(
        gains(relevance) * discounts(list_positions(offsets), k, relevance.dtype), offsets
    )


def ndcg(scores: Tensor, relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """nDCG@k of each list [lists] in the order of its scores, ties by position; NaN where no
    item has relevance.
    """
    return dcg(relevance[order_within(scores, offsets)], offsets, k) / _ideal_dcg(
        relevance, offsets, k
    )


def random_ndcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    """Expected nDCG@k of each list [lists] in random order: mean gain times the sum of
    discounts; NaN where no item has relevance.
    """
    discount = sum_lists(discounts(list_positions(offsets), k, relevance.dtype), offsets)
    return (
        sum_lists(gains(relevance), offsets)
        / offsets.diff()
        * discount
        / _ideal_dcg(relevance, offsets, k)
    )


def _ideal_dcg(relevance: Tensor, offsets: Tensor, k: int) -> Tensor:
    return dcg(relevance[order_within(relevance, offsets)], offsets, k)


def kendall_tau(scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
    """Kendall's τ-b of scores and relevance in each list [lists]; NaN where either does not
    vary.
    """
    result = scores.new_full((len(offsets) - 1,), torch.nan, dtype=torch.float64)
    for chunk in chunks(offsets, offsets.diff(), HELD_PAIRS, block=len(scores)):
        pairs = chunk.valid.unsqueeze(1) & chunk.valid.unsqueeze(2)
        score_signs, relevance_signs = (
            torch.sign(x[chunk.items].unsqueeze(2) - x[chunk.items].unsqueeze(1)).double() * pairs
            for x in (scores, relevance)
        )
        agreement = (score_signs * relevance_signs).sum((1, 2))
        result[chunk.lists] = (
            agreement
            / (score_signs.square().sum((1, 2)) * relevance_signs.square().sum((1, 2))).sqrt()
        )
    return result
