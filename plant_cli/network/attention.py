"""Numerics of label attention: the fused form that is trained, its logarithm, and the literal form it must equal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from plant_cli.network.compute import LABEL_MULTIPLE, each, round_up, uses_triton


@dataclass(frozen=True, kw_only=True)
class LiteralHead:
    """The weights of the network after the backbone."""

    queries: Tensor  # label queries E [L, H]
    attention: nn.MultiheadAttention  # the multi-head attention, batch first, with all its biases
    boost_scale: Tensor  # B_m [L, H]
    boost_shift: Tensor  # B_a [L, H]
    projection: Tensor  # W_c [p], shared by all labels
    bias: Tensor  # per label [L]


def literal_logits(head: LiteralHead, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [B, L] and attention averaged over heads [B, L, T], through full [B, L, H] arrays.

    Args:
        head: the weights.
        hidden: hidden states [B, T, H].
        mask: bool [B, T], true for positions that count; at least one in each document.
    """
    queries = head.queries.expand(len(hidden), -1, -1)
    attended, weights = head.attention(queries, hidden, hidden, key_padding_mask=~mask, need_weights=True)
    boosted = head.boost_shift + attended * head.boost_scale
    pooled = functional.adaptive_avg_pool1d(boosted, len(head.projection))
    return torch.matmul(pooled, head.projection) + head.bias, weights


