"""Numerics of label attention: the fused form that is trained, and its logarithm.

Throughout, queries q and directions g are [L, H], keys k and values v [B, T, H], with the heads
side by side in H. The mask, bool [B, T], is true for real positions. `wanted`, bool [B, L], names
the pairs of document and label that are computed (None: all).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from plant_network.compute import LABEL_MULTIPLE, each, round_up, uses_triton
from torch import Tensor
from torch.nn import functional


def pooling_matrix(hidden: int, bins: int) -> Tensor:
    """The matrix [bins, hidden] in fp64 whose product with a vector is `AdaptiveAvgPool1d(bins)` of
    it.

    Bin i averages the dimensions from `floor(i·hidden/bins)` up to `ceil((i+1)·hidden/bins)`. Bins
    overlap where `bins` does not divide `hidden`.
    """
    bin_number = torch.arange(bins).unsqueeze(1)
    start = bin_number * hidden // bins
    end = -(-(bin_number + 1) * hidden // bins)
    dimension = torch.arange(hidden)
    return ((dimension >= start) & (dimension < end)).double() / (end - start)


BLOCK_SCORES = (
    1 << 18
)  # scores (heads x labels x positions) held at a time: what stays in a processor's cache
LOG_ATTENTION_SCORES = {
    "cpu": BLOCK_SCORES,
    "cuda": 1 << 26,
}  # the same for log attention, by device
ATTENTION_NUMBERS = {"cpu": 1 << 20, "cuda": 1 << 23}
"""Gathered numbers (labels x H) held at a time: 4 MB on a CPU, 32 MB on a GPU; the backward
pass holds a few times as much.
"""
SCORES_IN_MEMORY = 1 << 22
"""Gathered numbers (wanted pairs x H) that are kept for the backward pass; of more, and where
all pairs are wanted, none.
"""


def attend(queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None = None) -> Tensor:
    """softmax(q·k / √d) v for each head: [h, l, d] for q [h, l, d] and k, v [h, t, d], or all with
    an axis of documents before these.

    Padding, [1, t] or with documents [B, 1, 1, t], is added to the scores: 0, or −inf for some
    positions. In bf16, torch's fused attention is fast only on processors with AMX; on others
    `attend_in_blocks` takes its place.
    """
    if queries.device.type == "cpu" and queries.dtype == torch.bfloat16 and not has_amx():
        return attend_in_blocks(queries, keys, values, padding)
    return functional.scaled_dot_product_attention(queries, keys, values, attn_mask=padding)


def attend_in_blocks(
    queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None = None
) -> Tensor:
    """The result of `attend`, by plain products of as many labels as fit the processor's cache;
    softmax and sums in fp32 or better.
    """
    if queries.dim() > 3:  # the scores of one document fit the cache
        paddings = [padding] * len(queries) if padding is None or padding.dim() == 2 else padding
        return torch.stack(
            [
                attend_in_blocks(*document)
                for document in zip(queries, keys, values, paddings, strict=True)
            ]
        )
    result: Tensor = _Blocks.apply(queries, keys, values, padding)  # type: ignore[no-untyped-call]
    return result


@cache
def has_amx() -> bool:
    """Whether this processor multiplies tiles of bf16 (Intel's AMX)."""
    return bool(torch.cpu._is_amx_tile_supported())


class _Blocks(torch.autograd.Function):
    """Keeps only inputs and result."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, padding: Tensor | None
    ) -> Tensor:
        attended = torch.empty_like(queries)
        for block in _blocks(queries, keys):
            attended[..., block, :] = torch.matmul(
                _weigh(queries[..., block, :], keys, padding).to(values.dtype), values
            )
        ctx.save_for_backward(queries, keys, values, padding, attended)
        return attended

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, padding, attended = ctx.saved_tensors
        exact = torch.promote_types(keys.dtype, torch.float32)
        scale = keys.shape[-1] ** -0.5
        on_average = (gradient.to(exact) * attended).sum(-1, keepdim=True)
        d_queries = torch.empty_like(queries)
        d_keys, d_values = (torch.zeros_like(x, dtype=exact) for x in (keys, values))
        for block in _blocks(queries, keys):
            q, upstream = queries[..., block, :], gradient[..., block, :]
            weights = _weigh(q, keys, padding)
            pull = (
                torch.matmul(upstream, values.mT)
                .to(exact)
                .sub_(on_average[..., block, :])
                .mul_(weights)
                .mul_(scale)
                .to(keys.dtype)
            )
            d_queries[..., block, :] = torch.matmul(pull, keys)
            d_keys += torch.matmul(pull.mT, q)
            d_values += torch.matmul(weights.to(values.dtype).mT, upstream)
        return d_queries, d_keys.to(keys.dtype), d_values.to(values.dtype), None


def _blocks(queries: Tensor, keys: Tensor) -> Iterator[slice]:
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


def log_attention(
    queries: Tensor, keys: Tensor, mask: Tensor, *, heads: int, wanted: Tensor | None = None
) -> Tensor:
    """Log of the attention of each label on each position [B, l, T], averaged over heads; −inf
    where masked, and maybe where not wanted.

    Computed from log-softmax and log-sum-exp in fp32 or better, so that a position with next to no
    attention keeps a finite logarithm and a gradient. Besides inputs and result it holds a few
    times `LOG_ATTENTION_SCORES` numbers.
    """
    if queries.device.type in ONE_BY_ONE:
        one_by_one: Tensor = _LogAttention.apply(queries, keys, mask, heads, wanted)  # type: ignore[no-untyped-call]
        return one_by_one
    together: Tensor = _TogetherLogAttention.apply(queries, keys, mask, heads)  # type: ignore[no-untyped-call]
    return together


ONE_BY_ONE = {"cpu"}
"""Devices on which log attention goes document by document, for the wanted labels of each;
elsewhere all are computed in few products.
"""


class _TogetherLogAttention(torch.autograd.Function):
    """All pairs of as many documents and labels as may be held at a time; waits for nothing
    that is computed. Keeps only its inputs.
    """

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, mask: Tensor, heads: int) -> Tensor:
        result = queries.new_empty(
            len(keys),
            len(queries),
            keys.shape[1],
            dtype=torch.promote_types(queries.dtype, torch.float32),
        )
        for documents, labels in _pairs_at_once(queries, keys, heads):
            logs = weigh_together(queries[labels], keys[documents], mask[documents], heads)
            result[documents, labels] = torch.logsumexp(logs, dim=1).sub_(math.log(heads))
        ctx.save_for_backward(queries, keys, mask)
        ctx.heads = heads
        return result.masked_fill_(~mask.unsqueeze(1), -math.inf)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, mask = ctx.saved_tensors
        d_queries, d_keys = (torch.zeros_like(x, dtype=gradient.dtype) for x in (queries, keys))
        for documents, labels in _pairs_at_once(queries, keys, ctx.heads):
            q, k = queries[labels], keys[documents]
            logs = weigh_together(q, k, mask[documents], ctx.heads)
            upstream = (
                gradient[documents, labels]
                .masked_fill(~mask[documents].unsqueeze(1), 0)
                .unsqueeze(1)
            )
            pull = torch.logsumexp(logs, dim=1, keepdim=True).nan_to_num_(
                neginf=0.0
            )  # padding: its logs stay −inf
            pull = torch.sub(logs, pull).exp_().mul_(upstream)
            pull -= logs.exp_() * pull.sum(-1, keepdim=True)
            pull = pull.mul_((k.shape[2] // ctx.heads) ** -0.5).to(queries.dtype)
            d_query = torch.matmul(pull, split_heads(k, ctx.heads).transpose(1, 2)).sum(
                0, dtype=gradient.dtype
            )
            d_queries[labels] += d_query.transpose(0, 1).flatten(1)
            d_key = torch.matmul(pull.mT, split_heads(q, ctx.heads).transpose(0, 1))
            d_keys[documents] += d_key.transpose(1, 2).flatten(2)
        return d_queries.to(queries.dtype), d_keys.to(keys.dtype), None, None


def _pairs_at_once(queries: Tensor, keys: Tensor, heads: int) -> Iterator[tuple[slice, slice]]:
    """Documents and labels, block by block."""
    held = LOG_ATTENTION_SCORES.get(queries.device.type, LOG_ATTENTION_SCORES["cuda"])
    pairs = max(1, held // (heads * keys.shape[1]))
    labels = min(len(queries), pairs)
    documents = max(1, pairs // max(1, labels))
    for first in range(0, len(keys), documents):
        for start in range(0, len(queries), max(1, labels)):
            yield slice(first, first + documents), slice(start, start + labels)


def split_heads(table: Tensor, heads: int) -> Tensor:
    """[…, H] as […, h, d]."""
    return table.reshape(*table.shape[:-1], heads, table.shape[-1] // heads)


def weigh_together(
    queries: Tensor, keys: Tensor, mask: Tensor, heads: int, added: Tensor | None = None
) -> Tensor:
    """Log of the attention [B, h, l, T] of each head; −inf at padding. A document of padding alone
    counts as if all were real.

    Args:
        added: what is added to the scores [B, h, l, T], if anything.
    """
    by_head = split_heads(queries, heads).transpose(0, 1)
    scores = torch.matmul(by_head, split_heads(keys, heads).permute(0, 2, 3, 1))
    scores = scores.to(torch.promote_types(queries.dtype, torch.float32)).mul_(
        by_head.shape[2] ** -0.5
    )
    if added is not None:
        scores = scores + added
    real = mask | ~mask.any(1, keepdim=True)
    return torch.log_softmax(scores.masked_fill_(~real[:, None, None], -math.inf), dim=-1)


class _LogAttention(torch.autograd.Function):
    """Keeps only its inputs; backward only for the labels of a document whose gradient is not
    zero.
    """

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, mask: Tensor, heads: int, wanted: Tensor | None
    ) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        result = queries.new_full((len(keys), len(queries), keys.shape[1]), -math.inf, dtype=exact)

        def score(document: _Document) -> None:
            selected = (
                torch.arange(len(queries), device=queries.device)
                if wanted is None
                else _select(wanted[document.row])
            )
            for labels in torch.split(selected, document.labels_at_once) if len(selected) else ():
                logs = torch.logsumexp(document.log_softmax(queries[labels]), dim=0).sub_(
                    math.log(heads)
                )
                rows = logs.new_full((len(labels), keys.shape[1]), -math.inf)
                rows[:, document.positions] = logs[:, : document.real]
                result[document.row].index_copy_(0, labels, rows)

        list(each(score, _documents(mask, heads, keys), queries.device))
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
            pulled = []
            d_key = torch.zeros_like(document.keys, dtype=gradient.dtype)
            for labels in torch.split(selected, document.labels_at_once) if len(selected) else ():
                q = queries[labels]
                logs = document.log_softmax(q)
                mean = torch.logsumexp(logs, dim=0).nan_to_num_(
                    neginf=0.0
                )  # padding: its logs stay −inf
                pull = (
                    torch.sub(logs, mean)
                    .exp_()
                    .mul_(functional.pad(upstream[labels], (0, logs.shape[2] - document.real)))
                )
                pull -= logs.exp_() * pull.sum(-1, keepdim=True)
                pull = pull.mul_(document.scale).to(queries.dtype)
                pulled.append(
                    (
                        labels,
                        torch.matmul(pull, document.keys)
                        .transpose(0, 1)
                        .flatten(1)
                        .to(gradient.dtype),
                    )
                )
                d_key += torch.matmul(pull.mT, document.by_head(q))
            if pulled:
                d_keys[document.row, document.positions] = document.side_by_side(d_key)
            return pulled

        for pulled in each(pull_all, _documents(mask, ctx.heads, keys), queries.device):
            for labels, d_query in pulled:
                d_queries.index_add_(0, labels, d_query)
        return d_queries.to(queries.dtype), d_keys.to(keys.dtype), None, None, None


def _select(wanted: Tensor) -> Tensor:
    """The labels that are wanted, and others up to a multiple (`plant_network.compute`);
    none if none is.
    """
    return torch.argsort(~wanted, stable=True)[: round_up(int(wanted.sum()), LABEL_MULTIPLE)]


class _Document(NamedTuple):
    """Keys and values of a document at its real positions; in bf16 padded to a multiple t
    (`plant_network.compute`).
    """

    row: int  # in the batch
    positions: Tensor  # int64 [real]
    keys: Tensor  # [h, t, d]
    values: Tensor = torch.empty(0)  # [h, t, d]; log attention needs none

    @property
    def real(self) -> int:
        return len(self.positions)

    @property
    def scale(self) -> float:
        return float(self.keys.shape[2] ** -0.5)

    @property
    def labels_at_once(self) -> int:
        held = LOG_ATTENTION_SCORES.get(self.keys.device.type, LOG_ATTENTION_SCORES["cuda"]) // (
            len(self.keys) * self.keys.shape[1]
        )
        return max(1, held // LABEL_MULTIPLE) * LABEL_MULTIPLE

    @property
    def padding(self) -> Tensor | None:
        """Added to the scores [1, t]: 0 for real positions and −inf for padding; None without
        padding.
        """
        added = self.keys.shape[1] - self.real
        return (
            functional.pad(self.keys.new_zeros(1, self.real), (0, added), value=-torch.inf)
            if added
            else None
        )

    def by_head(self, queries: Tensor) -> Tensor:
        """[l, H] as [h, l, d]."""
        return queries.view(len(queries), len(self.keys), -1).transpose(0, 1)

    def side_by_side(self, by_head: Tensor) -> Tensor:
        """[h, t, d] at the real positions as [real, H]."""
        return by_head[:, : self.real].transpose(0, 1).flatten(1)

    def log_softmax(self, queries: Tensor) -> Tensor:
        """Over positions [h, l, t]; −inf at padding."""
        exact = torch.promote_types(queries.dtype, torch.float32)
        scores = torch.matmul(self.by_head(queries), self.keys.mT).to(exact).mul_(self.scale)
        scores[..., self.real :] = -math.inf
        return torch.log_softmax(scores, dim=-1)


def _documents(mask: Tensor, heads: int, *tables: Tensor) -> list[_Document]:
    """The documents that have a real position, of tables of keys, or of keys and values [B, T,
    H].
    """
    documents = []
    for row, real in enumerate(mask):
        positions = real.nonzero().squeeze(1)
        count = len(positions)
        if count:
            added = (
                round_up(count, LABEL_MULTIPLE) - count if tables[0].dtype == torch.bfloat16 else 0
            )
            padded = (functional.pad(table[row, positions], (0, 0, 0, added)) for table in tables)
            documents.append(
                _Document(
                    row,
                    positions,
                    *(x.view(count + added, heads, -1).transpose(0, 1) for x in padded),
                )
            )
    return documents


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
    """Each label's direction times the attention-weighted mean of the values: logits [B, L] in
    fp32, or fp64 for fp64 inputs.

    A document without real positions gets zeros; a pair that is not wanted gets any number, without
    gradient. Matrix products run in the type of the inputs (bf16: products of bf16, summed in
    fp32); softmax in fp32 or better.

    Args:
        elements: gathered numbers held at a time, the bound on memory (default:
            `ATTENTION_NUMBERS`); ignored by Triton's kernels.
    """
    result: Tensor
    if torch.onnx.is_in_onnx_export():
        return _attend_in_graph(queries, directions, keys, values, mask, heads)
    if uses_triton(queries.device.type):
        from plant_decoders.attention_kernels import KernelAttention

        result = KernelAttention.apply(queries, directions, keys, values, mask, heads, wanted)  # type: ignore[no-untyped-call]
    else:
        rows = labels_held(elements, queries.shape[1], queries.device)
        result = _LabelAttention.apply(queries, directions, keys, values, mask, heads, rows, wanted)  # type: ignore[no-untyped-call]
    return result


def _attend_in_graph(
    queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, heads: int
) -> Tensor:
    """The same by operations that ONNX has."""
    size, (documents, positions) = queries.shape[1] // heads, keys.shape[:2]
    ours, wanted = (
        table.view(-1, heads, size).permute(1, 0, 2) for table in (queries, directions)
    )  # [h, L, d]
    theirs, given = (
        table.view(documents, positions, heads, size).permute(0, 2, 3, 1)
        for table in (keys, values)
    )  # [B, h, d, T]
    there = mask[:, None, None]
    weights = torch.softmax((ours @ theirs / size**0.5).masked_fill(~there, -1e30), -1) * there
    return (weights * (wanted @ given)).sum((1, 3))


def labels_held(elements: int | None, size: int, device: torch.device) -> int:
    """Labels at a time, each with so many numbers, of `elements` numbers (None:
    `ATTENTION_NUMBERS` of the device).
    """
    return (
        max(
            (elements or ATTENTION_NUMBERS.get(device.type, ATTENTION_NUMBERS["cuda"]))
            // size
            // LABEL_MULTIPLE,
            1,
        )
        * LABEL_MULTIPLE
    )


class _LabelAttention(torch.autograd.Function):
    """Keeps its inputs, and the gathered numbers of few wanted pairs; `rows` labels at a time."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        queries, directions, keys, values, mask, heads, rows, wanted = inputs
        exact = torch.promote_types(queries.dtype, torch.float32)
        logits: Tensor = queries.new_zeros(len(keys), len(queries), dtype=exact)
        keeps = (
            wanted is not None
            and any(ctx.needs_input_grad)
            and int(wanted.sum()) * queries.shape[1] <= SCORES_IN_MEMORY
        )

        def score(part: _Part) -> _Gathered | None:
            kept = _Gathered.of(queries, part) if keeps else None
            gathered = (
                _gather(take_rows(queries, part.labels), part.document)
                if kept is None
                else kept.means.detach()
            )
            logits[part.document.row, part.labels] = (
                gathered.to(exact) * take_rows(directions, part.labels)
            ).sum(-1)
            return kept

        parts = _make_parts(_documents(mask, heads, keys, values), wanted, len(queries), rows)
        ctx.kept = [kept for kept in each(score, parts, queries.device) if kept is not None]
        ctx.save_for_backward(queries, directions, keys, values, mask, wanted)
        ctx.heads, ctx.rows = heads, rows
        return logits

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, mask, wanted = ctx.saved_tensors
        queries, directions, keys, values = inputs
        d_queries, d_directions, d_keys, d_values = (
            torch.zeros_like(x, dtype=gradient.dtype) for x in inputs
        )
        learnt = find_learnt(gradient, wanted)

        def pull(part: _Part | _Gathered) -> tuple[_Part, list[Tensor]]:
            gathered = part if isinstance(part, _Gathered) else _Gathered.of(queries, part)
            document, labels = gathered.part
            upstream = gradient[document.row, labels].unsqueeze(1)
            to_means = (take_rows(directions, labels) * upstream).to(gathered.means.dtype)
            dq, dk, dv = torch.autograd.grad(
                gathered.means, gathered.leaves, to_means, retain_graph=bool(ctx.kept)
            )
            pulled = (
                dq,
                gathered.means.detach() * upstream,
                document.side_by_side(dk),
                document.side_by_side(dv),
            )
            return gathered.part, [x.to(gradient.dtype) for x in pulled]

        parts = ctx.kept or _make_parts(
            _documents(mask, ctx.heads, keys, values), learnt, len(queries), ctx.rows
        )
        for (document, labels), (dq, dg, dk, dv) in each(pull, parts, queries.device):
            add_rows(d_queries, labels, dq)
            add_rows(d_directions, labels, dg)
            add_rows(d_keys[document.row], document.positions, dk)
            add_rows(d_values[document.row], document.positions, dv)
        return (
            *(x.to(queries.dtype) for x in (d_queries, d_directions, d_keys, d_values)),
            None,
            None,
            None,
            None,
        )


def find_learnt(gradient: Tensor, wanted: Tensor | None) -> Tensor:
    """The pairs [B, L] that have a gradient [B, L], of those that were computed."""
    return gradient != 0 if wanted is None else (gradient != 0) & wanted


def find_labels(
    wanted: Tensor | None, row: int, labels: int, most: int
) -> list[slice] | list[Tensor]:
    """The labels of a document that are computed, `most` at a time: slices where these are all
    labels.
    """
    chosen = None if wanted is None else wanted[row].nonzero().squeeze(1)
    if chosen is None or len(chosen) == labels:
        return [slice(start, start + most) for start in range(0, labels, most)]
    return list(torch.split(chosen, most)) if len(chosen) else []


def look_up_labels(table: Tensor, labels: Tensor | None, *, sparse: bool) -> Tensor:
    """Rows of a table [L, …] or of a vector [L]; all of them for None. `sparse`: its gradient
    holds these rows alone.
    """
    if labels is None:
        return table
    if table.dim() == 1:
        return table.gather(0, labels, sparse_grad=sparse)
    return functional.embedding(labels, table, sparse=sparse)


def take_rows(table: Tensor, rows: slice | Tensor) -> Tensor:
    """Some rows of a table."""
    return table[rows] if isinstance(rows, slice) else table.index_select(0, rows)


def add_rows(table: Tensor, rows: slice | Tensor, numbers: Tensor) -> None:
    """Add to some rows of a table, each named once."""
    if isinstance(rows, slice):
        table[rows] += numbers
    else:
        table.index_add_(0, rows, numbers)


class _Part(NamedTuple):
    """Some labels of a document, worked on at once."""

    document: _Document
    labels: slice | Tensor


def _make_parts(
    documents: list[_Document], wanted: Tensor | None, labels: int, most: int
) -> list[_Part]:
    return [
        _Part(document, some)
        for document in documents
        for some in find_labels(wanted, document.row, labels, most)
    ]


class _Gathered(NamedTuple):
    """The means that some labels gather from a document, ready for the gradient."""

    part: _Part
    leaves: list[Tensor]  # queries, keys, values
    means: Tensor  # [l, H]

    @classmethod
    def of(cls, queries: Tensor, part: _Part) -> _Gathered:
        document = part.document
        leaves = [
            x.detach().requires_grad_()
            for x in (take_rows(queries, part.labels), document.keys, document.values)
        ]
        with torch.enable_grad():
            return cls(
                part,
                leaves,
                _gather(leaves[0], document._replace(keys=leaves[1], values=leaves[2])),
            )


def _gather(queries: Tensor, document: _Document) -> Tensor:
    """Attention-weighted means [l, H] of a document's values for queries [l, H]; in groups of
    labels where there are threads for them.
    """
    labels, (heads, _, size) = len(queries), document.keys.shape
    groups = 1
    while (
        queries.device.type == "cpu"
        and 2 * groups * heads <= torch.get_num_threads()
        and groups < LABEL_MULTIPLE
    ):
        groups *= 2
    q = (
        functional.pad(queries, (0, 0, 0, round_up(labels, LABEL_MULTIPLE) - labels))
        .view(groups, -1, heads, size)
        .transpose(1, 2)
    )
    k, v = (x.expand(groups, -1, -1, -1) for x in (document.keys, document.values))
    gathered = attend(q, k, v, document.padding)
    return gathered.transpose(1, 2).reshape(-1, heads * size)[:labels]
