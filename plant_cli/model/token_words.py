"""Which tokens spell which words of a document, by character offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.api import Analyser, TokenBatch

Rows = npt.NDArray[np.int64]
OUTSIDE = -1  # a word that the relevance table does not have


@dataclass(frozen=True, kw_only=True)
class DocumentWords:
    """The distinct words of a document and the tokens that spell them.

    Args:
        vocabulary: row of each distinct word [U] in the relevance table, or `OUTSIDE`.
        token: token positions [n], one entry for each (token, word) that overlap.
        word: the word of each entry [n], 0 ≤ word < U.
    """

    vocabulary: Rows
    token: Rows
    word: Rows

    def by_position(self) -> DocumentWords:
        """Every token as a word of its own, with the row of the first word that it spells."""
        token, first = np.unique(self.token, return_index=True)
        return DocumentWords(vocabulary=self.vocabulary[self.word[first]], token=token, word=np.arange(len(token)))


def match_words(text: str, spans: npt.NDArray[np.int32], rows: Mapping[str, int], analyser: Analyser) -> DocumentWords:
    """Match the words of a text with its tokens.

    Args:
        text: the text as it was tokenised.
        spans: character offsets [T, 2] of the tokens, in order.
        rows: row of each word in the relevance table.
        analyser: finds the words; forms of one word are one.
    """
    found = analyser.words(text)
    distinct: dict[str, int] = {}
    numbers = np.array([distinct.setdefault(word, len(distinct)) for word, _, _ in found], dtype=np.int64)
    begins = np.array([start for _, start, _ in found], dtype=np.int64)
    ends = np.array([end for _, _, end in found], dtype=np.int64)
    first = np.searchsorted(spans[:, 1], begins, side="right")
    last = np.searchsorted(spans[:, 0], ends, side="left")
    counts = np.maximum(last - first, 0)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    token = np.repeat(first, counts) + within
    word = np.repeat(numbers, counts)
    seen = np.unique(word)  # words whose tokens lie beyond the backbone's limit have no token to be scored at
    vocabulary = np.array([rows.get(w, OUTSIDE) for w in distinct], dtype=np.int64)[seen] if len(seen) else seen
    return DocumentWords(vocabulary=vocabulary, token=token, word=np.searchsorted(seen, word))


def find_token_words(texts: Sequence[str], tokens: TokenBatch, vocabulary: Sequence[str], analyser: Analyser) -> list[Rows]:
    """For each document, the row of each token's word in the relevance table [T], or `OUTSIDE`.

    Where a token overlaps several words of the table, the first of them counts.

    Args:
        texts: the documents.
        tokens: their tokens, in the same order.
        vocabulary: the words of the relevance table.
        analyser: finds words as it found those of the table.
    """
    rows = {word: row for row, word in enumerate(vocabulary)}
    found = []
    for text, spans in zip(texts, tokens.spans, strict=True):
        matched = match_words(text, spans, rows, analyser)
        entries = matched.vocabulary[matched.word]
        known = np.flatnonzero(entries != OUTSIDE)[::-1]  # the first is written last
        words_of_tokens = np.full(len(spans), OUTSIDE, dtype=np.int64)
        words_of_tokens[matched.token[known]] = entries[known]
        found.append(words_of_tokens)
    return found
