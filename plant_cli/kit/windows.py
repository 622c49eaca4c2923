"""Overlapping windows over long documents, and joining their hidden states back into one sequence a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from plant_cli.api import ComponentError
from plant_cli.api.model import TokenBatch
from plant_cli.base.padding import TOKEN_MULTIPLE, round_up

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Cut documents of one batch.

    Args:
        ids: token ids [W, S] of W windows, special tokens included, padded to a multiple of `TOKEN_MULTIPLE` (`plant_cli.base.padding`).
        mask: [W, S], true on real positions (special tokens too).
        source: flat index [n] into [W·S] of every content position of every window.
        target: flat index [n] into [B·T] of the document position it belongs to.
        shape: (B, T).
    """

    ids: Tensor
    mask: Tensor
    source: Tensor
    target: Tensor
    shape: tuple[int, int]


def check_overlap(size: int, overlap: int, special: int = 0) -> None:
    """Refuse an overlap that leaves no room: windows have `size` positions, `special` of them for special tokens.

    Raises:
        ComponentError: the overlap leaves a window no token of its own.
    """
    content = size - special
    if overlap >= content:
        raise ComponentError(
            f"an overlap of {overlap} tokens leaves nothing new in a window of {content}",
            where=f"model.backbone: window {size} ({special} of it special tokens), overlap {overlap}",
            expected=f"an overlap below {content}; about an eighth of the window is usual",
            todo=f"--set model.backbone.overlap={max(0, content // 8)}, or a larger --set model.backbone.window=…",
        )


def window_starts(length: int, size: int, overlap: int) -> list[int]:
    """Where windows of `size` tokens begin so that they cover `length` tokens with at least `overlap` in common."""
    if length <= size:
        return [0]
    step = max(1, size - overlap)
    return [*range(0, length - size, step), length - size]


def cut(batch: TokenBatch, *, size: int, overlap: int, prefix: Sequence[int], suffix: Sequence[int], pad: int) -> Windows:
    """Cut every document into windows of at most `size` positions, special tokens of each window included."""
    content = size - len(prefix) - len(suffix)
    pieces = [(row, start) for row, ids in enumerate(batch.ids) for start in window_starts(len(ids), content, overlap)]
    lengths = [min(content, len(batch.ids[row]) - start) for row, start in pieces]
    width = min(size, round_up(max(1, max(lengths) + len(prefix) + len(suffix)), TOKEN_MULTIPLE))
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


def join(hidden: Tensor, windows: Windows) -> tuple[Tensor, Tensor]:
    """Hidden states [B, T, H] and mask [B, T] of documents from those of windows [W, S, H]; overlaps are averaged."""
    rows, longest = windows.shape
    source, target = windows.source.to(hidden.device), windows.target.to(hidden.device)
    flat = hidden.reshape(-1, hidden.shape[-1]).index_select(0, source)
    counts = torch.bincount(target, minlength=rows * longest)
    joined = flat.new_zeros((rows * longest, flat.shape[-1])).index_add(0, target, flat)
    if int(counts.max()) > 1:
        joined = joined / counts.clamp(min=1).unsqueeze(1).to(joined.dtype)
    return joined.view(rows, longest, -1), (counts > 0).view(rows, longest)
