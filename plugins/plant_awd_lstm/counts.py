"""What counting alone reaches: the perplexity of a unigram and of a bigram model, beside which a language model's is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from plant_awd_lstm.options import Direction
from plant_awd_lstm.vocabulary import BEGIN

IntArray = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
DISCOUNT = 0.75


def unigram_perplexity(train: Sequence[IntArray], other: Sequence[IntArray], words: int) -> float:
    """Perplexity of a model that knows how often each word occurs in train, plus one.

    Args:
        train: rows of each training document's tokens.
        other: those of the documents that are scored.
        words: size V of the vocabulary.
    """
    _, targets = _pairs(other, "forward")
    return float(np.exp(-np.log(_unigram(train, words)[targets]).mean()))


def bigram_perplexity(train: Sequence[IntArray], other: Sequence[IntArray], words: int, direction: Direction = "forward") -> float:
    """Perplexity of a bigram model with absolute discounting, which falls back on the unigram model.

        p(w | v) = max(c(v, w) − d, 0) / c(v) + d · followers(v) / c(v) · p(w), with d = 0.75

    Source: Ney et al. 1994; Chen and Goodman 1999, section 2.6.
    """
    unigram = _unigram(train, words)
    before, after = _pairs(train, direction)
    keys, counts = np.unique(before * words + after, return_counts=True)
    seen, followers = np.bincount(before, minlength=words), np.bincount(keys // words, minlength=words)
    before, after = _pairs(other, direction)
    place = np.minimum(np.searchsorted(keys, before * words + after), len(keys) - 1)
    found = np.where(keys[place] == before * words + after, counts[place], 0)
    known = np.maximum(seen[before], 1)
    share = np.where(seen[before] > 0, DISCOUNT * followers[before] / known, 1.0)
    chance = np.maximum(found - DISCOUNT, 0) / known + share * unigram[after]
    return float(np.exp(-np.log(chance).mean()))


def _unigram(train: Sequence[IntArray], words: int) -> Floats:
    _, targets = _pairs(train, "forward")
    counts = np.bincount(targets, minlength=words) + 1.0
    chances: Floats = counts / counts.sum()
    return chances


def _pairs(documents: Sequence[IntArray], direction: Direction) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Each token of the documents with the one before it, [n] and [n]; a mark stands before and after every document."""
    step = -1 if direction == "backward" else 1
    text = np.concatenate([[BEGIN], *(part for document in documents for part in (document[::step], [BEGIN]))]).astype(np.int64)
    return text[:-1], text[1:]
