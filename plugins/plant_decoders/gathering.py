"""What each label's attention gathers from a document, and label attention with one head and with
normalised vectors.

Shapes are those of `plant_decoders.attention`. With one head the sizes of keys (A) and values (V)
may differ, and scores are plain products, without a scale. A document without real positions gets
zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from plant_network.compute import LABEL_MULTIPLE, TOKEN_MULTIPLE, each, round_up, uses_triton
from torch import Tensor
from torch.nn import functional

from plant_cli.api import Gathered
from plant_decoders.attention import (
    LOG_ATTENTION_SCORES,
    add_rows,
    attend,
    find_labels,
    find_learnt,
    label_attention,
    labels_held,
    log_attention,
    split_heads,
    weigh_together,
)


def gather_states(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int
) -> Tensor:
    """Attention-weighted means of the values [B, l, H], each head over its own H / heads
    dimensions.
    """
    documents, _, hidden = keys.shape
    split = (documents, -1, heads, hidden // heads)
    q = queries.view(1, -1, heads, hidden // heads).transpose(1, 2).expand(documents, -1, -1, -1)
    k, v = (x.reshape(split).transpose(1, 2) for x in (keys, values))
    lowest = torch.finfo(q.dtype).min  # finite: a document may have nothing but padding
    padding = torch.zeros_like(mask, dtype=q.dtype).masked_fill_(~mask, lowest)
    gathered = attend(q, k, v, padding[:, None, None])
    return (
        gathered.transpose(1, 2)
        .reshape(documents, len(queries), hidden)
        .masked_fill(~mask.any(1)[:, None, None], 0.0)
    )


@torch.no_grad()
def gather_sharpened(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    heads: int,
    factors: Sequence[float],
) -> Tensor:
    """The result of `gather_states` after each of F factors on the scores [F, B, l, H]; fp32, or
    fp64 for fp64 inputs.

    Scores are computed once, their softmax once for each factor above 0. The factor 0 gives each
    label the mean of a document's values.
    """
    labels, hidden = queries.shape
    exact = torch.promote_types(queries.dtype, torch.float32)
    rising = sorted((i for i, factor in enumerate(factors) if factor), key=lambda i: factors[i])
    result = queries.new_zeros(len(factors), len(keys), labels, hidden, dtype=exact)
    if len(rising) < len(factors):
        means = (values.to(exact) * mask.unsqueeze(-1)).sum(1) / mask.sum(
            1, keepdim=True
        ).clamp_min(1)
        result[[not factor for factor in factors]] = means.unsqueeze(1)
    q = (
        functional.pad(queries, (0, 0, 0, round_up(labels, TOKEN_MULTIPLE) - labels))
        .view(-1, heads, hidden // heads)
        .transpose(0, 1)
    )

    def gather(part: tuple[int, int, Tensor, Tensor, Tensor]) -> None:
        row, start, k, v, padding = part
        scores = (
            torch.matmul(q[:, start : start + _labels_at_once(k)], k.mT)
            .to(exact)
            .mul_(k.shape[2] ** -0.5)
        )
        scores = scores.masked_fill_(padding, -torch.inf)
        scores -= scores.amax(-1, keepdim=True)
        weights, last = scores, 0.0
        for number in rising:
            # twice a factor is the square of its exponentials, which costs less than others
            weights = (
                weights.mul_(weights)
                if factors[number] == 2 * last
                else torch.exp(scores * factors[number])
            )
            last = factors[number]
            gathered = torch.matmul(weights.to(v.dtype), v).to(exact) / weights.sum(
                -1, keepdim=True
            )
            of_labels = gathered.transpose(0, 1).flatten(1)[: labels - start]
            result[number, row, start : start + len(of_labels)] = of_labels

    parts = []
    for row, real in enumerate(mask if rising else ()):
        if not real.any():
            continue
        end = int(real.nonzero()[-1]) + 1
        added = round_up(end, LABEL_MULTIPLE) - end
        k, v = (
            functional.pad(x[row, :end], (0, 0, 0, added))
            .view(-1, heads, hidden // heads)
            .transpose(0, 1)
            for x in (keys, values)
        )
        padding = ~functional.pad(real[:end], (0, added))
        parts += [(row, start, k, v, padding) for start in range(0, labels, _labels_at_once(k))]
    list(each(gather, parts, queries.device))
    return result


def _labels_at_once(keys: Tensor) -> int:
    held = LOG_ATTENTION_SCORES.get(keys.device.type, LOG_ATTENTION_SCORES["cuda"]) // (
        len(keys) * keys.shape[1]
    )
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
    """The result of `label_attention` [B, L] for queries [L, A] and keys [B, T, A], directions [L,
    V] and values [B, T, V].

    Args:
        elements: scores (labels x T) held at a time (default: `ATTENTION_NUMBERS` of the device);
            ignored by Triton's kernels.
    """
    device = queries.device.type
    if uses_triton(device):
        even_keys, even_values = _even(keys, values)
        directions = _fill_up(directions.to(keys.dtype), even_keys.shape[-1])
        return label_attention(
            unscale(queries, even_keys),
            directions,
            even_keys,
            even_values,
            mask,
            heads=1,
            wanted=wanted,
        )
    rows = labels_held(elements, max(1, keys.shape[1]), queries.device)
    tensors = [x.to(keys.dtype) for x in (queries, directions, keys, values)]
    result: Tensor = _OneHead.apply(_Scalars(), *tensors, mask, rows, wanted)  # type: ignore[no-untyped-call]
    return result


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
    """The shared direction [H] times the layer-normalised mean of the values under each label's
    attention [B, L]; one head, no scale.

    Args:
        epsilon: added to the variance.
        elements: gathered numbers (labels x H) held at a time (default: `ATTENTION_NUMBERS` of the
            device).
    """
    rows = labels_held(elements, queries.shape[1], queries.device)
    tensors = unscale(queries, keys), direction, keys, values.to(keys.dtype)
    result: Tensor = _OneHead.apply(_NormedMeans(epsilon), *tensors, mask, rows, wanted)  # type: ignore[no-untyped-call]
    return result


GatheredPart = tuple[int, int, slice | Tensor]
"""A document's row, the position behind its last real one, and some labels."""


