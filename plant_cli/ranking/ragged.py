"""Ragged lists: one flat tensor of items, and offsets [lists + 1] that say where each list begins and ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


def list_numbers(offsets: Tensor) -> Tensor:
    """The list of each item [n]."""
    lists = torch.arange(len(offsets) - 1, device=offsets.device)
    return torch.repeat_interleave(lists, offsets.diff())


def list_positions(offsets: Tensor) -> Tensor:
    """Position of each item within its list [n], from 0."""
    lists = list_numbers(offsets)
    return torch.arange(len(lists), device=offsets.device) - offsets[lists]


def order_within(values: Tensor, offsets: Tensor) -> Tensor:
    """Positions of all items [n]: list after list, and within a list by falling value, ties by position."""
    lengths = offsets.diff()
    longest = int(lengths.max()) if len(lengths) else 0
    if longest * len(lengths) <= 2 * len(values):  # lists of like length are sorted side by side
        there = torch.arange(longest, device=offsets.device) < lengths.unsqueeze(1)
        table = values.new_full(there.shape, -torch.inf).masked_scatter_(there, values)
        return (table.argsort(dim=1, descending=True, stable=True) + offsets[:-1].unsqueeze(1))[there]
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
    """Lists of like length side by side.

    Args:
        lists: their numbers [c].
        items: positions of their items [c, m], 0 where a list is shorter.
        valid: bool [c, m], false where a list is shorter.
        leaders: how many items from the front some list of them compares with the others.
    """

    lists: Tensor
    items: Tensor
    valid: Tensor
    leaders: int


def chunks(offsets: Tensor, leaders: Tensor, pairs: int, block: int) -> Iterator[Chunk]:
    """Cut lists into chunks within which `block` leaders a list can be compared with all its items in at most `pairs` pairs.

    Args:
        offsets: list boundaries [lists + 1].
        leaders: items from the front of each list to compare with its others [lists]; lists with none are left out.
        pairs: comparisons held at a time; a chunk has at least one list.
        block: leaders compared at a time.
    """
    lengths = offsets.diff()
    order = torch.argsort(leaders, descending=True, stable=True)
    order = order[torch.argsort(lengths[order], descending=True, stable=True)]
    order = order[leaders[order] > 0]
    sizes = list(zip(lengths[order].tolist(), leaders[order].tolist(), strict=True))
    start = 0
    while start < len(sizes):
        longest, most = sizes[start]  # lengths fall along the order, so the first list is the longest of its chunk
        end = start + 1
        while end < len(sizes) and (end + 1 - start) * longest * min(block, max(most, sizes[end][1])) <= pairs:
            most = max(most, sizes[end][1])
            end += 1
        lists = order[start:end]
        columns = torch.arange(longest, device=offsets.device)
        valid = columns < lengths[lists].unsqueeze(1)
        items = (offsets[lists].unsqueeze(1) + columns).masked_fill_(~valid, 0)
        yield Chunk(lists=lists, items=items, valid=valid, leaders=most)
        start = end
