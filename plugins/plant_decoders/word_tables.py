"""Tensors with a row for each word of the relevance table: they take their size from saved
weights where there is no table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn


class WordTables(nn.Module):
    """A module whose tensors `sized` have a row for each word of the relevance table.

    Built without a relevance table, it takes their sizes over from the weights that it reads.
    """

    sized: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """Words V of the relevance table; the last row stands for all words outside it."""
        return len(getattr(self, self.sized[0])) - 1

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in () if self.words else self.sized:
            saved, present = state_dict.get(prefix + name), getattr(self, name)
            if saved is not None:
                fresh = present.detach().new_empty(saved.shape)
                setattr(
                    self, name, nn.Parameter(fresh) if isinstance(present, nn.Parameter) else fresh
                )
        super()._load_from_state_dict(state_dict, prefix, *rest)


class RelevanceByWord(WordTables):
    """Relevance of words for labels, by word: label numbers and values of each word one after the
    other.

    Without relevance [L, V], nothing is relevant, or it is read from saved weights.
    """

    sized = ("starts", "labels", "values")
    starts: Tensor
    labels: Tensor
    values: Tensor

    def __init__(self, relevance: csr_array | None) -> None:
        super().__init__()
        by_word = None if relevance is None else relevance.tocsc()
        pointers = np.zeros(1) if by_word is None else by_word.indptr
        labels = np.zeros(0) if by_word is None else by_word.indices
        values = np.zeros(0) if by_word is None else by_word.data
        starts = np.append(pointers, pointers[-1]).astype(np.int64)
        self.register_buffer("starts", torch.from_numpy(starts))
        self.register_buffer("labels", torch.from_numpy(labels.astype(np.int64)))
        self.register_buffer("values", torch.from_numpy(values.astype(np.float32)))

    @property
    def words(self) -> int:
        """Words V of the relevance table."""
        return len(self.starts) - 2

    def forward(self, words: Tensor, labels: Tensor, total: int) -> Tensor:
        """Relevance [l, U] of words [U] for labels [l], of `total` labels."""
        begins = self.starts[words]
        counts = self.starts[words + 1] - begins
        device = words.device
        column = torch.repeat_interleave(torch.arange(len(words), device=device), counts)
        offsets = torch.repeat_interleave(begins - counts.cumsum(0) + counts, counts)
        flat = torch.arange(len(column), device=device) + offsets
        rows = torch.full((total,), -1, device=device)
        rows.scatter_(0, labels, torch.arange(len(labels), device=device))
        row = rows[self.labels[flat]]
        wanted = row >= 0
        relevance = self.values.new_zeros(len(labels), len(words))
        relevance[row[wanted], column[wanted]] = self.values[flat[wanted]]
        return relevance
