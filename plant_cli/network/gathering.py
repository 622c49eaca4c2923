"""What each label's attention gathers from a document, and label attention with one head and with normalised vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.network.attention import ELEMENTS, SCORES, attend, find_labels, find_learnt, label_attention, log_attention
from plant_cli.network.compute import LABEL_MULTIPLE, TOKEN_MULTIPLE, each, round_up, uses_triton


def gather_states(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int) -> Tensor:
    """Attention-weighted means of the values, each head over its own H / heads dimensions.

    Args:
        queries: q [l, H], heads side by side.
        keys: k [B, T, H].
        values: v [B, T, H].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        heads: number of heads, a divisor of H.

    Returns:
        [B, l, H], heads side by side.
    """
    documents, _, hidden = keys.shape
    split = (documents, -1, heads, hidden // heads)
    q = queries.view(1, -1, heads, hidden // heads).transpose(1, 2).expand(documents, -1, -1, -1)
    k, v = (x.reshape(split).transpose(1, 2) for x in (keys, values))
    lowest = torch.finfo(q.dtype).min  # finite: a document may have nothing but padding
    padding = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, lowest)
    gathered = attend(q, k, v, padding[:, None, None])
    return gathered.transpose(1, 2).reshape(documents, len(queries), hidden).masked_fill(~mask.any(1)[:, None, None], 0.0)


@torch.no_grad()
def gather_sharpened(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int, factors: Sequence[float]) -> Tensor:
    """What `gather_states` gives for attention of several sharpnesses: scores are computed once, their softmax once for each.

    Args:
        queries: q [l, H], heads side by side.
        keys: k [B, T, H].
        values: v [B, T, H].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        heads: number of heads, a divisor of H.
        factors: on the scores, above 0.

    Returns:
        [F, B, l, H] for F factors, heads side by side; fp32, or fp64 for fp64 inputs.
    """
    labels, hidden = queries.shape
    exact = torch.promote_types(queries.dtype, torch.float32)
    rising = sorted(range(len(factors)), key=lambda i: factors[i])
    found = queries.new_zeros(len(factors), len(keys), labels, hidden, dtype=exact)
    q = functional.pad(queries, (0, 0, 0, round_up(labels, TOKEN_MULTIPLE) - labels)).view(-1, heads, hidden // heads).transpose(0, 1)

    def gather(part: tuple[int, int, Tensor, Tensor, Tensor]) -> None:
        row, start, k, v, padding = part
        scores = torch.matmul(q[:, start : start + _labels_held(k)], k.mT).to(exact).mul_(k.shape[2] ** -0.5)
        scores = scores.masked_fill_(padding, -torch.inf)
        scores -= scores.amax(-1, keepdim=True)
        weights, last = scores, 0.0
        for number in rising:
            # twice a factor is the square of its exponentials, which costs less than others
            weights = weights.mul_(weights) if factors[number] == 2 * last else torch.exp(scores * factors[number])
            last = factors[number]
            gathered = torch.matmul(weights.to(v.dtype), v).to(exact) / weights.sum(-1, keepdim=True)
            of_labels = gathered.transpose(0, 1).flatten(1)[: labels - start]
            found[number, row, start : start + len(of_labels)] = of_labels

    parts = []
    for row, real in enumerate(mask):
        if not real.any():
            continue
        end = int(real.nonzero()[-1]) + 1
        beyond = round_up(end, LABEL_MULTIPLE) - end
        k, v = (functional.pad(x[row, :end], (0, 0, 0, beyond)).view(-1, heads, hidden // heads).transpose(0, 1) for x in (keys, values))
        padding = ~functional.pad(real[:end], (0, beyond))
        parts += [(row, start, k, v, padding) for start in range(0, labels, _labels_held(k))]
    list(each(gather, parts, queries.device))
    return found


def _labels_held(keys: Tensor) -> int:
    """Labels whose scores for the keys [h, t, d] are held at a time."""
    held = SCORES.get(keys.device.type, SCORES["cuda"]) // (len(keys) * keys.shape[1])
    return max(TOKEN_MULTIPLE, held // TOKEN_MULTIPLE * TOKEN_MULTIPLE)


def single_head_attention(
    queries: Tensor,
    directions: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    elements: int | None = None,
    wanted: Tensor | None = None,
) -> Tensor:
    """Each label's direction times the attention-weighted mean of the values.

    Args:
        queries: q [L, A].
        directions: g [L, V].
        keys: k [B, T, A].
        values: v [B, T, V].
        mask: bool [B, T], true for real positions; a document without any gets zeros.
        elements: scores (labels x T) held at a time (default: `ELEMENTS` of the device); ignored by Triton's kernels.
        wanted: bool [B, L], the pairs that are computed (None: all); the others get any number, and have no gradient.

    Returns:
        [B, L] in fp32, or fp64 for fp64 inputs.
    """
    device = queries.device.type
    if uses_triton(device):
        filled, given = _even(keys, values)
        directions = _fill_up(directions.to(keys.dtype), filled.shape[-1])
        return label_attention(unscale(queries, filled), directions, filled, given, mask, heads=1, wanted=wanted)
    held = elements or ELEMENTS.get(device, ELEMENTS["cuda"])
    rows = max(held // max(1, keys.shape[1]) // LABEL_MULTIPLE, 1) * LABEL_MULTIPLE
    tensors = [x.to(keys.dtype) for x in (queries, directions, keys, values)]
    result: Tensor = _SingleHead.apply(*tensors, mask, rows, wanted)  # type: ignore[no-untyped-call]
    return result


class _SingleHead(torch.autograd.Function):
    """Keeps nothing but its inputs; `rows` labels of one document at a time, and on the way back only those with a gradient."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, rows: int, wanted: Tensor | None
    ) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        logits = queries.new_zeros(len(keys), len(queries), dtype=exact)

        def score(part: tuple[int, int, slice | Tensor]) -> None:
            row, end, labels = part
            given = keys[row, :end], values[row, :end], mask[row, :end]
            weights, worth = _weigh(_take(queries, labels), _take(directions, labels), *given)
            found = weights.mul_(worth).sum(-1)
            logits[row, labels] = found if isinstance(labels, slice) else found[: len(labels)]

        parts = [(row, end, labels) for row, end in documents(mask) for labels in find_labels(wanted, row, len(queries), rows)]
        list(each(score, parts, queries.device))
        ctx.save_for_backward(queries, directions, keys, values, mask, wanted)
        ctx.rows = rows
        return logits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, directions, keys, values, mask, wanted = ctx.saved_tensors
        totals = [torch.zeros_like(x, dtype=gradient.dtype) for x in (queries, directions, keys, values)]
        learnt = find_learnt(gradient, wanted)
        d_queries, d_directions, d_keys, d_values = totals

        def pull(part: tuple[int, int, Tensor]) -> list[Tensor]:
            row, end, labels = part
            q, g, k, v = _take(queries, labels), _take(directions, labels), keys[row, :end], values[row, :end]
            weights, worth = _weigh(q, g, k, v, mask[row, :end])
            to_worth = weights * functional.pad(gradient[row, labels], (0, len(q) - len(labels))).unsqueeze(1)
            to_scores = worth.sub_((weights * worth).sum(-1, keepdim=True)).mul_(to_worth).to(k.dtype)
            to_worth = to_worth.to(v.dtype)
            pulled = (to_scores @ k)[: len(labels)], (to_worth @ v)[: len(labels)], to_scores.mT @ q, to_worth.mT @ g
            return [x.to(gradient.dtype) for x in pulled]

        parts = [(*place, labels) for place in documents(mask) for labels in torch.split(learnt[place[0]].nonzero().squeeze(1), ctx.rows)]
        for (row, end, labels), (dq, dg, dk, dv) in zip(parts, each(pull, parts, queries.device), strict=True):
            d_queries.index_add_(0, labels, dq)
            d_directions.index_add_(0, labels, dg)
            d_keys[row, :end] += dk
            d_values[row, :end] += dv
        given = (queries, directions, keys, values)
        return *(total.to(x.dtype) for total, x in zip(totals, given, strict=True)), None, None, None