class _OneHead(torch.autograd.Function):
    """Keeps only its inputs; `rows` labels of one document at a time, and on the way back only
    those with a gradient.
    """

    @staticmethod
    def forward(ctx: Any, form: _Scalars | _NormedMeans, *inputs: Any) -> Tensor:
        queries, directions, keys, values, mask, rows, wanted = inputs
        exact = torch.promote_types(queries.dtype, torch.float32)
        logits: Tensor = queries.new_zeros(len(keys), len(queries), dtype=exact)

        def score(part: GatheredPart) -> None:
            row, end, labels = part
            logits[row, labels] = form.score(
                queries, directions, labels, keys[row, :end], values[row, :end], mask[row, :end]
            )

        parts = [
            (row, end, labels)
            for row, end in documents(mask)
            for labels in find_labels(wanted, row, len(queries), rows)
        ]
        list(each(score, parts, queries.device))
        ctx.save_for_backward(queries, directions, keys, values, mask, wanted)
        ctx.form, ctx.rows = form, rows
        return logits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, directions, keys, values, mask, wanted = ctx.saved_tensors
        totals = [
            torch.zeros_like(x, dtype=gradient.dtype) for x in (queries, directions, keys, values)
        ]
        learnt = find_learnt(gradient, wanted)
        d_queries, d_directions, d_keys, d_values = totals

        def pull(part: tuple[int, int, Tensor]) -> list[Tensor]:
            row, end, labels = part
            document = keys[row, :end], values[row, :end], mask[row, :end]
            return [
                x.to(gradient.dtype)
                for x in ctx.form.pull(
                    gradient[row, labels], queries, directions, labels, *document
                )
            ]

        parts = [
            (row, end, labels)
            for row, end in documents(mask)
            for labels in torch.split(learnt[row].nonzero().squeeze(1), ctx.rows)
        ]
        for (row, end, labels), (dq, dg, dk, dv) in zip(
            parts, each(pull, parts, queries.device), strict=True
        ):
            d_queries.index_add_(0, labels, dq)
            add_rows(d_directions, labels if directions.dim() > 1 else slice(None), dg)
            d_keys[row, :end] += dk
            d_values[row, :end] += dv
        tensors = (queries, directions, keys, values)
        return (
            None,
            *(total.to(x.dtype) for total, x in zip(totals, tensors, strict=True)),
            None,
            None,
            None,
        )


def documents(mask: Tensor) -> Iterator[tuple[int, int]]:
    """Row, and position behind the last real one, of the documents that have one; in multiples,
    see `plant_network.compute`.
    """
    positions = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    ends = (mask * positions).amax(1) if mask.shape[1] else mask.new_zeros(len(mask))
    for row, end in enumerate(ends.tolist()):
        if end:
            yield row, min(round_up(end, LABEL_MULTIPLE), mask.shape[1])


