"""Label attention with its head, forward and backward without a [B, L, H] array.

Pooling and projecting the attention output is linear, so each label needs only the product of its gathered heads with one vector:

    logit[b, l] = g_l · a_bl,    a_bl = Σ_t softmax_t(q_l · k_bt / √d) v_bt, head by head

Work goes document by document (each cut to its real positions, so padding costs nothing) and in blocks of labels, by torch's fused
attention. The backward pass gathers again, and only for (document, label) pairs whose gradient is not zero: a loss over a
few labels of each document costs only these. On a GPU with Triton kernels do the same, and gather numbers instead of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.base.kernels import uses_triton
from plant_cli.base.padding import LABEL_MULTIPLE, round_up

ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 23}
"""Gathered numbers (labels x H) held at a time: 4 MB on a CPU, 32 MB on a GPU; the backward pass holds a few times as much."""


def label_attention(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int, elements: int | None = None
) -> Tensor:
    """Each label's direction times the attention-weighted mean of the values.

    Matrix products run in the type of the inputs (bf16: products of bf16, summed in fp32); softmax in fp32 or better.

    Args:
        queries: q [L, H], heads side by side.
        directions: g [L, H], heads side by side.
        keys: k [B, T, H].
        values: v [B, T, H].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        heads: number of heads, a divisor of H.
        elements: gathered numbers held at a time, the bound on memory (default: `ELEMENTS` of the device); ignored by Triton's kernels.

    Returns:
        [B, L] in fp32, or fp64 for fp64 inputs.
    """
    result: Tensor
    if uses_triton(queries.device.type):
        from plant_cli.attention.kernels import KernelAttention

        result = KernelAttention.apply(queries, directions, keys, values, mask, heads)  # type: ignore[no-untyped-call]
    else:
        rows = (
            max((elements or ELEMENTS.get(queries.device.type, ELEMENTS["cuda"])) // queries.shape[1] // LABEL_MULTIPLE, 1) * LABEL_MULTIPLE
        )
        result = _LabelAttention.apply(queries, directions, keys, values, mask, heads, rows)  # type: ignore[no-untyped-call]
    return result


class _LabelAttention(torch.autograd.Function):
    """Keeps nothing but its inputs; `rows` labels at a time."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, heads: int, rows: int) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        logits = queries.new_zeros(len(keys), len(queries), dtype=exact)
        for document in _documents(keys, values, mask, heads):
            for logit, q, g in zip(*(torch.split(x, rows) for x in (logits[document.row], queries, directions)), strict=True):
                torch.sum(_gather(q, document.keys, document.values, document.padding).to(exact).mul_(g), -1, out=logit)
        ctx.save_for_backward(queries, directions, keys, values, mask)
        ctx.heads, ctx.rows = heads, rows
        return logits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, mask = ctx.saved_tensors
        queries, directions, keys, values = inputs
        d_queries, d_directions, d_keys, d_values = (torch.zeros_like(x, dtype=gradient.dtype) for x in inputs)
        for document in _documents(keys, values, mask, ctx.heads):
            dk, dv = (torch.zeros_like(x, dtype=gradient.dtype) for x in (document.keys, document.values))
            tables = [gradient[document.row].unsqueeze(1), queries, directions, d_queries, d_directions]
            selected = gradient[document.row].nonzero().squeeze(1)
            if len(selected) < len(queries):
                tables = [x[selected] for x in tables]
            for upstream, q, g, dq, dg in zip(*(torch.split(x, ctx.rows) for x in tables), strict=True):
                leaves = q, k, v = [x.detach().requires_grad_() for x in (q, document.keys, document.values)]
                with torch.enable_grad():
                    gathered = _gather(q, k, v, document.padding)
                parts = torch.autograd.grad(gathered, leaves, (g * upstream).to(gathered.dtype))
                dg.addcmul_(gathered.detach(), upstream)
                for total, part in zip((dq, dk, dv), parts, strict=True):
                    total += part
            if len(selected) < len(queries):
                d_queries[selected], d_directions[selected] = tables[3:]
            for total, part in ((d_keys, dk), (d_values, dv)):
                total[document.row, document.positions] = part[:, : len(document.positions)].transpose(0, 1).flatten(1)
        return *(x.to(queries.dtype) for x in (d_queries, d_directions, d_keys, d_values)), None, None, None


class _Document(NamedTuple):
    """Keys and values of a document at its t real positions; in bf16 padded to a multiple t' (`plant_cli.base.padding`)."""

    row: int  # in the batch
    positions: Tensor  # int64 [t]
    keys: Tensor  # [h, t', d]
    values: Tensor  # [h, t', d]
    padding: Tensor | None  # added to the scores, where there is padding: [t'], 0 for real positions and -inf for padding


def _documents(keys: Tensor, values: Tensor, mask: Tensor, heads: int) -> Iterator[_Document]:
    """The documents that have a real position."""
    for row, real in enumerate(mask):
        positions = real.nonzero().squeeze(1)
        if len(positions):
            k, v = (x[row, positions].view(len(positions), heads, -1).transpose(0, 1) for x in (keys, values))
            added = round_up(len(positions), LABEL_MULTIPLE) - len(positions) if keys.dtype == torch.bfloat16 else 0
            padding = None
            if added:
                k, v = (functional.pad(x, (0, 0, 0, added)) for x in (k, v))
                padding = functional.pad(keys.new_zeros(len(positions)), (0, added), value=-torch.inf)
            yield _Document(row, positions, k, v, padding)


def _gather(queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None) -> Tensor:
    """Attention-weighted means [l, H] for queries [l, H], of keys and values [h, t, d], with `padding` [t] added to the scores.

    On a CPU the library's backward pass runs one thread for each head it is given: where there are more threads, labels go in groups.
    """
    labels, (heads, _, size) = len(queries), keys.shape
    groups = 1
    while queries.device.type == "cpu" and 2 * groups * heads <= torch.get_num_threads() and groups < LABEL_MULTIPLE:
        groups *= 2
    q = functional.pad(queries, (0, 0, 0, round_up(labels, LABEL_MULTIPLE) - labels)).view(groups, -1, heads, size).transpose(1, 2)
    k, v = (x.expand(groups, -1, -1, -1) for x in (keys, values))
    bias = None if padding is None else padding.expand(1, 1, 1, -1)
    gathered = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    return gathered.transpose(1, 2).reshape(-1, heads * size)[:labels]
