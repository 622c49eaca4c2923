"""Label attention with scalar values on a graphics card, in two forms that give the same numbers.

A label scores each position of a document (query · key), and each position is worth a number to it
(direction · value). The logit is the mean worth under the softmax of the scores. Beside its inputs
the backward pass is left two numbers for each document, head and label: the mean, and the level,
which is the binary logarithm of the softmax's denominator. It computes scores and worths again,
only for labels whose gradient is not zero. Products take the inputs as they are and sum in fp32 or
better, as does the softmax.

* **Fused**, for bf16 and narrow heads: a program keeps a tile of queries and directions on the chip
  and walks over the positions of one head of one document. Backward does so twice: labels walk over
  positions, then positions over labels. No score leaves the chip.
* **Products**, for all else: scores and worths of a block of labels by the library's matrix
  products, then one small kernel that reads both. To choose among the labels, this form waits for
  the card.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from plant_network.compute import LABEL_MULTIPLE, round_up
from torch import Tensor
from triton.runtime.errors import OutOfResources


class Tile(NamedTuple):
    """How a fused kernel is started: rows that a program keeps, rows of the other side that it
    takes at a time, warps, stages.
    """

    kept: int
    taken: int
    warps: int
    stages: int

    @property
    def smaller(self) -> Tile:
        """For less shared memory."""
        return (
            self._replace(stages=2)
            if self.stages > 2
            else self._replace(kept=max(16, self.kept // 2))
        )

    @property
    def settings(self) -> dict[str, int]:
        """As a kernel takes them."""
        return {
            "KEPT": self.kept,
            "TAKEN": self.taken,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }


FUSED_TYPES = {torch.bfloat16}
FUSED: dict[int, tuple[Tile, Tile, Tile]] = {
    64: (Tile(128, 64, 8, 3), Tile(64, 32, 4, 3), Tile(64, 64, 4, 3)),
    128: (Tile(128, 32, 8, 3), Tile(64, 64, 4, 2), Tile(64, 32, 4, 3)),
    256: (Tile(64, 64, 8, 2), Tile(64, 32, 8, 3), Tile(64, 32, 8, 3)),
}
"""By the widest head: tiles of the forward pass, of the labels' gradients and of the positions'
gradients. Cards with less shared memory take smaller ones, and the products where those do not
fit either; so do wider heads.
"""
LABELS_WALKED = 2048
"""Labels that one program of the positions' gradients walks over, in whole tiles: programs for
few positions still fill a card.
"""
SCORES_HELD = 1 << 24
"""Scores of one head that the products hold at a time; in bf16 each takes 12 bytes on the way
back.
"""
ENTRIES = 2048
"""Scores that one program of the products' kernels holds at a time, of 128 or 512 positions."""
ROOM = 256
"""Padding and chosen labels can be read up to a multiple of this, which no tile exceeds."""


class KernelAttention(torch.autograd.Function):
    """The function of `label_attention`; the order in which gradients are summed is not fixed."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        directions: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        heads: int,
        wanted: Tensor | None,
    ) -> Tensor:
        """Result of `label_attention` [B, L]."""
        with torch.autocast(keys.device.type, enabled=False), torch.cuda.device_of(keys):  # type: ignore[no-untyped-call]
            batch = _Batch.of(queries, directions, keys, values, mask, heads)
            _average(batch, wanted)
        ctx.save_for_backward(*batch, wanted)
        ctx.kinds = [x.dtype for x in (queries, directions, keys, values)]
        return batch.averages[0].sum(1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of queries, directions, keys and values."""
        *saved, wanted = ctx.saved_tensors
        batch = _Batch(*saved)
        upstream = (
            (gradient if wanted is None else gradient.masked_fill(~wanted, 0.0))
            .to(batch.averages.dtype)
            .contiguous()
        )
        with torch.autocast(gradient.device.type, enabled=False), torch.cuda.device_of(gradient):  # type: ignore[no-untyped-call]
            gradients = _pull(batch, upstream)
        return *(x.to(kind) for x, kind in zip(gradients, ctx.kinds, strict=True)), None, None, None


