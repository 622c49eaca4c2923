"""Label attention whose gathered vectors are normalised before they meet one vector that all labels share: the form of PLM-CA.

    logit[b, l] = g · (a_bl − mean(a_bl)) / √(var(a_bl) + ε),    a_bl = Σ_t softmax_t(q_l · k_bt) v_bt

The norm is not linear, so whole vectors are needed, but only of a block of labels of one document at a time. The backward pass gathers
them again, and only for (document, label) pairs whose gradient is not zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.attention.fused import ELEMENTS, find_labels, find_learnt
from plant_cli.attention.gather import gather_states
from plant_cli.attention.single import documents, unscale
from plant_cli.base.padding import LABEL_MULTIPLE, round_up
from plant_cli.base.threads import each


def normed_attention(
    queries: Tensor,
    direction: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    epsilon: float = 1e-5,
    elements: int | None = None,
    wanted: Tensor | None = None,
) -> Tensor:
    """The shared direction times the layer-normalised mean of the values under each label's attention; one head, no scale.

    Args:
        queries: q [L, H].
        direction: g [H].
        keys: k [B, T, H].
        values: v [B, T, H].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        epsilon: added to the variance.
        elements: gathered numbers (labels x H) held at a time (default: `ELEMENTS` of the device).
        wanted: bool [B, L], the pairs that are computed (None: all); the others get any number, and have no gradient.

    Returns:
        [B, L] in fp32, or fp64 for fp64 inputs.
    """
    held = elements or ELEMENTS.get(queries.device.type, ELEMENTS["cuda"])
    rows = max(held // queries.shape[1] // LABEL_MULTIPLE, 1) * LABEL_MULTIPLE
    given = unscale(queries, keys), direction, keys, values.to(keys.dtype), mask
    result: Tensor = _NormedAttention.apply(*given, epsilon, rows, wanted)  # type: ignore[no-untyped-call]
    return result


class _NormedAttention(torch.autograd.Function):
    """Keeps nothing but its inputs; `rows` labels at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        direction: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        epsilon: float,
        rows: int,
        wanted: Tensor | None,
    ) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        logits = queries.new_zeros(len(keys), len(queries), dtype=exact)

        def score(part: tuple[int, int, slice | Tensor]) -> None:
            row, end, labels = part
            logits[row, labels] = _score(queries[labels], direction, keys[row, :end], values[row, :end], mask[row, :end], epsilon)

        parts = [(row, end, labels) for row, end in documents(mask) for labels in find_labels(wanted, row, len(queries), rows)]
        list(each(score, parts, queries.device))
        ctx.save_for_backward(queries, direction, keys, values, mask, wanted)
        ctx.epsilon, ctx.rows = epsilon, rows
        return logits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, direction, keys, values, mask, wanted = ctx.saved_tensors
        learnt = find_learnt(gradient, wanted)
        totals = [torch.zeros_like(x, dtype=gradient.dtype) for x in (queries, direction, keys, values)]
        d_queries, d_direction, d_keys, d_values = totals

        def pull(part: tuple[int, int, Tensor]) -> list[Tensor]:
            row, end, labels = part
            given = (queries[labels], direction, keys[row, :end], values[row, :end])
            leaves = [x.detach().requires_grad_() for x in given]
            with torch.enable_grad():
                logits = _score(leaves[0], leaves[1], leaves[2], leaves[3], mask[row, :end], ctx.epsilon)
            return [x.to(gradient.dtype) for x in torch.autograd.grad(logits, leaves, gradient[row, labels])]

        parts = [(*place, labels) for place in documents(mask) for labels in torch.split(learnt[place[0]].nonzero().squeeze(1), ctx.rows)]
        for (row, end, labels), (dq, dg, dk, dv) in zip(parts, each(pull, parts, queries.device), strict=True):
            d_queries.index_add_(0, labels, dq)
            d_direction += dg
            d_keys[row, :end] += dk
            d_values[row, :end] += dv
        given = (queries, direction, keys, values)
        return *(total.to(x.dtype) for total, x in zip(totals, given, strict=True)), None, None, None, None


def _score(queries: Tensor, direction: Tensor, keys: Tensor, values: Tensor, mask: Tensor, epsilon: float) -> Tensor:
    """Logits [l] of one document, keys and values [t, H]; labels are filled up to a multiple."""
    labels = len(queries)
    filled = functional.pad(queries, (0, 0, 0, round_up(labels, LABEL_MULTIPLE) - labels))
    gathered = gather_states(filled, keys[None], values[None], mask[None], heads=1)[0, :labels]
    gathered = gathered.to(torch.promote_types(gathered.dtype, torch.float32))
    return functional.layer_norm(gathered, gathered.shape[-1:], eps=epsilon) @ direction.to(gathered.dtype)
