"""A backbone: an embedding for each word, found by a hash of the word. Torch is imported late,
so that `plant --help` stays quick.
"""

import re
from zlib import crc32

import numpy as np

from plant_cli.api import BackboneSpec, TokenBatch, hookimpl


class WordBag:
    hidden_size, max_length, tokenizer_hash = 64, 2048, "word-bag-4096"

    def __init__(self, options, machine):
        from torch import nn

        self.network = nn.Embedding(4097, self.hidden_size, padding_idx=0)

    def tokenize(self, texts):
        matches = [list(re.finditer(r"\w+", text)) for text in texts]
        read = [found[: self.max_length] for found in matches]
        ids = [
            np.array([1 + crc32(m.group().lower().encode()) % 4096 for m in found], np.int32)
            for found in read
        ]
        spans = [np.array([m.span() for m in found], np.int32).reshape(-1, 2) for found in read]
        return TokenBatch(
            ids=ids,
            spans=spans,
            dropped=[max(0, len(found) - self.max_length) for found in matches],
        )

    def encode(self, batch):
        from torch import as_tensor, nn

        rows = [as_tensor(ids, device=self.network.weight.device).long() for ids in batch.ids]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        return self.network(ids), ids > 0

    def module(self):
        return self.network

    def layer_groups(self):
        return [[self.network.weight]]

    def save(self, folder):
        from plant_network.trainable_layers import save_trainable

        save_trainable(self.network, folder / "words.safetensors")

    def restore(self, folder):
        from plant_network.trainable_layers import restore_trainable

        restore_trainable(self.network, folder / "words.safetensors")


@hookimpl
def plant_register_backbones():
    return [BackboneSpec(name="word-bag", summary="Embeddings of hashed words.", load=WordBag)]
