"""Label attention with scalar values as Triton kernels: blocks of scores that never leave the chip.

A program takes a block of labels (or of positions) of one head of one document and walks over the other side. Forward, the softmax
runs online: the highest score so far, the sum of the weights and the weighted sum of the values are carried along. Beside its
inputs the backward pass is left two numbers for each document, head and label: the mean and the level, the logarithm of the
softmax's denominator. It computes the scores again, once towards queries and directions and once towards keys and values, and
visits only labels whose gradient is not zero. Products take the inputs as they are and sum in fp32 or better, as does the softmax.

Wide heads are multiplied `STEP` dimensions at a time, and their gradients are summed `WIDTH` dimensions at a time: a wider head is
visited again for each part.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LARGE_LAUNCH = {"LABELS": 64, "POSITIONS": 64, "STEP": 64, "num_warps": 8, "num_stages": 2}
SMALL_LAUNCH = {"LABELS": 32, "POSITIONS": 32, "STEP": 16, "num_warps": 4, "num_stages": 2}
"""Block sizes for inputs of 16 bits and of more: about as large as registers hold, and within the shared memory of any card."""

WIDTH_BYTES = 512
"""The part of a head whose gradients one program sums: 256 dimensions of bf16, 128 of fp32, again what registers hold."""


class KernelAttention(torch.autograd.Function):
    """The function of `label_attention` by kernels; the order in which gradients of labels are summed over documents is not fixed."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, directions: Tensor, keys: Tensor, values: Tensor, mask: Tensor, heads: int) -> Tensor:
        """Result of `label_attention` [B, L]."""
        inputs = [x.contiguous() for x in (queries, directions, keys, values, mask)]
        labels, (documents, positions, _) = len(queries), keys.shape
        # Positions beyond a document's last real one are not visited.
        ends = (mask * torch.arange(1, positions + 1, device=mask.device, dtype=torch.int32)).amax(1)
        means, levels = queries.new_empty(2, documents, heads, labels, dtype=torch.promote_types(queries.dtype, torch.float32))
        block = constants(queries, heads, backward=False)
        grid = triton.cdiv(labels, block["LABELS"]), heads, documents
        with torch.cuda.device_of(queries):  # type: ignore[no-untyped-call]  # Triton launches on the current card
            _forward[grid](*inputs, ends, means, levels, labels, positions, **block)
        ctx.save_for_backward(*inputs, ends, means, levels)
        result: Tensor = means.sum(1)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of queries, directions, keys and values."""
        queries, directions, keys, values, mask, ends, means, levels = ctx.saved_tensors
        (documents, heads, labels), positions = means.shape, keys.shape[1]
        upstream = gradient.to(means.dtype).contiguous()
        selected = torch.argsort(upstream == 0, dim=1, stable=True)  # labels with a gradient before the others
        counts = (upstream != 0).sum(1, dtype=torch.int32)
        inputs = (queries, directions, keys, values, mask, ends, means, levels, upstream, selected, counts)
        d_queries, d_directions = (torch.zeros_like(x, dtype=means.dtype) for x in (queries, directions))
        d_keys, d_values = torch.zeros_like(keys), torch.zeros_like(values)
        block = constants(queries, heads, backward=True)
        parts = heads * triton.cdiv(block["SIZE"], block["WIDTH"])
        label_grid, position_grid = (
            (triton.cdiv(n, block[side]), parts, documents) for n, side in ((labels, "LABELS"), (positions, "POSITIONS"))
        )
        with torch.cuda.device_of(queries):  # type: ignore[no-untyped-call]
            _label_gradients[label_grid](*inputs, d_queries, d_directions, labels, positions, **block)
            _position_gradients[position_grid](*inputs, d_keys, d_values, labels, positions, **block)
        return d_queries.to(queries.dtype), d_directions.to(queries.dtype), d_keys, d_values, None, None


def constants(queries: Tensor, heads: int, *, backward: bool) -> dict[str, Any]:
    """What the kernels are compiled for; products in fp32 follow `torch.get_float32_matmul_precision`."""
    size = queries.shape[1] // heads
    exact = tl.float64 if queries.dtype == torch.float64 else tl.float32
    coarse = queries.dtype == torch.float32 and torch.get_float32_matmul_precision() != "highest"
    block = LARGE_LAUNCH if queries.itemsize == 2 else SMALL_LAUNCH
    if backward:
        part = {"WIDTH": min(WIDTH_BYTES // queries.itemsize, max(16, triton.next_power_of_2(size)))}
    else:
        part = {"LABELS": 2 * block["LABELS"]}  # no gradients in hand: room for more scores
    precision = "tf32" if coarse else "ieee"
    return {"HEADS": heads, "SIZE": size, "SCALE": size**-0.5, "EXACT": exact, "PRECISION": precision, **block, **part}


@triton.jit
def _product(
    left: tl.tensor,
    right: tl.tensor,
    left_real: tl.tensor,
    right_real: tl.tensor,
    SIZE: tl.constexpr,
    STEP: tl.constexpr,
    EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> tl.tensor:
    """Products [n, m] of rows of SIZE numbers, by pointers to their beginnings: left [n], right [m]."""
    total = tl.zeros([left.shape[0], right.shape[0]], EXACT)
    for first in range(0, SIZE, STEP):
        dimension = first + tl.arange(0, STEP)
        within = dimension < SIZE
        a = tl.load(left[:, None] + dimension[None, :], mask=left_real[:, None] & within[None, :], other=0.0)
        b = tl.load(right[None, :] + dimension[:, None], mask=right_real[None, :] & within[:, None], other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
    return total


@triton.jit
def _forward(
    queries: tl.tensor,
    directions: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    mask: tl.tensor,
    ends: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    labels: int,
    positions: int,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    SCALE: tl.constexpr,
    EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
    LABELS: tl.constexpr,
    POSITIONS: tl.constexpr,
    STEP: tl.constexpr,
) -> None:
    """Means and levels [B, heads, L] of a block of labels."""
    head, document = tl.program_id(1), tl.program_id(2).to(tl.int64)
    label = tl.program_id(0).to(tl.int64) * LABELS + tl.arange(0, LABELS)
    known = label < labels
    of_label = (label * HEADS + head) * SIZE
    highest = tl.full([LABELS], -1e38, EXACT)  # below every score, but finite: a block without a real position leaves it as it is
    total = tl.zeros([LABELS], EXACT)
    worth = tl.zeros([LABELS], EXACT)
    for first in range(0, tl.load(ends + document), POSITIONS):
        position = first + tl.arange(0, POSITIONS)
        row = document * positions + position
        real = tl.load(mask + row, mask=position < positions, other=0) != 0
        at = (row * HEADS + head) * SIZE
        scores = _product(queries + of_label, keys + at, known, real, SIZE, STEP, EXACT, PRECISION) * SCALE
        scores = tl.where(real[None, :], scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        fade = tl.exp(highest - higher)
        weights = tl.exp(scores - higher[:, None])
        value = _product(directions + of_label, values + at, known, real, SIZE, STEP, EXACT, PRECISION)
        total = total * fade + tl.sum(weights, 1)
        worth = worth * fade + tl.sum(weights * value, 1)
        highest = higher
    total = tl.where(total > 0, total, 1.0)  # a document without a real position
    cell = (document * HEADS + head) * labels + label
    tl.store(means + cell, worth / total, mask=known)
    tl.store(levels + cell, highest + tl.log(total), mask=known)


@triton.jit
def _pulls(
    left_key: tl.tensor,
    right_key: tl.tensor,
    left_value: tl.tensor,
    right_value: tl.tensor,
    left_real: tl.tensor,
    right_real: tl.tensor,
    level: tl.tensor,
    mean: tl.tensor,
    SIZE: tl.constexpr,
    STEP: tl.constexpr,
    SCALE: tl.constexpr,
    EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """How the mean of a label moves with the value of a position, p, and with its score, p·(u − mean): labels and positions on either side.

    Levels and means are [n, 1] or [1, m].
    """
    scores = _product(left_key, right_key, left_real, right_real, SIZE, STEP, EXACT, PRECISION) * SCALE
    weights = tl.where(left_real[:, None] & right_real[None, :], tl.exp(scores - level), 0.0)
    value = _product(left_value, right_value, left_real, right_real, SIZE, STEP, EXACT, PRECISION)
    return weights, weights * (value - mean)


@triton.jit
def _label_gradients(
    queries: tl.tensor,
    directions: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    mask: tl.tensor,
    ends: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    upstream: tl.tensor,
    selected: tl.tensor,
    counts: tl.tensor,
    d_queries: tl.tensor,
    d_directions: tl.tensor,
    labels: int,
    positions: int,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    SCALE: tl.constexpr,
    EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
    LABELS: tl.constexpr,
    POSITIONS: tl.constexpr,
    STEP: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """Adds what one document gives to the gradients [L, H] of a block of its selected labels, WIDTH positions of a head."""
    PARTS: tl.constexpr = (SIZE + WIDTH - 1) // WIDTH
    head, document = tl.program_id(1) // PARTS, tl.program_id(2).to(tl.int64)
    column = tl.program_id(1) % PARTS * WIDTH + tl.arange(0, WIDTH)
    slot = tl.program_id(0) * LABELS + tl.arange(0, LABELS)
    known = slot < tl.load(counts + document)
    if tl.program_id(0) * LABELS < tl.load(counts + document):
        label = tl.load(selected + document * labels + slot, mask=known, other=0)
        cell = (document * HEADS + head) * labels + label
        mean = tl.load(means + cell, mask=known, other=0.0)[:, None]
        level = tl.load(levels + cell, mask=known, other=0.0)[:, None]
        of_label = (label * HEADS + head) * SIZE
        d_query = tl.zeros([LABELS, WIDTH], EXACT)
        d_direction = tl.zeros([LABELS, WIDTH], EXACT)
        for first in range(0, tl.load(ends + document), POSITIONS):
            position = first + tl.arange(0, POSITIONS)
            row = document * positions + position
            real = tl.load(mask + row, mask=position < positions, other=0) != 0
            at = (row * HEADS + head) * SIZE
            weights, pulls = _pulls(
                queries + of_label,
                keys + at,
                directions + of_label,
                values + at,
                known,
                real,
                level,
                mean,
                SIZE,
                STEP,
                SCALE,
                EXACT,
                PRECISION,
            )
            there = real[:, None] & (column < SIZE)[None, :]
            key = tl.load(keys + at[:, None] + column[None, :], mask=there, other=0.0)
            d_query = tl.dot(pulls.to(key.dtype), key, d_query, input_precision=PRECISION)
            value = tl.load(values + at[:, None] + column[None, :], mask=there, other=0.0)
            d_direction = tl.dot(weights.to(value.dtype), value, d_direction, input_precision=PRECISION)
        gradient = tl.load(upstream + document * labels + label, mask=known, other=0.0)[:, None]
        there = known[:, None] & (column < SIZE)[None, :]
        tl.atomic_add(d_queries + of_label[:, None] + column[None, :], d_query * gradient * SCALE, mask=there)
        tl.atomic_add(d_directions + of_label[:, None] + column[None, :], d_direction * gradient, mask=there)


@triton.jit
def _position_gradients(
    queries: tl.tensor,
    directions: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    mask: tl.tensor,
    ends: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    upstream: tl.tensor,
    selected: tl.tensor,
    counts: tl.tensor,
    d_keys: tl.tensor,
    d_values: tl.tensor,
    labels: int,
    positions: int,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    SCALE: tl.constexpr,
    EXACT: tl.constexpr,
    PRECISION: tl.constexpr,
    LABELS: tl.constexpr,
    POSITIONS: tl.constexpr,
    STEP: tl.constexpr,
    WIDTH: tl.constexpr,
) -> None:
    """Gradients [B, T, H] of a block of positions, summed over the selected labels of their document, WIDTH positions of a head."""
    PARTS: tl.constexpr = (SIZE + WIDTH - 1) // WIDTH
    head, document = tl.program_id(1) // PARTS, tl.program_id(2).to(tl.int64)
    column = tl.program_id(1) % PARTS * WIDTH + tl.arange(0, WIDTH)
    position = tl.program_id(0) * POSITIONS + tl.arange(0, POSITIONS)
    row = document * positions + position
    real = tl.load(mask + row, mask=position < positions, other=0) != 0
    at = (row * HEADS + head) * SIZE
    d_key = tl.zeros([POSITIONS, WIDTH], EXACT)
    d_value = tl.zeros([POSITIONS, WIDTH], EXACT)
    count = tl.load(counts + document)
    if tl.program_id(0) * POSITIONS < tl.load(ends + document):
        for first in range(0, count, LABELS):
            slot = first + tl.arange(0, LABELS)
            known = slot < count
            label = tl.load(selected + document * labels + slot, mask=known, other=0)
            cell = (document * HEADS + head) * labels + label
            mean = tl.load(means + cell, mask=known, other=0.0)[None, :]
            level = tl.load(levels + cell, mask=known, other=0.0)[None, :]
            of_label = (label * HEADS + head) * SIZE
            weights, pulls = _pulls(
                keys + at,
                queries + of_label,
                values + at,
                directions + of_label,
                real,
                known,
                level,
                mean,
                SIZE,
                STEP,
                SCALE,
                EXACT,
                PRECISION,
            )
            gradient = tl.load(upstream + document * labels + label, mask=known, other=0.0)[None, :]
            there = known[:, None] & (column < SIZE)[None, :]
            query = tl.load(queries + of_label[:, None] + column[None, :], mask=there, other=0.0)
            d_key = tl.dot((pulls * gradient).to(query.dtype), query, d_key, input_precision=PRECISION)
            direction = tl.load(directions + of_label[:, None] + column[None, :], mask=there, other=0.0)
            d_value = tl.dot((weights * gradient).to(direction.dtype), direction, d_value, input_precision=PRECISION)
        there = real[:, None] & (column < SIZE)[None, :]
        tl.store(d_keys + at[:, None] + column[None, :], d_key * SCALE, mask=there)
        tl.store(d_values + at[:, None] + column[None, :], d_value, mask=there)
