"""The backbone `word-bag`: what a network owes `plant`, at its smallest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from plant_cli.api import TokenBatch
from plant_cli.kit import restore_trainable, save_trainable

if TYPE_CHECKING:
    from plant_example.plugin import WordBagOptions

WORD = re.compile(r"\w+")
PADDING = 0
FILE = "word-bag.safetensors"


class WordBag:
    """Fulfils `plant_cli.api.Backbone`: nothing is inherited, the methods are enough."""

    def __init__(self, options: WordBagOptions) -> None:
        self.buckets = options.buckets
        self.hidden_size = options.hidden
        self.max_length = options.max_tokens
        self.tokenizer_hash = f"word-bag-{options.buckets}"
        self.embedding = nn.Embedding(options.buckets + 1, options.hidden, padding_idx=PADDING)
        self.mix = nn.Conv1d(options.hidden, options.hidden, kernel_size=3, padding=1, bias=False)
        self.network = nn.ModuleDict({"embedding": self.embedding, "mix": self.mix})

    def tokenize(self, texts: Sequence[str]) -> TokenBatch:
        """Character offsets tie tokens to the words that `plant mig` counted."""
        found = [list(WORD.finditer(text)) for text in texts]
        kept = [matches[: self.max_length] for matches in found]
        return TokenBatch(
            ids=[np.array([self._bucket(m.group()) for m in matches], dtype=np.int32) for matches in kept],
            spans=[np.array([m.span() for m in matches], dtype=np.int32).reshape(-1, 2) for matches in kept],
            dropped=[len(all_) - len(some) for all_, some in zip(found, kept, strict=True)],
        )

    def encode(self, batch: TokenBatch) -> tuple[Tensor, Tensor]:
        """Padding is embedded as zero, and so adds nothing to its neighbours."""
        rows = [torch.as_tensor(ids, dtype=torch.long, device=self.embedding.weight.device) for ids in batch.ids]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PADDING)
        embedded = self.embedding(ids)
        mixed = self.mix(embedded.transpose(1, 2)).transpose(1, 2)
        return torch.tanh(embedded + mixed), ids != PADDING

    def module(self) -> nn.Module:
        return self.network

    def layer_groups(self) -> Sequence[Sequence[nn.Parameter]]:
        """From the first layer to the last: gradual unfreezing begins at the end."""
        return [list(part.parameters()) for part in (self.embedding, self.mix)]

    def save(self, folder: Path) -> None:
        save_trainable(self.network, folder / FILE)

    def restore(self, folder: Path) -> None:
        restore_trainable(self.network, folder / FILE)

    def _bucket(self, word: str) -> int:
        return 1 + crc32(word.lower().encode()) % self.buckets  # the same on every machine, unlike hash()