def pooling_matrix(hidden: int, bins: int) -> Tensor:
    """The matrix [bins, hidden] in fp64 whose product with a vector is `AdaptiveAvgPool1d(bins)` of it.

    Bin i averages the dimensions from `floor(i·hidden/bins)` up to `ceil((i+1)·hidden/bins)`. Bins overlap where `bins` does not
    divide `hidden`.
    """
    bin_number = torch.arange(bins).unsqueeze(1)
    start = bin_number * hidden // bins
    end = -(-(bin_number + 1) * hidden // bins)
    dimension = torch.arange(hidden)
    return ((dimension >= start) & (dimension < end)).double() / (end - start)


BLOCK_SCORES = 1 << 18
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
    held = BLOCK_SCORES // max(1, keys[..., 0].numel())
    step = max(LABEL_MULTIPLE, held // LABEL_MULTIPLE * LABEL_MULTIPLE)
    return (slice(start, start + step) for start in range(0, queries.shape[-2], step))


def _weigh(queries: Tensor, keys: Tensor, padding: Tensor | None) -> Tensor:
    """Attention [h, l, t], in fp32 or better."""
    exact = torch.promote_types(queries.dtype, torch.float32)
    scores = torch.matmul(queries, keys.mT).to(exact).mul_(keys.shape[-1] ** -0.5)
    if padding is not None:
        scores += padding
    return torch.softmax(scores, dim=-1)


SCORES = {"cpu": 1 << 18, "cuda": 1 << 26}
"""Scores (heads x labels x positions) held at a time: on a CPU what stays in its cache."""


def log_attention(queries: Tensor, keys: Tensor, mask: Tensor, *, heads: int, wanted: Tensor | None = None) -> Tensor:
    """Log of the attention of each label on each position, averaged over heads.

    Computed from log-softmax and log-sum-exp in fp32 or better, so that a position with next to no attention keeps a finite
    logarithm and a gradient. Beside inputs and result it holds a few times `SCORES` numbers.

    Args:
        queries: q [l, H], heads side by side.
        keys: k [B, T, H].
        mask: bool [B, T], true for real positions.
        heads: number of heads, a divisor of H.
        wanted: bool [B, l], the pairs that are computed (None: all); others may be −inf everywhere.

    Returns:
        [B, l, T]; −inf where masked.
    """
    result: Tensor = _LogAttention.apply(queries, keys, mask, heads, wanted)  # type: ignore[no-untyped-call]
    return result


class _LogAttention(torch.autograd.Function):
    """Keeps nothing but its inputs; backward only for the labels of a document whose gradient is not zero."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, mask: Tensor, heads: int, wanted: Tensor | None) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        result = queries.new_full((len(keys), len(queries), keys.shape[1]), -math.inf, dtype=exact)

        def score(document: _Document) -> None:
            selected = torch.arange(len(queries), device=queries.device) if wanted is None else _select(wanted[document.row])
            for labels in document.split(selected) if len(selected) else ():
                found = torch.logsumexp(document.log_softmax(queries[labels]), dim=0).sub_(math.log(heads))
                rows = found.new_full((len(labels), keys.shape[1]), -math.inf)
                rows[:, document.positions] = found[:, : document.real]
                result[document.row].index_copy_(0, labels, rows)

        list(each(score, list(_documents(keys, mask, heads)), queries.device))
        ctx.save_for_backward(queries, keys, mask)
        ctx.heads = heads
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, mask = ctx.saved_tensors
        d_queries, d_keys = (torch.zeros_like(x, dtype=gradient.dtype) for x in (queries, keys))

        def pull_all(document: _Document) -> list[tuple[Tensor, Tensor]]:
            upstream = gradient[document.row][:, document.positions]
            selected = _select((upstream != 0).any(1))
            if not len(selected):
                return []
            found = []
            d_key = torch.zeros_like(document.keys, dtype=gradient.dtype)
            for labels, q in zip(document.split(selected), document.split(queries[selected]), strict=True):
                logs = document.log_softmax(q)
                mean = torch.logsumexp(logs, dim=0).nan_to_num_(neginf=0.0)  # padding: its logs stay −inf
                pull = torch.sub(logs, mean).exp_().mul_(functional.pad(upstream[labels], (0, logs.shape[2] - document.real)))
                pull -= logs.exp_() * pull.sum(-1, keepdim=True)
                pull = pull.mul_(document.scale).to(queries.dtype)
                found.append((labels, torch.matmul(pull, document.keys).transpose(0, 1).flatten(1).to(gradient.dtype)))
                d_key += torch.matmul(pull.mT, document.heads(q))
            d_keys[document.row, document.positions] = d_key.transpose(0, 1).flatten(1)[: document.real]
            return found

        for found in each(pull_all, list(_documents(keys, mask, ctx.heads)), queries.device):
            for labels, d_query in found:
                d_queries.index_add_(0, labels, d_query)
        return d_queries.to(queries.dtype), d_keys.to(keys.dtype), None, None, None


def _select(wanted: Tensor) -> Tensor:
    """The labels that are wanted, and others up to a multiple (`plant_cli.network.compute`); none if none is."""
    count = int(wanted.sum())
    return torch.argsort(~wanted, stable=True)[: round_up(count, LABEL_MULTIPLE)]


class _Document(NamedTuple):
    """Keys of a document at its real positions; in bf16 padded to a multiple t (`plant_cli.network.compute`)."""

    row: int  # in the batch
    positions: slice | Tensor
    real: int  # how many positions
    keys: Tensor  # [h, t, d]
    step: int  # labels at a time

    @property
    def scale(self) -> float:
        return float(self.keys.shape[2] ** -0.5)

    def split(self, values: Tensor) -> tuple[Tensor, ...]:
        """Blocks of what there is for each label [l, …]."""
        return torch.split(values, self.step)

    def heads(self, queries: Tensor) -> Tensor:
        """Queries [l, H] by head [h, l, d]."""
        return queries.view(len(queries), len(self.keys), -1).transpose(0, 1)

    def log_softmax(self, queries: Tensor) -> Tensor:
        """Over positions [h, l, t]; −inf at padding."""
        exact = torch.promote_types(queries.dtype, torch.float32)
        scores = torch.matmul(self.heads(queries), self.keys.mT).to(exact).mul_(self.scale)
        if self.real < scores.shape[2]:
            scores[..., self.real :] = -math.inf
        return torch.log_softmax(scores, dim=-1)


def _documents(keys: Tensor, mask: Tensor, heads: int) -> Iterator[_Document]:
    """The documents that have a real position."""
    for row, real in enumerate(mask):
        positions = real.nonzero().squeeze(1)
        count = len(positions)
        if not count:
            continue
        where = slice(0, count) if int(positions[-1]) == count - 1 else positions
        beyond = round_up(count, LABEL_MULTIPLE) - count if keys.dtype == torch.bfloat16 else 0
        k = functional.pad(keys[row, where], (0, 0, 0, beyond)).view(count + beyond, heads, -1).transpose(0, 1)
        held = SCORES.get(keys.device.type, SCORES["cuda"]) // (heads * k.shape[1])
        yield _Document(row, where, count, k, max(1, held // LABEL_MULTIPLE) * LABEL_MULTIPLE)


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
        from plant_cli.network.attention_kernels import KernelAttention

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

        parts = _Part.all(_fused_documents(keys, values, mask, heads), wanted, len(queries), rows)
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

        parts = ctx.kept or _Part.all(_fused_documents(keys, values, mask, ctx.heads), learnt, len(queries), ctx.rows)
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


class _FusedDocument(NamedTuple):
    """Keys and values of a document at its t real positions; in bf16 padded to a multiple t' (`plant_cli.network.compute`)."""

    row: int  # in the batch
    positions: Tensor  # int64 [t]
    keys: Tensor  # [h, t', d]
    values: Tensor  # [h, t', d]
    padding: Tensor | None  # added to the scores, where there is padding: [1, t'], 0 for real positions and -inf for padding

    def join(self, heads: Tensor) -> Tensor:
        """Numbers [h, t', d] at the real positions, heads side by side [t, H]."""
        return heads[:, : len(self.positions)].transpose(0, 1).flatten(1)


def _fused_documents(keys: Tensor, values: Tensor, mask: Tensor, heads: int) -> Iterator[_FusedDocument]:
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
            yield _FusedDocument(row, positions, k, v, padding)


class _Part(NamedTuple):
    """Some labels of a document, worked on at once."""

    document: _FusedDocument
    labels: slice | Tensor

    @classmethod
    def all(cls, documents: Iterable[_FusedDocument], wanted: Tensor | None, labels: int, most: int) -> list[_Part]:
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


def _gather(queries: Tensor, document: _FusedDocument) -> Tensor:
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