def documents(mask: Tensor) -> Iterator[tuple[int, int]]:
    """Row, and position behind the last real one, of the documents that have one; in multiples, see `plant_cli.network.compute`."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    ends = (mask * places).amax(1) if mask.shape[1] else mask.new_zeros(len(mask))
    for row, end in enumerate(ends.tolist()):
        if end:
            yield row, min(round_up(end, LABEL_MULTIPLE), mask.shape[1])


def _take(table: Tensor, labels: slice | Tensor) -> Tensor:
    """Rows of a table; chosen ones are filled up to a multiple (`plant_cli.network.compute`)."""
    rows = table[labels]
    return rows if isinstance(labels, slice) else functional.pad(rows, (0, 0, 0, round_up(len(rows), LABEL_MULTIPLE) - len(rows)))


def _weigh(queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Attention [l, t], and what each position is worth to the label [l, t], of one document; fp32 or better."""
    exact = torch.promote_types(queries.dtype, torch.float32)
    scores = torch.matmul(queries, keys.mT).to(exact).masked_fill_(~mask, -torch.inf)
    return torch.softmax(scores, dim=-1), torch.matmul(directions, values.mT).to(exact)


def single_head_log_attention(queries: Tensor, keys: Tensor, mask: Tensor, wanted: Tensor | None = None) -> Tensor:
    """Log attention [B, l, T] of queries [l, A] on keys [B, T, A]; −inf where masked [B, T]; of wanted pairs [B, l] alone, if given."""
    return log_attention(unscale(queries, keys), keys, mask, heads=1, wanted=wanted)


def single_head_states(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attention-weighted means [B, l, V] of values [B, T, V], for queries [l, A] and keys [B, T, A]; zeros where all is masked [B, T]."""
    filled, given = _even(keys, values)
    return gather_states(unscale(queries, filled), filled, given, mask, heads=1)[..., : values.shape[-1]]


def single_head_sharpened(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, factors: Sequence[float]) -> Tensor:
    """What `single_head_states` gives after each of F factors on the scores [F, B, l, V]; without gradients."""
    filled, given = _even(keys, values)
    return gather_sharpened(unscale(queries, filled), filled, given, mask, heads=1, factors=factors)[..., : values.shape[-1]]


def unscale(queries: Tensor, keys: Tensor) -> Tensor:
    """Queries [l, A] in size and type of the keys [B, T, D], times what the product with them is divided by: √D."""
    return _fill_up((queries * keys.shape[-1] ** 0.5).to(keys.dtype), keys.shape[-1])


def _even(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values in one size and one type."""
    size = max(keys.shape[-1], values.shape[-1])
    return _fill_up(keys, size), _fill_up(values.to(keys.dtype), size)


def _fill_up(x: Tensor, size: int) -> Tensor:
    return functional.pad(x, (0, size - x.shape[-1])) if x.shape[-1] < size else x


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