class _Scalars:
    """Logits [l] of one document: the values are reduced to a number for each label and
    position before they are averaged.
    """

    def score(
        self,
        queries: Tensor,
        directions: Tensor,
        labels: slice | Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
    ) -> Tensor:
        weights, worth = self._weigh(
            _take(queries, labels), _take(directions, labels), keys, values, mask
        )
        logits = weights.mul_(worth).sum(-1)
        return logits if isinstance(labels, slice) else logits[: len(labels)]

    def pull(
        self,
        upstream: Tensor,
        queries: Tensor,
        directions: Tensor,
        labels: Tensor,
        *document: Tensor,
    ) -> Sequence[Tensor]:
        q, g, (k, v, mask) = _take(queries, labels), _take(directions, labels), document
        weights, worth = self._weigh(q, g, k, v, mask)
        to_worth = weights * functional.pad(upstream, (0, len(q) - len(labels))).unsqueeze(1)
        to_scores = worth.sub_((weights * worth).sum(-1, keepdim=True)).mul_(to_worth).to(k.dtype)
        to_worth = to_worth.to(v.dtype)
        return (
            (to_scores @ k)[: len(labels)],
            (to_worth @ v)[: len(labels)],
            to_scores.mT @ q,
            to_worth.mT @ g,
        )

    def _weigh(
        self, queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attention [l, t], and what each position is worth to the label [l, t]; fp32 or better."""
        exact = torch.promote_types(queries.dtype, torch.float32)
        scores = torch.matmul(queries, keys.mT).to(exact).masked_fill_(~mask, -torch.inf)
        return torch.softmax(scores, dim=-1), torch.matmul(directions, values.mT).to(exact)


class _NormedMeans:
    """Logits [l] of one document: means of the values, layer-normalised, times the shared
    direction.
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def score(
        self, queries: Tensor, direction: Tensor, labels: slice | Tensor, *document: Tensor
    ) -> Tensor:
        return self._score(queries[labels], direction, *document)

    def pull(
        self,
        upstream: Tensor,
        queries: Tensor,
        direction: Tensor,
        labels: Tensor,
        *document: Tensor,
    ) -> Sequence[Tensor]:
        keys, values, mask = document
        leaves = [x.detach().requires_grad_() for x in (queries[labels], direction, keys, values)]
        with torch.enable_grad():
            logits = self._score(leaves[0], leaves[1], leaves[2], leaves[3], mask)
        return torch.autograd.grad(logits, leaves, upstream)

    def _score(
        self, queries: Tensor, direction: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> Tensor:
        """Labels are filled up to a multiple."""
        labels = len(queries)
        filled = functional.pad(queries, (0, 0, 0, round_up(labels, LABEL_MULTIPLE) - labels))
        gathered = gather_states(filled, keys[None], values[None], mask[None], heads=1)[0, :labels]
        gathered = gathered.to(torch.promote_types(gathered.dtype, torch.float32))
        return functional.layer_norm(
            gathered, gathered.shape[-1:], eps=self.epsilon
        ) @ direction.to(gathered.dtype)


@torch.no_grad()
def leave_out_positions(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, *, heads: int
) -> Tensor:
    """What each logit of `label_attention` loses without each position [B, l, T], 0 where
    masked; fp64.
    """
    logs = weigh_together(queries.double(), keys.double(), mask, heads)
    return leave_out_attended(logs, directions, values, mask)


def leave_out_attended(logs: Tensor, directions: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """The same for log attention [B, h, l, T].

    Without position t attention on the others grows by 1 / (1 − a_t), so that o = Σ a_s (g·v_s)
    becomes (o − a_t (g·v_t)) / (1 − a_t); in each head. Without the position of highest attention,
    where 1 − a_t may be next to nothing, it is computed again.
    """
    heads = logs.shape[1]
    by_head = split_heads(directions.double(), heads).transpose(0, 1)
    worth = torch.matmul(by_head, split_heads(values.double(), heads).permute(0, 2, 3, 1))
    weights, top, others = _leave_out_highest(logs)
    logits = (weights * worth).sum(-1, keepdim=True)
    left = ((logits - weights * worth) / (1 - weights)).scatter_(
        -1, top, (others * worth).sum(-1, keepdim=True)
    )
    return (logits - left).sum(1).masked_fill_(~mask.unsqueeze(1), 0.0)


@torch.no_grad()
def leave_out_normed(
    queries: Tensor,
    direction: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    epsilon: float,
) -> Tensor:
    """The same of `normed_attention`: the mean of the values without each position is
    layer-normalised; label by label.
    """
    logs = weigh_together(unscale(queries.double(), keys.double()), keys.double(), mask, 1)[:, 0]
    exact, losses = values.double(), torch.zeros_like(logs)

    def score(means: Tensor) -> Tensor:
        return functional.layer_norm(means, means.shape[-1:], eps=epsilon) @ direction.double()

    for label, of_label in enumerate(logs.unbind(1)):
        weights, top, others = (x.unsqueeze(-1) for x in _leave_out_highest(of_label))
        mean = (weights * exact).sum(1, keepdim=True)
        left = (mean - weights * exact) / (1 - weights)
        left.scatter_(1, top.expand(-1, -1, exact.shape[-1]), (others * exact).sum(1, keepdim=True))
        losses[:, label] = score(mean) - score(left)
    return losses.masked_fill_(~mask.unsqueeze(1), 0.0)


def _leave_out_highest(logs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Attention [..., T] of log attention, the position of the highest [..., 1], and attention
    without it; the only one leaves none.
    """
    top = logs.argmax(-1, keepdim=True)
    others = torch.softmax(logs.scatter(-1, top, -torch.inf), -1).nan_to_num_(0.0)
    return logs.exp(), top, others


def _take(table: Tensor, labels: slice | Tensor) -> Tensor:
    """Rows of a table; chosen ones are filled up to a multiple (`plant_network.compute`)."""
    rows = table[labels]
    return (
        rows
        if isinstance(labels, slice)
        else functional.pad(rows, (0, 0, 0, round_up(len(rows), LABEL_MULTIPLE) - len(rows)))
    )


def single_head_log_attention(
    queries: Tensor, keys: Tensor, mask: Tensor, wanted: Tensor | None = None
) -> Tensor:
    """Log attention [B, l, T] of queries [l, A] on keys [B, T, A]; see `log_attention`."""
    return log_attention(unscale(queries, keys), keys, mask, heads=1, wanted=wanted)


def single_head_states(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """Attention-weighted means [B, l, V] of values [B, T, V], for queries [l, A] and keys [B,
    T, A].
    """
    even_keys, even_values = _even(keys, values)
    return gather_states(unscale(queries, even_keys), even_keys, even_values, mask, heads=1)[
        ..., : values.shape[-1]
    ]


def single_head_sharpened(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, factors: Sequence[float]
) -> Tensor:
    """The result of `single_head_states` after each of F factors on the scores [F, B, l, V];
    without gradients.
    """
    even_keys, even_values = _even(keys, values)
    sharpened = gather_sharpened(
        unscale(queries, even_keys), even_keys, even_values, mask, heads=1, factors=factors
    )
    return sharpened[..., : values.shape[-1]]


def unscale(queries: Tensor, keys: Tensor) -> Tensor:
    """Queries [l, A] in size and type of the keys [B, T, D], times what the product with them
    is divided by: √D.
    """
    return _fill_up((queries * keys.shape[-1] ** 0.5).to(keys.dtype), keys.shape[-1])


def _even(keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values in one size and one type."""
    size = max(keys.shape[-1], values.shape[-1])
    return _fill_up(keys, size), _fill_up(values.to(keys.dtype), size)


def _fill_up(x: Tensor, size: int) -> Tensor:
    return functional.pad(x, (0, size - x.shape[-1])) if x.shape[-1] < size else x


def find_change(mean: Tensor, queries: Tensor, gather: Callable[[], Tensor]) -> Gathered:
    """What labels gather without relevance, as it differs from the mean of each document [B, V]:
    nothing where all queries are zero, and so attention is even.
    """
    if queries.any():
        change = gather() - mean.unsqueeze(1)
    else:
        change = mean.new_zeros(len(mean), len(queries), mean.shape[1])
    return Gathered(mean, change, change.new_zeros(change.shape[:2]))


def mean_state(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of real states [B, H], fp32 or better; zero where a document has none."""
    exact = states.to(torch.promote_types(states.dtype, torch.float32))
    total = (exact * mask.unsqueeze(-1)).sum(1)
    return total / mask.sum(1, keepdim=True).clamp_min(1)