class _Batch(NamedTuple):
    """What both passes need; keys and values are 0 where the mask is false."""

    queries: Tensor  # [L, H]
    directions: Tensor  # [L, H]
    keys: Tensor  # [B, T, H]
    values: Tensor  # [B, T, H]
    mask: Tensor  # [B, T]
    padding: Tensor  # added to scores [B, room]: 0, or −inf where the mask is false
    ends: Tensor  # the position behind a document's last real one [B]
    averages: Tensor  # means and levels [2, B, h, L]

    @classmethod
    def of(
        cls,
        queries: Tensor,
        directions: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        heads: int,
    ) -> _Batch:
        """With means and levels still to be filled in."""
        q, g, k, v = (x.to(keys.dtype).contiguous() for x in (queries, directions, keys, values))
        (documents, positions), mask = mask.shape, mask.contiguous()
        real_keys, real_values = torch.empty_like(k), torch.empty_like(v)
        padding = torch.empty(documents, round_up(positions, ROOM), device=mask.device)
        ends = torch.empty(documents, dtype=torch.int32, device=mask.device)
        hidden, grid = k.shape[2], (documents, triton.cdiv(positions, 16))
        _prepare[grid](
            k,
            v,
            mask,
            real_keys,
            real_values,
            padding,
            ends,
            positions,
            padding.shape[1],
            hidden,
            ROWS=16,
            ACROSS=128,
            BLOCK=ROOM,
        )
        exact = torch.promote_types(keys.dtype, torch.float32)
        averages = keys.new_zeros(2, documents, heads, len(queries), dtype=exact)
        return cls(q, g, real_keys, real_values, mask, padding, ends, averages)

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Documents, heads, labels, positions, and dimensions of a head."""
        _, documents, heads, labels = self.averages.shape
        return documents, heads, labels, self.keys.shape[1], self.keys.shape[2] // heads

    @property
    def tiles(self) -> list[tuple[Tile, ...]]:
        """For the fused form, and smaller ones; none where that will not do."""
        wide = [
            widest
            for widest in FUSED
            if self.sizes[-1] <= widest and self.keys.dtype in FUSED_TYPES
        ]
        given: tuple[Tile, ...] = FUSED[min(wide)] if wide else ()
        smaller = tuple(tile.smaller for tile in given)
        return [given, smaller, tuple(tile.smaller for tile in smaller)] if given else []


def constants(heads: int, size: int) -> dict[str, Any]:
    """What the fused kernels are compiled for, beside their tile."""
    width = max(16, triton.next_power_of_2(size))
    return {"HEADS": heads, "SIZE": size, "WIDTH": width, "FACTOR": size**-0.5 * math.log2(math.e)}


def _average(batch: _Batch, wanted: Tensor | None) -> None:
    """Fill in means and levels, at least of wanted pairs [B, L]."""
    for forward, *_ in batch.tiles:
        with suppress(OutOfResources):
            return _average_fused(batch, forward, wanted)
    return _average_by_products(batch, wanted)


def _pull(batch: _Batch, upstream: Tensor) -> list[Tensor]:
    """The four gradients from those of the logits [B, L]."""
    for _, *backward in batch.tiles:
        with suppress(OutOfResources):
            return _pull_fused(batch, backward, upstream)
    return _pull_by_products(batch, upstream)


def _line_up(batch: _Batch, marks: Tensor, *, averages: bool = False) -> tuple[Tensor, ...]:
    """The chosen labels of each document in front, behind them label 0 [B, room]; and how many they
    are [B].

    With their means and levels [B, h, room], and their marks [B, room], where these are asked for.

    Args:
        marks: not zero where a label is chosen for a document [B, L].
    """
    documents, heads, labels, _, _ = batch.sizes
    lined = torch.empty(documents, round_up(labels, ROOM), dtype=torch.int64, device=marks.device)
    counts = torch.empty(documents, dtype=torch.int32, device=marks.device)
    taken = (
        (
            *batch.averages.new_empty(2, documents, heads, lined.shape[1]),
            marks.new_empty(lined.shape),
        )
        if averages
        else ()
    )
    given = marks.contiguous(), *batch.averages, lined, counts, *(taken or (marks,) * 3)
    _line_up_labels[documents, heads if averages else 1](
        *given, labels, lined.shape[1], AVERAGES=averages, BLOCK=1024
    )
    return lined, counts, *taken


@triton.jit
def _prepare(
    keys: tl.tensor,
    values: tl.tensor,
    mask: tl.tensor,
    real_keys: tl.tensor,
    real_values: tl.tensor,
    padding: tl.tensor,
    ends: tl.tensor,
    positions: int,
    padded: int,
    hidden: int,
    ROWS: tl.constexpr,
    ACROSS: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Keys and values with zeros where the mask is false, what is added to scores there, and
    the end of a document.
    """
    document = tl.program_id(0).to(tl.int64)
    position = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    real = tl.load(mask + document * positions + position, mask=position < positions, other=0) != 0
    for first in range(0, hidden, ACROSS):
        column = first + tl.arange(0, ACROSS)
        at = (document * positions + position)[:, None] * hidden + column[None, :]
        inside = (position < positions)[:, None] & (column < hidden)[None, :]
        tl.store(
            real_keys + at, tl.load(keys + at, mask=inside & real[:, None], other=0.0), mask=inside
        )
        tl.store(
            real_values + at,
            tl.load(values + at, mask=inside & real[:, None], other=0.0),
            mask=inside,
        )
    if tl.program_id(1) == 0:
        end = tl.zeros([BLOCK], tl.int32)
        for first in range(0, padded, BLOCK):
            every = first + tl.arange(0, BLOCK)
            there = (
                tl.load(mask + document * positions + every, mask=every < positions, other=0) != 0
            )
            tl.store(padding + document * padded + every, tl.where(there, 0.0, float("-inf")))
            end = tl.maximum(end, tl.where(there, every + 1, 0))
        tl.store(ends + document, tl.max(end, 0))


