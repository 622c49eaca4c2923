"""Label attention whose values are numbers instead of vectors, forward and backward without a [B, L, H] array.

Pooling and projecting the attention output is linear, so a label sees a position only through one number per head, g_l · v_t:

    logit[b, l] = Σ_heads Σ_t softmax_t(q_l · k_t / √d) · (g_l · v_t)

Work goes document by document (each cut to its real positions, so padding costs nothing) and in blocks of labels (so that the
scores in hand stay in cache). The backward pass computes the scores again, and only for cells whose gradient is not zero: a loss
that looks at a few labels of each document pays for these alone. A graphics card with Triton does the same in kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from plant_cli.api.kernels import uses_triton

CELLS = {"cpu": 1 << 19, "cuda": 1 << 26}
"""Scores (heads x labels x positions) held at a time: 2 MB on a CPU, a quarter of a GB on a GPU."""


def label_attention(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int, cells: int | None = None
) -> Tensor:
    """Sum over heads of the attention-weighted mean of the scalar values `directions · values`.

    Matrix products run in the type of the inputs (bf16: products of bf16, summed in fp32); softmax in fp32 or better.

    Args:
        queries: q [L, H], heads side by side.
        directions: g [L, H], heads side by side.
        keys: k [B, T, H].
        values: v [B, T, H].
        mask: bool [B, T], true for positions that count; a document without any gets zeros.
        heads: number of heads, a divisor of H.
        cells: scores held at a time, the bound on memory (default: `CELLS` of the device); Triton's kernels hold tiles and need none.

    Returns:
        [B, L] in fp32, or fp64 for fp64 inputs.
    """
    result: Tensor
    if uses_triton(queries.device.type):
        from plant_cli.attention.kernels import KernelAttention

        result = KernelAttention.apply(queries, directions, keys, values, mask, heads)  # type: ignore[no-untyped-call]
    else:
        budget = cells or CELLS.get(queries.device.type, CELLS["cuda"])
        result = _LabelAttention.apply(queries, directions, keys, values, mask, heads, budget)  # type: ignore[no-untyped-call]
    return result


class _LabelAttention(torch.autograd.Function):
    """Keeps, beside its inputs, one number per document, head and label."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, heads: int, cells: int
    ) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        means = queries.new_zeros(len(keys), heads, len(queries), dtype=exact)
        scale = (queries.shape[1] // heads) ** -0.5
        for document, places in _documents(mask):
            k, v = _split(keys[document, places] * scale, heads), _split(values[document, places], heads)
            for rows in _blocks(len(queries), heads * len(places), cells):
                weights = _weights(_split(queries[rows], heads), k, exact)
                worth = torch.bmm(_split(directions[rows], heads), v.mT).to(exact)
                means[document, :, rows] = worth.mul_(weights).sum(-1)
        ctx.save_for_backward(queries, directions, keys, values, mask, means)
        ctx.heads, ctx.cells = heads, cells
        return means.sum(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, directions, keys, values, mask, means = ctx.saved_tensors
        d_queries, d_directions, d_keys, d_values = (torch.zeros_like(x, dtype=means.dtype) for x in (queries, directions, keys, values))
        scale = (queries.shape[1] // ctx.heads) ** -0.5
        for document, places in _documents(mask):
            k, v = _split(keys[document, places] * scale, ctx.heads), _split(values[document, places], ctx.heads)
            dk, dv = (torch.zeros_like(x, dtype=means.dtype) for x in (k, v))
            picked = gradient[document].nonzero().squeeze(1)
            for rows in _blocks(len(picked), ctx.heads * len(places), ctx.cells):
                labels = picked[rows]
                q, g = _split(queries[labels], ctx.heads), _split(directions[labels], ctx.heads)
                parts = _block_gradients(q, g, k, v, means[document][:, labels], gradient[document, labels].to(means.dtype))
                d_queries.index_add_(0, labels, parts[0])
                d_directions.index_add_(0, labels, parts[1])
                dk += parts[2]
                dv += parts[3]
            d_keys[document, places] = _join(dk) * scale
            d_values[document, places] = _join(dv)
        dtype = queries.dtype
        return d_queries.to(dtype), d_directions.to(dtype), d_keys.to(dtype), d_values.to(dtype), None, None, None


def _block_gradients(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, means: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What a block of labels gives to a document's gradients: queries and directions [l, H], keys and values [h, t, d].

    With p the attention and u = g · v, the logit moves with a score by p·(u − Σ p·u) and with a value by p.
    """
    dtype, exact, upstream = queries.dtype, means.dtype, gradient.unsqueeze(1)
    weights = _weights(queries, keys, exact)
    pull = torch.bmm(directions, values.mT).to(exact).sub_(means.unsqueeze(2)).mul_(weights).to(dtype)
    weights = weights.to(dtype)
    return (
        _join(torch.bmm(pull, keys)) * upstream,
        _join(torch.bmm(weights, values)) * upstream,
        torch.bmm(pull.mT, (queries * upstream).to(dtype)),
        torch.bmm(weights.mT, (directions * upstream).to(dtype)),
    )


def _weights(queries: Tensor, keys: Tensor, exact: torch.dtype) -> Tensor:
    """Attention [h, l, t] of queries [h, l, d] on scaled keys [h, t, d]."""
    return torch.softmax(torch.bmm(queries, keys.mT), dim=-1, dtype=exact)


def _documents(mask: Tensor) -> Iterator[tuple[int, Tensor]]:
    """The documents that have a position, each with its positions."""
    for document, row in enumerate(mask):
        places = row.nonzero().squeeze(1)
        if len(places):
            yield document, places


def _blocks(labels: int, cells_of_label: int, cells: int) -> Iterator[slice]:
    """Slices over the labels, each of at most `cells` scores (but at least one label)."""
    step = max(1, cells // cells_of_label)
    return (slice(start, min(start + step, labels)) for start in range(0, labels, step))


def _split(x: Tensor, heads: int) -> Tensor:
    """[n, H] -> [h, n, d], in one piece: otherwise each product in half precision copies it."""
    return x.reshape(len(x), heads, -1).transpose(0, 1).contiguous()


def _join(x: Tensor) -> Tensor:
    """[h, n, d] -> [n, H]."""
    return x.transpose(0, 1).flatten(1)
