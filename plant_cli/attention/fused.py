"""Label attention whose values are numbers instead of vectors, forward and backward without a [B, L, H] array.

Pooling and projecting the attention output is linear, so a label sees a position only through one number per head, g_l · v_t:

    logit[b, l] = Σ_heads Σ_t softmax_t(q_l · k_t / √d) · (g_l · v_t)

Work goes document by document (each cut to its real positions, so padding costs nothing) and in blocks of labels (so that the
scores in hand stay in cache). The backward pass computes the scores again, and only for cells whose gradient is not zero: a loss
that looks at a few labels of each document pays for these alone. A graphics card with Triton does the same in kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.api.kernels import uses_triton

CELLS = {"cpu": 1 << 19, "cuda": 1 << 26}
"""Scores (heads x labels x positions) held at a time: 2 MB on a CPU, a quarter of a GB on a GPU."""

REGISTER = 16
"""Numbers in fp32 that a processor takes at a time (AVX-512)."""


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
        room = _Room(queries, keys, heads, cells)
        means = queries.new_zeros(len(keys), heads, len(queries), dtype=room.exact)
        for document, places, k, v in _documents(keys, values, mask, heads):
            for rows in _blocks(len(queries), heads * k.shape[1], cells):
                weights, worth = room.scores(_split(queries[rows], heads), _split(directions[rows], heads), k, v, len(places))
                means[document, :, rows] = worth.mul_(weights).sum(-1)
        ctx.save_for_backward(queries, directions, keys, values, mask, means)
        ctx.heads, ctx.cells = heads, cells
        return means.sum(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """With p the attention and u = g · v, the logit moves with a score by p·(u − Σ p·u) and with a value by p."""
        *inputs, mask, means = ctx.saved_tensors
        queries, directions, keys, values = inputs
        heads, labels = ctx.heads, len(queries)
        room = _Room(queries, keys, heads, ctx.cells)
        d_queries, d_directions, d_keys, d_values = (torch.zeros_like(x, dtype=room.exact) for x in inputs)
        dq, dg = (x.view(labels, heads, -1).transpose(0, 1) for x in (d_queries, d_directions))
        for document, places, k, v in _documents(keys, values, mask, heads):
            dk, dv = (x.new_zeros(x.mT.shape, dtype=room.exact) for x in (k, v))
            picked = gradient[document].nonzero().squeeze(1)
            for block in _blocks(len(picked), heads * k.shape[1], ctx.cells):
                rows = block if len(picked) == labels else picked[block]
                upstream = gradient[document, rows].to(room.exact).unsqueeze(1)
                q, g = _split(queries[rows], heads), _split(directions[rows], heads)
                weights, worth = room.scores(q, g, k, v, len(places))
                pull = worth.sub_(means[document][:, rows].unsqueeze(2)).mul_(weights)
                pull, weights = room.as_factors(pull, weights)
                _add_rows(dq, rows, torch.bmm(pull, k), upstream)
                _add_rows(dg, rows, torch.bmm(weights, v), upstream)
                _add_product(dk, q * upstream, pull)
                _add_product(dv, g * upstream, weights)
            d_keys[document, places] = _join(dk.mT[:, : len(places)]) * _scale(k)
            d_values[document, places] = _join(dv.mT[:, : len(places)])
        return *(x.to(queries.dtype) for x in (d_queries, d_directions, d_keys, d_values)), None, None, None


class _Room:
    """Memory for the scores of a block, taken once: a block that took its own would find it outside the cache.

    Args:
        queries: for the number of labels and the type of the products [L, H].
        keys: for the most positions that a document can have [B, T, H].
        heads: number of heads.
        cells: scores of a block; a single label may have more.
    """

    def __init__(self, queries: Tensor, keys: Tensor, heads: int, cells: int) -> None:
        self.exact = torch.promote_types(queries.dtype, torch.float32)
        of_label = heads * _aligned(keys.shape[1])
        cells = min(max(cells, of_label), of_label * len(queries))
        self._products = [queries.new_empty(cells) for _ in range(2)]
        self._exact = self._products if queries.dtype == self.exact else [queries.new_empty(cells, dtype=self.exact) for _ in range(2)]

    def scores(self, queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, places: int) -> tuple[Tensor, Tensor]:
        """Attention of queries [h, l, d] on the first `places` of scaled keys [h, t, d], and directions · values: [h, l, t] each."""
        shape = (*queries.shape[:2], keys.shape[1])
        scores, worth = (room[: math.prod(shape)].view(shape) for room in self._products)
        weights, exact_worth = (room[: math.prod(shape)].view(shape) for room in self._exact)
        torch.bmm(queries, keys.mT, out=scores)
        scores[:, :, places:] = -torch.inf
        torch.softmax(scores, -1, dtype=self.exact, out=weights)
        torch.bmm(directions, values.mT, out=worth)
        return weights, worth if self._exact is self._products else exact_worth.copy_(worth)

    def as_factors(self, *scores: Tensor) -> tuple[Tensor, ...]:
        """Scores in the type in which products are taken."""
        if self._exact is self._products:
            return scores
        return tuple(room[: x.numel()].view(x.shape).copy_(x) for room, x in zip(self._products, scores, strict=True))


def _add_rows(total: Tensor, rows: slice | Tensor, part: Tensor, upstream: Tensor) -> None:
    """Add part [h, l, d], each row times its upstream gradient [l, 1], to rows of a total [h, L, d]."""
    if isinstance(rows, slice):
        total[:, rows].addcmul_(part, upstream)
    else:
        total.index_add_(1, rows, part * upstream)


def _add_product(total: Tensor, rows: Tensor, scores: Tensor) -> None:
    """Add rows [h, l, d], transposed, times scores [h, l, t] to a total [h, d, t]."""
    if total.dtype == scores.dtype:
        total.baddbmm_(rows.mT, scores)
    else:
        total += torch.bmm(rows.to(scores.dtype).mT, scores)


def _documents(keys: Tensor, values: Tensor, mask: Tensor, heads: int) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """The documents that have a position, each with its positions, and with their scaled keys and values [h, t, d], t aligned."""
    for document, row in enumerate(mask):
        places = row.nonzero().squeeze(1)
        if len(places):
            k, v = (_split(x[document, places], heads) for x in (keys, values))
            beyond = (0, 0, 0, _aligned(len(places)) - len(places))
            yield document, places, functional.pad(k * _scale(k), beyond), functional.pad(v, beyond)


def _aligned(places: int) -> int:
    """Places with those that follow so that a row of scores ends with a register of the processor: products take a tenth less time."""
    return -(-places // REGISTER) * REGISTER


def _scale(keys: Tensor) -> float:
    return float(keys.shape[-1] ** -0.5)


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
