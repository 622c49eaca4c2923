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

SCORES = {"cpu": 1 << 18, "cuda": 1 << 26}
"""Scores (heads x labels x positions) held at a time: on a CPU what stays in its cache."""


def log_attention(queries: Tensor, keys: Tensor, mask: Tensor, *, heads: int) -> Tensor:
    """Log of the attention of each label on each position, averaged over heads.

    Computed from log-softmax and log-sum-exp in fp32 or better, so that a position with next to no attention keeps a finite
    logarithm and a gradient. Beside inputs and result it holds a few times `SCORES` numbers.

    Args:
        queries: q [l, H], heads side by side.
        keys: k [B, T, H].
        mask: bool [B, T], true for real positions.
        heads: number of heads, a divisor of H.

    Returns:
        [B, l, T]; −inf where masked.
    """
    result: Tensor = _LogAttention.apply(queries, keys, mask, heads)  # type: ignore[no-untyped-call]
    return result


class _LogAttention(torch.autograd.Function):
    """Keeps nothing but its inputs."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, mask: Tensor, heads: int) -> Tensor:
        exact = torch.promote_types(queries.dtype, torch.float32)
        result = queries.new_full((len(keys), len(queries), keys.shape[1]), -math.inf, dtype=exact)
        for block in _blocks(queries, keys, mask, heads):
            found = torch.logsumexp(block.logs, dim=0).sub_(math.log(heads))
            result[block.document, block.labels, block.positions] = found[:, : block.real]
        ctx.save_for_backward(queries, keys, mask)
        ctx.heads = heads
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, mask = ctx.saved_tensors
        d_queries, d_keys = (torch.zeros_like(x, dtype=gradient.dtype) for x in (queries, keys))
        for block in _blocks(queries, keys, mask, ctx.heads):
            upstream = gradient[block.document, block.labels, block.positions]
            upstream = functional.pad(upstream, (0, block.logs.shape[2] - block.real))
            mean = torch.logsumexp(block.logs, dim=0).nan_to_num_(neginf=0.0)  # padding: its logs stay −inf
            pull = torch.sub(block.logs, mean).exp_().mul_(upstream)
            pull -= block.logs.exp() * pull.sum(-1, keepdim=True)
            pull = pull.mul_(block.scale).to(queries.dtype)
            d_queries[block.labels] += torch.matmul(pull, block.keys).transpose(0, 1).flatten(1)
            part = torch.matmul(pull.mT, block.queries).transpose(0, 1).flatten(1)
            d_keys[block.document, block.positions] += part[: block.real]
        return d_queries.to(queries.dtype), d_keys.to(keys.dtype), None, None


class _Block(NamedTuple):
    """A block of labels on the real positions of a document; in bf16 padded to a multiple t (`plant_cli.base.padding`)."""

    document: int
    labels: slice
    positions: slice | Tensor
    real: int  # how many positions
    queries: Tensor  # [h, l, d]
    keys: Tensor  # [h, t, d]
    logs: Tensor  # log-softmax over positions [h, l, t]
    scale: float


def _blocks(queries: Tensor, keys: Tensor, mask: Tensor, heads: int) -> Iterator[_Block]:
    """All blocks of the documents that have a real position."""
    exact, size = torch.promote_types(queries.dtype, torch.float32), queries.shape[1] // heads
    scale = size**-0.5
    q = queries.view(-1, heads, size).transpose(0, 1)
    for document, real in enumerate(mask):
        positions = real.nonzero().squeeze(1)
        count = len(positions)
        if not count:
            continue
        where = slice(0, count) if int(positions[-1]) == count - 1 else positions
        beyond = round_up(count, LABEL_MULTIPLE) - count if keys.dtype == torch.bfloat16 else 0
        k = functional.pad(keys[document, where], (0, 0, 0, beyond)).view(-1, heads, size).transpose(0, 1)
        held = SCORES.get(queries.device.type, SCORES["cuda"]) // (heads * k.shape[1])
        step = max(1, held // LABEL_MULTIPLE) * LABEL_MULTIPLE
        for start in range(0, len(queries), step):
            labels = slice(start, min(start + step, len(queries)))
            scores = torch.matmul(q[:, labels], k.mT).to(exact).mul_(scale)
            if beyond:
                scores[..., count:] = -math.inf
            yield _Block(document, labels, where, count, q[:, labels], k, torch.log_softmax(scores, dim=-1), scale)