@triton.jit
def _line_up_labels(
    marks: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    lined: tl.tensor,
    counts: tl.tensor,
    lined_means: tl.tensor,
    lined_levels: tl.tensor,
    lined_marks: tl.tensor,
    labels: int,
    room: int,
    AVERAGES: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """What `_line_up` gives, of one head of one document."""
    document, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    of_head = document * tl.num_programs(1) + head
    count = tl.program_id(1) * 0
    for first in range(0, labels, BLOCK):
        label = first + tl.arange(0, BLOCK)
        mark = tl.load(marks + document * labels + label, mask=label < labels, other=0)
        chosen = mark != 0
        place = count + tl.cumsum(chosen.to(tl.int32), 0) - 1
        count += tl.sum(chosen.to(tl.int32), 0)
        if AVERAGES:
            tl.store(
                lined_means + of_head * room + place,
                tl.load(means + of_head * labels + label, mask=chosen),
                mask=chosen,
            )
            tl.store(
                lined_levels + of_head * room + place,
                tl.load(levels + of_head * labels + label, mask=chosen),
                mask=chosen,
            )
        if head == 0:
            tl.store(lined + document * room + place, label.to(tl.int64), mask=chosen)
            if AVERAGES:
                tl.store(lined_marks + document * room + place, mark, mask=chosen)
    if head == 0:
        tl.store(counts + document, count)
        for first in range(0, room, BLOCK):
            place = first + tl.arange(0, BLOCK)
            tl.store(
                lined + document * room + place,
                tl.zeros([BLOCK], tl.int64),
                mask=(place >= count) & (place < room),
            )


# the fused form


def _average_fused(batch: _Batch, tile: Tile, wanted: Tensor | None) -> None:
    documents, heads, labels, positions, size = batch.sizes
    lined, counts = (batch.ends, batch.ends) if wanted is None else _line_up(batch, wanted)
    sizes = labels, lined.shape[-1], positions, batch.padding.shape[1]
    settings = {**constants(heads, size), "ALL": wanted is None, **tile.settings}
    grid = triton.cdiv(labels, tile.kept), documents, heads
    _average_tile[grid](
        *batch[:4], batch.padding, batch.ends, lined, counts, *batch.averages, *sizes, **settings
    )


def _pull_fused(batch: _Batch, tiles: Sequence[Tile], upstream: Tensor) -> list[Tensor]:
    documents, heads, labels, positions, size = batch.sizes
    lined, counts, *averages, marks = _line_up(batch, upstream, averages=True)
    given = batch.padding, batch.ends, lined, counts, *averages, marks
    together = upstream.new_zeros(sum(x.numel() for x in batch[:4]))
    gradients = _part(together, batch)
    tables, texts = batch[:2], batch[2:4]
    parts = triton.cdiv(labels, LABELS_WALKED)
    for tile, kept, taken, results, rows, shares, walked in (
        (tiles[0], tables, texts, gradients[:2], labels, 1, positions),
        (tiles[1], texts, tables, gradients[2:], positions, parts, LABELS_WALKED),
    ):
        sizes = lined.shape[1], positions, batch.padding.shape[1], shares, walked
        settings = {
            **constants(heads, size),
            "SCALE": size**-0.5,
            "OF_LABELS": kept is tables,
            **tile.settings,
        }
        grid = triton.cdiv(rows, tile.kept) * shares, documents, heads
        _pull_tile[grid](*kept, *taken, *given, *results, *sizes, **settings)
    return _part(together.to(batch.keys.dtype), batch)


def _part(together: Tensor, batch: _Batch) -> list[Tensor]:
    """Numbers one after the other as tensors like queries, directions, keys and values."""
    parts = torch.split(together, [x.numel() for x in batch[:4]])
    return [part.view(like.shape) for part, like in zip(parts, batch[:4], strict=True)]


@triton.jit
def _take_rows(
    table: tl.tensor,
    row: tl.tensor,
    head: tl.tensor,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
) -> tl.tensor:
    """One head of some rows of a table [rows, H], filled up with zeros."""
    column = tl.arange(0, WIDTH)
    at = (row.to(tl.int64) * HEADS + head)[:, None] * SIZE + column[None, :]
    inside = (column < SIZE)[None, :]
    return tl.load(table + at) if SIZE == WIDTH else tl.load(table + at, mask=inside, other=0.0)


@triton.jit
def _average_tile(
    queries: tl.tensor,
    directions: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    padding: tl.tensor,
    ends: tl.tensor,
    lined: tl.tensor,
    counts: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    labels: int,
    room: int,
    positions: int,
    padded: int,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    FACTOR: tl.constexpr,
    ALL: tl.constexpr,
    KEPT: tl.constexpr,
    TAKEN: tl.constexpr,
) -> None:
    """Means and levels of some labels of a document, softmax online: of those lined up, or of
    all.
    """
    document, head = tl.program_id(1).to(tl.int64), tl.program_id(2)
    place = tl.program_id(0) * KEPT + tl.arange(0, KEPT)
    count = labels if ALL else tl.load(counts + document)
    if tl.program_id(0) * KEPT < count:
        label = (
            tl.minimum(place, labels - 1).to(tl.int64)
            if ALL
            else tl.load(lined + document * room + place)
        )
        query = _take_rows(queries, label, head, HEADS, SIZE, WIDTH)
        direction = _take_rows(directions, label, head, HEADS, SIZE, WIDTH)
        highest = tl.full(
            [KEPT], -1e38, tl.float32
        )  # below every score, but finite: positions that are all padding leave it as it is
        total = tl.zeros([KEPT], tl.float32)
        mean = tl.zeros([KEPT], tl.float32)
        row = document * positions + tl.minimum(tl.arange(0, TAKEN), positions - 1)
        following = tl.dot(query, tl.trans(_take_rows(keys, row, head, HEADS, SIZE, WIDTH)))
        for first in range(0, tl.load(ends + document), TAKEN):
            position = first + tl.arange(0, TAKEN)
            shift = tl.load(padding + document * padded + position)[None, :]
            row = document * positions + tl.minimum(position, positions - 1)
            worth = tl.dot(direction, tl.trans(_take_rows(values, row, head, HEADS, SIZE, WIDTH)))
            scores = following * FACTOR + shift
            row = document * positions + tl.minimum(position + TAKEN, positions - 1)
            following = tl.dot(
                query, tl.trans(_take_rows(keys, row, head, HEADS, SIZE, WIDTH))
            )  # while weights are computed
            higher = tl.maximum(highest, tl.max(scores, 1))
            fade = tl.exp2(highest - higher)
            weights = tl.exp2(scores - higher[:, None])
            total = total * fade + tl.sum(weights, 1)
            mean = mean * fade + tl.sum(weights * worth, 1)
            highest = higher
        total = tl.where(total > 0, total, 1.0)  # a document without a real position
        cell = (document * HEADS + head) * labels + label
        tl.store(means + cell, mean / total, mask=place < count)
        tl.store(levels + cell, highest + tl.log2(total), mask=place < count)


@triton.jit
def _pull_tile(
    kept_keys: tl.tensor,
    kept_values: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    padding: tl.tensor,
    ends: tl.tensor,
    lined: tl.tensor,
    counts: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    upstream: tl.tensor,
    d_keys: tl.tensor,
    d_values: tl.tensor,
    room: int,
    positions: int,
    padded: int,
    parts: int,
    walked: int,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    WIDTH: tl.constexpr,
    FACTOR: tl.constexpr,
    SCALE: tl.constexpr,
    OF_LABELS: tl.constexpr,
    KEPT: tl.constexpr,
    TAKEN: tl.constexpr,
) -> None:
    """Adds to the gradients of some rows of one side (labels or positions of a document) what a
    part of the other side gives.
    """
    document, head = tl.program_id(1).to(tl.int64), tl.program_id(2)
    block, begin = tl.program_id(0) // parts, tl.program_id(0) % parts * walked
    place = block * KEPT + tl.arange(0, KEPT)
    of_document, of_head = document * room, (document * HEADS + head) * room
    count, end = (
        tl.load((counts if OF_LABELS else ends) + document),
        tl.load((ends if OF_LABELS else counts) + document),
    )
    end = tl.minimum(end, begin + walked)
    if (block * KEPT < count) & (begin < end):
        if OF_LABELS:
            kept_row = tl.load(lined + of_document + place)
            there = place < count
            level = tl.load(levels + of_head + place, mask=there, other=float("inf"))[:, None]
            mean = tl.load(means + of_head + place, mask=there, other=0.0)[:, None]
            pull = tl.load(upstream + of_document + place, mask=there, other=0.0)[:, None]
        else:
            kept_row = document * positions + tl.minimum(place, positions - 1)
            there = tl.load(padding + document * padded + place) == 0
            # labels are known one step ahead: their rows can then be fetched while others are
            # multiplied
            following = tl.load(lined + of_document + begin + tl.arange(0, TAKEN))
        kept_key = _take_rows(kept_keys, kept_row, head, HEADS, SIZE, WIDTH)
        kept_value = _take_rows(kept_values, kept_row, head, HEADS, SIZE, WIDTH)
        d_key = tl.zeros([KEPT, WIDTH], tl.float32)
        d_value = tl.zeros([KEPT, WIDTH], tl.float32)
        for first in range(begin, end, TAKEN):
            other = first + tl.arange(0, TAKEN)
            if OF_LABELS:
                row = document * positions + tl.minimum(other, positions - 1)
            else:
                row = following
                following = tl.load(
                    lined + of_document + other + TAKEN, mask=other + TAKEN < end, other=0
                )
            key = _take_rows(keys, row, head, HEADS, SIZE, WIDTH)
            scores = tl.dot(kept_key, tl.trans(key))
            value = _take_rows(values, row, head, HEADS, SIZE, WIDTH)
            worth = tl.dot(kept_value, tl.trans(value))
            if OF_LABELS:  # loaded here, not above: registers are scarce
                shift = tl.load(padding + document * padded + other)[None, :] - level
            else:
                shift = -tl.load(levels + of_head + other, mask=other < end, other=float("inf"))[
                    None, :
                ]
                mean = tl.load(means + of_head + other, mask=other < end, other=0.0)[None, :]
                pull = tl.load(upstream + of_document + other, mask=other < end, other=0.0)[None, :]
            weights = tl.exp2(scores * FACTOR + shift) * pull
            d_value = tl.dot(weights.to(value.dtype), value, d_value)
            d_key = tl.dot((weights * (worth - mean)).to(key.dtype), key, d_key)
        column = tl.arange(0, WIDTH)
        at = (kept_row.to(tl.int64) * HEADS + head)[:, None] * SIZE + column[None, :]
        inside = there[:, None] & (column < SIZE)[None, :]
        tl.atomic_add(d_keys + at, d_key * SCALE, mask=inside, sem="relaxed")
        tl.atomic_add(d_values + at, d_value, mask=inside, sem="relaxed")


# the form by products


class _Block(NamedTuple):
    """Some labels, the same for all documents (one group of them), or those lined up for each:
    their products with one head's positions.
    """

    labels: slice | Tensor  # [B, n]
    columns: slice  # of the head
    rows: Tensor  # queries of each group, then directions of each [2G, n, d]
    texts: Tensor  # keys, then values [2G, N, d], documents of a group one after the other
    products: Tensor  # scores, then worths [2G, n, N]
    grid: tuple[int, int]
    given: tuple[Any, ...]  # what every kernel takes
    settings: dict[str, Any]


def _blocks(batch: _Batch, marks: Tensor | None) -> Iterator[_Block]:
    """All labels, or where less than half of them are marked [B, L] for each document, those
    alone.
    """
    documents, heads, labels, positions, size = batch.sizes
    lined, counts = (batch.mask, batch.mask) if marks is None else _line_up(batch, marks)
    most = labels if marks is None else int(counts.max())
    every = 2 * most >= labels
    groups, most = (1, labels) if every else (documents, most)
    tables, texts = (
        torch.stack(batch[:2]),
        torch.stack(batch[2:4]).view(2 * groups, -1, heads * size),
    )
    step = max(1, SCORES_HELD // (documents * positions) // LABEL_MULTIPLE) * LABEL_MULTIPLE
    across = 128 if positions <= 128 else 512
    settings = {
        "ALL": every,
        "FACTOR": size**-0.5 * math.log2(math.e),
        "ROWS": ENTRIES // across,
        "ACROSS": across,
    }
    for head in range(heads):
        columns = slice(head * size, (head + 1) * size)
        of_head = texts[..., columns]
        for start in range(0, most, step):
            part = slice(start, min(start + step, most))
            which = part if every else lined[:, part]
            rows = tables[:, part, columns] if every else tables[:, which, columns].flatten(0, 1)
            sizes = (
                labels,
                lined.shape[1],
                positions,
                documents // groups,
                part.stop - start,
                start,
                head,
                heads,
            )
            given = batch.mask, lined, counts, *batch.averages, *sizes
            grid = triton.cdiv(part.stop - start, ENTRIES // across), documents
            yield _Block(
                which, columns, rows, of_head, _multiply(rows, of_head.mT), grid, given, settings
            )


def _multiply(left: Tensor, right: Tensor) -> Tensor:
    """Matrix products [2G, n, m], summed and given in fp32 or better."""
    if left.is_cuda and left.itemsize == 2:
        with suppress(TypeError, NotImplementedError):  # torch before 2.8
            return torch.bmm(left, right, out_dtype=torch.float32)
    exact = torch.promote_types(left.dtype, torch.float32)
    return torch.bmm(left.to(exact), right.to(exact))


def _average_by_products(batch: _Batch, wanted: Tensor | None) -> None:
    for block in _blocks(batch, wanted):
        _average_rows[block.grid](*block.products.chunk(2), *block.given, **block.settings)


def _pull_by_products(batch: _Batch, upstream: Tensor) -> list[Tensor]:
    together = upstream.new_zeros(sum(x.numel() for x in batch[:4]))
    tables, texts = torch.split(together, [2 * batch.queries.numel(), 2 * batch.keys.numel()])
    d_tables, d_texts = tables.view(2, *batch.queries.shape), texts.view(2, *batch.keys.shape)
    for block in _blocks(batch, upstream):
        pulls = torch.empty_like(block.products, dtype=batch.keys.dtype)
        settings = {"SCALE": batch.sizes[-1] ** -0.5, **block.settings}
        _pull_rows[block.grid](
            *block.products.chunk(2), *pulls.chunk(2), upstream, *block.given, **settings
        )
        of_texts, of_rows = _multiply(pulls.mT, block.rows), _multiply(pulls, block.texts)
        d_texts[..., block.columns] += of_texts.view(*d_texts.shape[:-1], -1)
        if isinstance(block.labels, slice):
            d_tables[:, block.labels, block.columns] = of_rows
        else:
            for table, rows in zip(d_tables, of_rows.chunk(2), strict=True):
                table[:, block.columns].index_add_(0, block.labels.flatten(), rows.flatten(0, 1))
    return _part(together.to(batch.keys.dtype), batch)


@triton.jit
def _find_rows(
    lined: tl.tensor,
    counts: tl.tensor,
    labels: int,
    room: int,
    positions: int,
    together: int,
    rows: int,
    start: int,
    head: int,
    heads: int,
    ALL: tl.constexpr,
    ROWS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor, tl.tensor]:
    """Of a program's rows: label, cell among means, beginning of the document's products;
    whether the row is chosen, and whether there.
    """
    document = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = row < rows
    if ALL:
        label = (start + row).to(tl.int64)
        known = there
    else:
        label = tl.load(lined + document * room + start + row, mask=there, other=0)
        known = start + row < tl.load(counts + document)
    at = ((document // together * rows + row) * together + document % together) * positions
    return label, (document * heads + head) * labels + label, at, known, there


@triton.jit(do_not_specialize=["rows", "start", "head", "heads"])
def _average_rows(
    scores: tl.tensor,
    worths: tl.tensor,
    mask: tl.tensor,
    lined: tl.tensor,
    counts: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    labels: int,
    room: int,
    positions: int,
    together: int,
    rows: int,
    start: int,
    head: int,
    heads: int,
    ALL: tl.constexpr,
    FACTOR: tl.constexpr,
    ROWS: tl.constexpr,
    ACROSS: tl.constexpr,
) -> None:
    """Means and levels of some labels of a document, softmax online."""
    _, cell, at, known, _ = _find_rows(
        lined, counts, labels, room, positions, together, rows, start, head, heads, ALL, ROWS
    )
    kind: tl.constexpr = scores.dtype.element_ty
    highest = tl.full(
        [ROWS], -1e38, kind
    )  # below every score, but finite: positions that are all padding leave it as it is
    total = tl.zeros([ROWS], kind)
    mean = tl.zeros([ROWS], kind)
    for first in range(0, positions, ACROSS):
        position = first + tl.arange(0, ACROSS)
        real = (
            tl.load(
                mask + tl.program_id(1) * positions + position, mask=position < positions, other=0
            )
            != 0
        )
        real = known[:, None] & real[None, :]
        score = (
            tl.load(scores + at[:, None] + position[None, :], mask=real, other=float("-inf"))
            * FACTOR
        )
        worth = tl.load(worths + at[:, None] + position[None, :], mask=real, other=0.0)
        higher = tl.maximum(highest, tl.max(score, 1))
        fade = tl.exp2(highest - higher)
        weights = tl.exp2(score - higher[:, None])
        total = total * fade + tl.sum(weights, 1)
        mean = mean * fade + tl.sum(weights * worth, 1)
        highest = higher
    total = tl.where(total > 0, total, 1.0)  # a document without a real position
    tl.store(means + cell, mean / total, mask=known)
    tl.store(levels + cell, highest + tl.log2(total), mask=known)


@triton.jit(do_not_specialize=["rows", "start", "head", "heads"])
def _pull_rows(
    scores: tl.tensor,
    worths: tl.tensor,
    to_scores: tl.tensor,
    to_worths: tl.tensor,
    upstream: tl.tensor,
    mask: tl.tensor,
    lined: tl.tensor,
    counts: tl.tensor,
    means: tl.tensor,
    levels: tl.tensor,
    labels: int,
    room: int,
    positions: int,
    together: int,
    rows: int,
    start: int,
    head: int,
    heads: int,
    ALL: tl.constexpr,
    FACTOR: tl.constexpr,
    SCALE: tl.constexpr,
    ROWS: tl.constexpr,
    ACROSS: tl.constexpr,
) -> None:
    """Gradients of scores and worths; zeros at padding and in rows that are not chosen."""
    label, cell, at, known, there = _find_rows(
        lined, counts, labels, room, positions, together, rows, start, head, heads, ALL, ROWS
    )
    mean = tl.load(means + cell, mask=known, other=0.0)[:, None]
    level = tl.load(levels + cell, mask=known, other=0.0)[:, None]
    pull = tl.load(upstream + tl.program_id(1) * labels + label, mask=known, other=0.0)[:, None]
    for first in range(0, positions, ACROSS):
        position = first + tl.arange(0, ACROSS)
        real = (
            tl.load(
                mask + tl.program_id(1) * positions + position, mask=position < positions, other=0
            )
            != 0
        )
        real = known[:, None] & real[None, :]
        score = (
            tl.load(scores + at[:, None] + position[None, :], mask=real, other=float("-inf"))
            * FACTOR
        )
        worth = tl.load(worths + at[:, None] + position[None, :], mask=real, other=0.0)
        weights = tl.exp2(score - level) * pull
        inside = there[:, None] & (position < positions)[None, :]
        tl.store(to_worths + at[:, None] + position[None, :], weights, mask=inside)
        tl.store(
            to_scores + at[:, None] + position[None, :],
            weights * (worth - mean) * SCALE,
            mask=inside,
        )
