"""Attention-weighted means, head by head: torch's fused attention, or plain products in blocks where these are faster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.base.padding import LABEL_MULTIPLE

SCORES = 1 << 18
"""Scores (heads x labels x positions) held at a time: what stays in a processor's cache."""


def attend(queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None = None) -> Tensor:
    """softmax(q·k / √d) v for each head.

    In bf16, torch's fused attention is fast on processors with AMX alone; on others `attend_in_blocks` takes its place.

    Args:
        queries: q [h, l, d], or with an axis of documents before these.
        keys: k [h, t, d], likewise.
        values: v [h, t, d], likewise.
        padding: added to the scores, [1, t], or with a document axis [B, 1, 1, t]: 0, or −inf for some positions (None: 0).

    Returns:
        [h, l, d], likewise.
    """
    if queries.device.type == "cpu" and queries.dtype == torch.bfloat16 and not has_amx():
        return attend_in_blocks(queries, keys, values, padding)
    return functional.scaled_dot_product_attention(queries, keys, values, attn_mask=padding)


def attend_in_blocks(queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None = None) -> Tensor:
    """What `attend` gives, by plain products of as many labels as fit the processor's cache.

    In bf16 scores are rounded to it; softmax and sums are in fp32 or better. Nothing but inputs and result is kept for the gradient.
    """
    if queries.dim() > 3:  # the scores of one document fit the cache
        paddings = [padding] * len(queries) if padding is None or padding.dim() == 2 else padding
        return torch.stack([attend_in_blocks(*document) for document in zip(queries, keys, values, paddings, strict=True)])
    result: Tensor = _Blocks.apply(queries, keys, values, padding)  # type: ignore[no-untyped-call]
    return result


@cache
def has_amx() -> bool:
    """Whether this processor multiplies tiles of bf16 (Intel's AMX)."""
    return bool(torch.cpu._is_amx_tile_supported())


class _Blocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None) -> Tensor:
        found = torch.empty_like(queries)
        for block in _blocks(queries, keys):
            found[..., block, :] = torch.matmul(_weigh(queries[..., block, :], keys, padding).to(values.dtype), values)
        ctx.save_for_backward(queries, keys, values, padding, found)
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, padding, found = ctx.saved_tensors
        exact = torch.promote_types(keys.dtype, torch.float32)
        scale = keys.shape[-1] ** -0.5
        on_average = (gradient.to(exact) * found).sum(-1, keepdim=True)
        d_queries = torch.empty_like(queries)
        d_keys, d_values = (torch.zeros_like(x, dtype=exact) for x in (keys, values))
        for block in _blocks(queries, keys):
            q, upstream = queries[..., block, :], gradient[..., block, :]
            weights = _weigh(q, keys, padding)
            pull = torch.matmul(upstream, values.mT).to(exact).sub_(on_average[..., block, :]).mul_(weights).mul_(scale).to(keys.dtype)
            d_queries[..., block, :] = torch.matmul(pull, keys)
            d_keys += torch.matmul(pull.mT, q)
            d_values += torch.matmul(weights.to(values.dtype).mT, upstream)
        return d_queries, d_keys.to(keys.dtype), d_values.to(values.dtype), None


def _blocks(queries: Tensor, keys: Tensor) -> Iterator[slice]:
    """Labels whose scores are held at a time."""
    held = SCORES // max(1, keys[..., 0].numel())
    step = max(LABEL_MULTIPLE, held // LABEL_MULTIPLE * LABEL_MULTIPLE)
    return (slice(start, start + step) for start in range(0, queries.shape[-2], step))


def _weigh(queries: Tensor, keys: Tensor, padding: Tensor | None) -> Tensor:
    """Attention [h, l, t], in fp32 or better."""
    exact = torch.promote_types(queries.dtype, torch.float32)
    scores = torch.matmul(queries, keys.mT).to(exact).mul_(keys.shape[-1] ** -0.5)
    if padding is not None:
        scores += padding
    return torch.softmax(scores, dim=-1)
