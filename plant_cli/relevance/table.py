"""The relevance of words for labels, as stage 1 reads it."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.sparse import csr_array


@dataclass(frozen=True, kw_only=True)
class RelevanceTable:
    """Which words indicate which label.

    Args:
        words: the vocabulary, by falling document frequency, then alphabetically; lower-cased.
        matrix: csr [L, V] float32 in [0, 1]; columns of each row ascend; words without relevance are not stored.
    """

    words: tuple[str, ...]
    matrix: csr_array
