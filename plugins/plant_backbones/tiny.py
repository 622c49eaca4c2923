"""The backbone `tiny`: a small network over hashed words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from plant_network.trainable_layers import restore_trainable, save_trainable, split_layers
from torch import Tensor, nn

from plant_backbones import TinyOptions
from plant_backbones.windows import check_overlap, cut, join_windows
from plant_cli.api import Backbone, ComponentError, MachineSection, TokenBatch
from plant_cli.kit import hash_strings

TINY_TOKEN = re.compile(r"\w+|[^\w\s]")
PADDING_ID = 0


class TinyNetwork(nn.Module):
    """Word and position embeddings, then a pre-norm transformer encoder."""

    def __init__(self, options: TinyOptions) -> None:
        super().__init__()
        self.embedding = nn.Embedding(options.buckets + 1, options.hidden, padding_idx=PADDING_ID)
        self.position = nn.Embedding(options.window, options.hidden)
        nn.init.normal_(self.position.weight, std=0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                options.hidden,
                options.heads,
                4 * options.hidden,
                options.dropout,
                activation="gelu",
                batch_first=True,
                norm_first=True,
            )
            for _ in range(options.layers)
        )
        self.norm = nn.LayerNorm(options.hidden)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Hidden states [W, S, H] of token ids [W, S] with mask [W, S]."""
        hidden: Tensor = self.embedding(ids) + self.position(
            torch.arange(ids.shape[1], device=ids.device)
        )
        padding = ~mask
        padding[:, 0] = False  # a text without any word still needs one position to attend to
        for layer in self.layers:
            hidden = layer(hidden, src_key_padding_mask=padding)
        normed: Tensor = self.norm(hidden)
        return normed


def load(options: TinyOptions, machine: MachineSection) -> Backbone:
    """The small network with random weights."""
    return TinyBackbone(options)


class TinyBackbone:
    """`plant_cli.api.Backbone` over hashed words."""

    def __init__(self, options: TinyOptions) -> None:
        if options.hidden % options.heads:
            raise ComponentError(
                f"{options.heads} heads do not divide a hidden size of {options.hidden}",
                where="backbone 'tiny': heads, hidden",
                expected="a hidden size that is a multiple of the heads",
                todo="--set "
                f"model.backbone.hidden={options.heads * max(1, options.hidden // options.heads)}",
            )
        check_overlap(options.window, options.overlap)
        self.options = options
        self.network = TinyNetwork(options)
        self.hidden_size = options.hidden
        self.max_length = options.max_tokens
        self.tokenizer_hash = hash_strings(["tiny", TINY_TOKEN.pattern, str(options.buckets)])

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        """Words and signs, lower-cased and hashed into buckets (CRC-32: the same on every
        machine).
        """
        ids, spans, dropped = [], [], []
        for text in texts:
            matches = list(TINY_TOKEN.finditer(text))
            kept = matches[: self.max_length]
            ids.append(
                np.array(
                    [1 + crc32(m.group().lower().encode()) % self.options.buckets for m in kept],
                    dtype=np.int32,
                )
            )
            spans.append(np.array([m.span() for m in kept], dtype=np.int32).reshape(-1, 2))
            dropped.append(len(matches) - len(kept))
        return TokenBatch(ids=ids, spans=spans, dropped=dropped)

    def encode(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Hidden states and mask."""
        windows = cut(
            batch,
            size=self.options.window,
            overlap=self.options.overlap,
            prefix=[],
            suffix=[],
            pad=PADDING_ID,
        )
        device = self.network.norm.weight.device
        return join_windows(self.network(windows.ids.to(device), windows.mask.to(device)), windows)

    def module(self) -> nn.Module:
        """The network."""
        return self.network

    def layer_groups(self) -> Sequence[Sequence[nn.Parameter]]:
        """Layers from first to last."""
        return split_layers(self.network)

    def save(self, folder: Path) -> None:
        """Write the trainable weights."""
        save_trainable(self.network, folder / "backbone.safetensors")

    def restore(self, folder: Path) -> None:
        """Read the weights of `save`."""
        restore_trainable(self.network, folder / "backbone.safetensors")
