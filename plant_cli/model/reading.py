"""From rows of a tokenised split to hidden states: the one way in which training and scoring read documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from plant_cli.api import Evidence, Reporter, TokenBatch
from plant_cli.base.padding import TOKEN_MULTIPLE, round_up
from plant_cli.model.cuts import measure_cut
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network

Rows = npt.NDArray[np.int64]


class HiddenReader(Protocol):
    """Gives hidden states of documents."""

    tokens: TokenBatch

    def read(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Hidden states [B, T, H] and mask [B, T] of the given documents."""
        ...


class LiveReader:
    """Runs the backbone every time; gradients flow unless it is frozen."""

    def __init__(self, network: Network, tokens: TokenBatch, hardware: Hardware) -> None:
        self.network = network
        self.tokens = tokens
        self.hardware = hardware

    def read(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """See `HiddenReader.read`."""
        with self.hardware.autocast(), torch.set_grad_enabled(torch.is_grad_enabled() and not self.network.backbone_is_frozen):
            return pad_to_multiple(*self.network.backbone.encode(self.tokens.select(rows)))


def pad_to_multiple(hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states [B, T, H] and their mask [B, T], filled up to whole tiles of places (`plant_cli.base.padding`)."""
    beyond = round_up(mask.shape[1], TOKEN_MULTIPLE) - mask.shape[1]
    return (functional.pad(hidden, (0, 0, 0, beyond)), functional.pad(mask, (0, beyond))) if beyond else (hidden, mask)


def tokenize(
    network: Network, texts: Sequence[str], reporter: Reporter, name: str, batch: int = 512, evidence: Evidence | None = None
) -> TokenBatch:
    """Tokenise a split, with progress and a note on what, of its gold evidence too, lies beyond the backbone's limit."""
    parts: list[TokenBatch] = []
    with reporter.progress(f"tokenising {name}", len(texts), "documents") as task:
        for start in range(0, len(texts), batch):
            parts.append(network.backbone.tokenize(texts[start : start + batch]))
            task.advance(len(parts[-1]))
    tokens = TokenBatch(
        ids=[i for p in parts for i in p.ids], spans=[s for p in parts for s in p.spans], dropped=[d for p in parts for d in p.dropped]
    )
    cut = measure_cut(tokens, evidence)
    if cut.documents:
        longer = sum(1 for dropped in tokens.dropped if dropped)
        reporter.warn(
            f"{name}: {longer} of {len(texts)} documents ({cut.documents:.1%}) are longer than {network.backbone.max_length} tokens; "
            f"{sum(tokens.dropped)} tokens beyond ({cut.tokens:.1%} of all) are not read"
            f"{f'; {cut.evidence}' if cut.evidence else ''} "
            "(to read them, train with --set model.backbone.max_tokens=…)"
        )
    return tokens


def lengths(tokens: TokenBatch) -> npt.NDArray[np.int64]:
    """Tokens of each document."""
    return np.array([len(ids) for ids in tokens.ids], dtype=np.int64)


def sorted_batches(lengths: Rows, size: int) -> list[Rows]:
    """All rows by length, for scoring: the longest first, so that memory runs out at once or never."""
    order = np.argsort(-lengths, kind="stable")
    return [order[i : i + size] for i in range(0, len(order), size)]
