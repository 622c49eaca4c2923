"""Label attention with its head, forward and backward without a [B, L, H] array.

Pooling and projecting the attention output is linear, so each label needs only the product of its gathered heads with one vector:

    logit[b, l] = g_l · a_bl,    a_bl = Σ_t softmax_t(q_l · k_bt / √d) v_bt, head by head

Work goes document by document (each cut to its real positions, so padding costs nothing) and in blocks of labels, by torch's fused
attention. The backward pass gathers again, and only for (document, label) pairs whose gradient is not zero: a loss over a
few labels of each document costs only these, and less still where only these are asked for (`wanted`). On a GPU with Triton
kernels do the same, and gather numbers instead of vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.attention.attend import attend
from plant_cli.base.kernels import uses_triton
from plant_cli.base.padding import LABEL_MULTIPLE, round_up
from plant_cli.base.threads import each

ELEMENTS = {"cpu": 1 << 20, "cuda": 1 << 23}
"""Gathered numbers (labels x H) held at a time: 4 MB on a CPU, 32 MB on a GPU; the backward pass holds a few times as much."""

KEPT = 1 << 22
"""Gathered numbers (wanted pairs x H) that are kept for the backward pass; of more, and where all pairs are wanted, none."""


def label_attention(
    queries: Tensor,
    directions: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    *,
    heads: int,
    elements: int | None = None,
    wanted: Tensor | None = None,
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
        wanted: bool [B, L], the pairs that are computed (None: all); the others get any number, and have no gradient.

    Returns:
        [B, L] in fp32, or fp64 for fp64 inputs.
    """
    result: Tensor
    if uses_triton(queries.device.type):
        from plant_cli.attention.kernels import KernelAttention

        result = KernelAttention.apply(queries, directions, keys, values, mask, heads)  # type: ignore[no-untyped-call]
        if wanted is not None:
            result = result.masked_fill(~wanted, 0.0)
    else:
        rows = (
            max((elements or ELEMENTS.get(queries.device.type, ELEMENTS["cuda"])) // queries.shape[1] // LABEL_MULTIPLE, 1) * LABEL_MULTIPLE
        )
        result = _LabelAttention.apply(queries, directions, keys, values, mask, heads, rows, wanted)  # type: ignore[no-untyped-call]
    return result


class _LabelAttention(torch.autograd.Function):
    """Keeps nothing but its inputs, and what few wanted pairs gather; `rows` labels at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        directions: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        heads: int,
        rows: int,
        wanted: Tensor | None = None,
    ) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        logits = queries.new_zeros(len(keys), len(queries), dtype=exact)
        keeps = wanted is not None and any(ctx.needs_input_grad) and int(wanted.sum()) * queries.shape[1] <= KEPT

        def score(part: _Part) -> _Gathered | None:
            kept = _Gathered.of(queries, part) if keeps else None
            gathered = _gather(take_rows(queries, part.labels), part.document) if kept is None else kept.means.detach()
            logits[part.document.row, part.labels] = (gathered.to(exact) * take_rows(directions, part.labels)).sum(-1)
            return kept

        parts = _Part.all(_documents(keys, values, mask, heads), wanted, len(queries), rows)
        ctx.kept = [kept for kept in each(score, parts, queries.device) if kept is not None]
        ctx.save_for_backward(queries, directions, keys, values, mask, wanted)
        ctx.heads, ctx.rows = heads, rows
        return logits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, mask, wanted = ctx.saved_tensors
        queries, directions, keys, values = inputs
        d_queries, d_directions, d_keys, d_values = (torch.zeros_like(x, dtype=gradient.dtype) for x in inputs)
        learnt = find_learnt(gradient, wanted)

        def pull(part: _Part | _Gathered) -> tuple[_Part, list[Tensor]]:
            found = part if isinstance(part, _Gathered) else _Gathered.of(queries, part)
            document, labels = found.part
            upstream = gradient[document.row, labels].unsqueeze(1)
            to_means = (take_rows(directions, labels) * upstream).to(found.means.dtype)
            dq, dk, dv = torch.autograd.grad(found.means, found.leaves, to_means, retain_graph=bool(ctx.kept))
            pulled = dq, found.means.detach() * upstream, document.join(dk), document.join(dv)
            return found.part, [x.to(gradient.dtype) for x in pulled]

        parts = ctx.kept or _Part.all(_documents(keys, values, mask, ctx.heads), learnt, len(queries), ctx.rows)
        for (document, labels), (dq, dg, dk, dv) in each(pull, parts, queries.device):
            add_rows(d_queries, labels, dq)
            add_rows(d_directions, labels, dg)
            add_rows(d_keys[document.row], document.positions, dk)
            add_rows(d_values[document.row], document.positions, dv)
        return *(x.to(queries.dtype) for x in (d_queries, d_directions, d_keys, d_values)), None, None, None, None


def find_learnt(gradient: Tensor, wanted: Tensor | None) -> Tensor:
    """The pairs [B, L] that have a gradient [B, L], of those that were computed."""
    return gradient != 0 if wanted is None else (gradient != 0) & wanted


def find_labels(wanted: Tensor | None, row: int, labels: int, most: int) -> list[slice] | list[Tensor]:
    """The labels of a document that are computed, at most so many at a time: slices where these are all labels.

    Args:
        wanted: bool [B, L]; None: all pairs.
        row: of the document.
        labels: L.
        most: labels at a time.
    """
    chosen = None if wanted is None else wanted[row].nonzero().squeeze(1)
    if chosen is None or len(chosen) == labels:
        return [slice(start, start + most) for start in range(0, labels, most)]
    return list(torch.split(chosen, most)) if len(chosen) else []


def take_rows(table: Tensor, rows: slice | Tensor) -> Tensor:
    """Some rows of a table."""
    return table[rows] if isinstance(rows, slice) else table.index_select(0, rows)


def add_rows(table: Tensor, rows: slice | Tensor, numbers: Tensor) -> None:
    """Add to some rows of a table, each named once."""
    if isinstance(rows, slice):
        table[rows] += numbers
    else:
        table.index_add_(0, rows, numbers)


class _Document(NamedTuple):
    """Keys and values of a document at its t real positions; in bf16 padded to a multiple t' (`plant_cli.base.padding`)."""

    row: int  # in the batch
    positions: Tensor  # int64 [t]
    keys: Tensor  # [h, t', d]
    values: Tensor  # [h, t', d]
    padding: Tensor | None  # added to the scores, where there is padding: [1, t'], 0 for real positions and -inf for padding

    def join(self, heads: Tensor) -> Tensor:
        """Numbers [h, t', d] at the real positions, heads side by side [t, H]."""
        return heads[:, : len(self.positions)].transpose(0, 1).flatten(1)


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
                padding = functional.pad(keys.new_zeros(1, len(positions)), (0, added), value=-torch.inf)
            yield _Document(row, positions, k, v, padding)


class _Part(NamedTuple):
    """Some labels of a document, worked on at once."""

    document: _Document
    labels: slice | Tensor

    @classmethod
    def all(cls, documents: Iterable[_Document], wanted: Tensor | None, labels: int, most: int) -> list[_Part]:
        """Every part of every document: its wanted labels [B, L] of so many, at most so many at a time."""
        return [cls(document, some) for document in documents for some in find_labels(wanted, document.row, labels, most)]


class _Gathered(NamedTuple):
    """What some labels gather of a document, ready for the gradient."""

    part: _Part
    leaves: list[Tensor]  # queries, keys, values
    means: Tensor  # [l, H]

    @classmethod
    def of(cls, queries: Tensor, part: _Part) -> _Gathered:
        document = part.document
        leaves = [x.detach().requires_grad_() for x in (take_rows(queries, part.labels), document.keys, document.values)]
        with torch.enable_grad():
            return cls(part, leaves, _gather(leaves[0], document._replace(keys=leaves[1], values=leaves[2])))


def _gather(queries: Tensor, document: _Document) -> Tensor:
    """Attention-weighted means [l, H] of a document's values for queries [l, H].

    On a CPU the library's backward pass runs one thread for each head it is given: where there are more threads, labels go in groups.
    """
    labels, (heads, _, size) = len(queries), document.keys.shape
    groups = 1
    while queries.device.type == "cpu" and 2 * groups * heads <= torch.get_num_threads() and groups < LABEL_MULTIPLE:
        groups *= 2
    q = functional.pad(queries, (0, 0, 0, round_up(labels, LABEL_MULTIPLE) - labels)).view(groups, -1, heads, size).transpose(1, 2)
    k, v = (x.expand(groups, -1, -1, -1) for x in (document.keys, document.values))
    gathered = attend(q, k, v, document.padding)
    return gathered.transpose(1, 2).reshape(-1, heads * size)[:labels]
