"""The L2R model of PLANT's first version: f(label, word), how strongly a word indicates a label; and relevance by word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch.nn import functional

EMBEDDING_SCALE = 0.1


class WordTables(nn.Module, ABC):
    """A module with tensors that have a place for each word of the relevance table.

    Built without a relevance table, it takes their sizes over from the weights that it reads.
    """

    sized: tuple[str, ...] = ()

    @property
    @abstractmethod
    def words(self) -> int:
        """Words V of the relevance table."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        adopted = self.sized if not self.words else ()
        for name in adopted:
            saved = state_dict.get(prefix + name)
            if saved is None:
                continue
            own = getattr(self, name)
            fresh = own.detach().new_empty(saved.shape)
            setattr(self, name, nn.Parameter(fresh) if isinstance(own, nn.Parameter) else fresh)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class DotProduct(WordTables):
    """f(l, w) = ⟨e_w, e_l⟩ + b_w + b_l; the last row of words stands for all words outside the table."""

    sized = ("word", "word_bias")

    def __init__(self, words: int, labels: int, size: int) -> None:
        super().__init__()
        self.word = nn.Parameter(torch.randn(words + 1, size) * EMBEDDING_SCALE)
        self.label = nn.Parameter(torch.randn(labels, size) * EMBEDDING_SCALE)
        self.word_bias = nn.Parameter(torch.zeros(words + 1))
        self.label_bias = nn.Parameter(torch.zeros(labels))

    @property
    def words(self) -> int:
        """See `WordTables.words`."""
        return len(self.word) - 1

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        """Scores [l, U] of words [U] for labels [l]."""
        product = functional.embedding(labels, self.label) @ functional.embedding(words, self.word).T
        return product + self.label_bias[labels, None] + self.word_bias[words]


class TwoLayers(WordTables):
    """f(l, w) = v · relu(W [e_w; e_l] + b) + c; the last row of words stands for all words outside the table.

    The first layer is computed for words and for labels by themselves, and only added up for the pairs.
    """

    sized = ("word",)

    def __init__(self, words: int, labels: int, size: int, hidden: int) -> None:
        super().__init__()
        self.size, self.hidden = size, hidden
        self.word = nn.Parameter(torch.randn(words + 1, size) * EMBEDDING_SCALE)
        self.label = nn.Parameter(torch.randn(labels, size) * EMBEDDING_SCALE)
        self.first = nn.Linear(2 * size, hidden)
        self.second = nn.Linear(hidden, 1)

    @property
    def words(self) -> int:
        """See `WordTables.words`."""
        return len(self.word) - 1

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        """Scores [l, U] of words [U] for labels [l]."""
        of_word, of_label = torch.split(self.first.weight, self.size, dim=1)
        from_words = functional.embedding(words, self.word) @ of_word.T
        from_labels = functional.embedding(labels, self.label) @ of_label.T + self.first.bias
        scores: Tensor = self.second(torch.relu(from_labels[:, None] + from_words)).squeeze(-1)
        return scores


class StaticRelevance(WordTables):
    """Relevance of words for labels, by word: label numbers and values of each word one after the other.

    Args:
        relevance: csr [L, V] (None: nothing is relevant, or it is read from saved weights).
    """

    sized = ("starts", "labels", "values")
    starts: Tensor
    labels: Tensor
    values: Tensor

    def __init__(self, relevance: csr_array | None) -> None:
        super().__init__()
        by_word = None if relevance is None else relevance.tocsc()
        pointers = np.zeros(1) if by_word is None else by_word.indptr
        self.register_buffer("starts", torch.from_numpy(np.append(pointers, pointers[-1]).astype(np.int64)))
        self.register_buffer("labels", torch.from_numpy((np.zeros(0) if by_word is None else by_word.indices).astype(np.int64)))
        self.register_buffer("values", torch.from_numpy((np.zeros(0) if by_word is None else by_word.data).astype(np.float32)))

    @property
    def words(self) -> int:
        """See `WordTables.words`."""
        return len(self.starts) - 2

    def forward(self, words: Tensor, labels: Tensor, total: int) -> Tensor:
        """Relevance [l, U] of words [U] for labels [l], of `total` labels."""
        begins = self.starts[words]
        counts = self.starts[words + 1] - begins
        column = torch.repeat_interleave(torch.arange(len(words), device=words.device), counts)
        flat = torch.arange(len(column), device=words.device) + torch.repeat_interleave(begins - counts.cumsum(0) + counts, counts)
        place = torch.full((total,), -1, device=words.device).scatter_(0, labels, torch.arange(len(labels), device=words.device))
        row = place[self.labels[flat]]
        wanted = row >= 0
        found = self.values.new_zeros(len(labels), len(words))
        found[row[wanted], column[wanted]] = self.values[flat[wanted]]
        return found
