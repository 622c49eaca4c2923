"""Long texts in overlapping windows, and their hidden states joined again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from plant_network.compute import TOKEN_MULTIPLE, round_up, send
from torch import Tensor

from plant_cli.api import ComponentError, TokenBatch

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The documents of one batch in W windows, padded to a multiple, else of `TOKEN_MULTIPLE`
    (`plant_network.compute`).
    """

    ids: Tensor  # token ids [W, S], special tokens included
    mask: Tensor  # [W, S], true on real positions (special tokens too)
    source: Tensor  # flat index [n] into [W·S] of every content position of every window
    target: Tensor  # flat index [n] into [B·T] of the document position it belongs to
    shape: tuple[int, int]  # (B, T)


def check_overlap(size: int, overlap: int, special: int = 0) -> None:
    """Refuse an overlap that leaves a window no token of its own; it has `size` positions,
    `special` of them for special tokens.
    """
    content = size - special
    if overlap >= content:
        raise ComponentError(
            f"an overlap of {overlap} tokens leaves nothing new in a window of {content}",
            where=f"model.backbone: window {size} ({special} of it special tokens), overlap "
            f"{overlap}",
            expected=f"an overlap below {content}; about an eighth of the window is usual",
            todo=f"--set model.backbone.overlap={max(0, content // 8)}, or a larger --set "
            "model.backbone.window=…",
        )


def window_starts(length: int, size: int, overlap: int) -> list[int]:
    """The starts of windows of `size` tokens that cover `length` tokens and have at least
    `overlap` in common.
    """
    if length <= size:
        return [0]
    step = max(1, size - overlap)
    return [*range(0, length - size, step), length - size]


def cut(
    batch: TokenBatch,
    *,
    size: int,
    overlap: int,
    prefix: Sequence[int],
    suffix: Sequence[int],
    pad: int,
    multiple: int = TOKEN_MULTIPLE,
) -> Windows:
    """Cut every document into windows of at most `size` positions, special tokens of each
    window included.
    """
    content = size - len(prefix) - len(suffix)
    pieces = [
        (row, start)
        for row, ids in enumerate(batch.ids)
        for start in window_starts(len(ids), content, overlap)
    ]
    lengths = [min(content, len(batch.ids[row]) - start) for row, start in pieces]
    width = min(size, round_up(max(1, max(lengths) + len(prefix) + len(suffix)), multiple))
    longest = max(1, max(len(ids) for ids in batch.ids))
    ids = np.full((len(pieces), width), pad, dtype=np.int64)
    mask = np.zeros((len(pieces), width), dtype=bool)
    source: list[IntArray] = []
    target: list[IntArray] = []
    for window, ((row, start), length) in enumerate(zip(pieces, lengths, strict=True)):
        piece = [*prefix, *batch.ids[row][start : start + length].tolist(), *suffix]
        ids[window, : len(piece)] = piece
        mask[window, : len(piece)] = True
        source.append(window * width + len(prefix) + np.arange(length))
        target.append(row * longest + start + np.arange(length))
    return Windows(
        ids=torch.from_numpy(ids),
        mask=torch.from_numpy(mask),
        source=torch.from_numpy(np.concatenate(source)),
        target=torch.from_numpy(np.concatenate(target)),
        shape=(len(batch), longest),
    )


def join_windows(hidden: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """Hidden states [B, T, H] and mask [B, T] of documents from those of windows [W, S, H];
    overlaps are averaged.
    """
    rows, longest = windows.shape
    source, target = (send(places, hidden.device) for places in (windows.source, windows.target))
    flat = hidden.reshape(-1, hidden.shape[-1]).index_select(0, source)
    counts = torch.bincount(
        windows.target, minlength=rows * longest
    )  # on the processor: a card need not be waited for
    joined = flat.new_zeros((rows * longest, flat.shape[-1])).index_add(0, target, flat)
    if int(counts.max()) > 1:
        joined = joined / send(counts.clamp(min=1).unsqueeze(1).to(joined.dtype), hidden.device)
    return joined.view(rows, longest, -1), send(counts > 0, hidden.device).view(rows, longest)


DEFAULT_POSITIONS = 512  # of a model whose configuration names no limit


def readable_positions(network: Any) -> int:
    """Positions that a Hugging Face model can read at once; RoBERTa and its descendants leave
    those up to the padding id unused.
    """
    positions = int(getattr(network.config, "max_position_embeddings", DEFAULT_POSITIONS))
    for name, part in network.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            return positions - int(part.padding_idx) - 1
    return positions
