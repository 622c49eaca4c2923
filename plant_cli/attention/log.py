"""The logarithm of label attention, averaged over heads: what stage 1 ranks words by.

Work goes document by document (each cut to its real positions) and in blocks of labels: no array of all heads, labels and positions
is ever made. The backward pass computes the scores again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.base.padding import LABEL_MULTIPLE, round_up
from plant_cli.base.threads import each

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
    """The labels that are wanted, and others up to a multiple (`plant_cli.base.padding`); none if none is."""
    count = int(wanted.sum())
    return torch.argsort(~wanted, stable=True)[: round_up(count, LABEL_MULTIPLE)]


class _Document(NamedTuple):
    """Keys of a document at its real positions; in bf16 padded to a multiple t (`plant_cli.base.padding`)."""

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
