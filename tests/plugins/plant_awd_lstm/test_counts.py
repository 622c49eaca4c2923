"""Unigram and bigram models beside plain loops."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Literal

import numpy as np
import pytest
from plant_awd_lstm.language_model import BEGIN
from plant_awd_lstm.pretraining import DISCOUNT, bigram_perplexity, unigram_perplexity

WORDS = 9
DRAW = np.random.default_rng(0)
TRAIN = [DRAW.integers(3, WORDS - 1, size=n).astype(np.int32) for n in (5, 9, 1, 0, 12)]
OTHER = [DRAW.integers(3, WORDS, size=n).astype(np.int32) for n in (4, 7)]  # word 8 is never seen in train


def pairs(documents: list[np.ndarray], direction: str) -> list[tuple[int, int]]:
    found = []
    for document in documents:
        text = [BEGIN, *document[:: 1 if direction == "forward" else -1].tolist(), BEGIN]
        found += list(itertools.pairwise(text))
    return found


def plain_unigram(word: int) -> float:
    counts = Counter(after for _, after in pairs(TRAIN, "forward"))
    return (counts[word] + 1) / (sum(counts.values()) + WORDS)


def test_unigram() -> None:
    chances = [plain_unigram(after) for _, after in pairs(OTHER, "forward")]
    expected = math.exp(-sum(map(math.log, chances)) / len(chances))
    assert unigram_perplexity(TRAIN, OTHER, WORDS) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_bigram(direction: Literal["forward", "backward"]) -> None:
    seen = Counter(pairs(TRAIN, direction))
    before = Counter(first for first, _ in pairs(TRAIN, direction))
    followers = Counter(first for first, _ in seen)

    def chance(first: int, second: int) -> float:
        if not before[first]:
            return plain_unigram(second)
        share = DISCOUNT * followers[first] / before[first]
        return max(seen[first, second] - DISCOUNT, 0) / before[first] + share * plain_unigram(second)

    chances = [chance(*pair) for pair in pairs(OTHER, direction)]
    expected = math.exp(-sum(map(math.log, chances)) / len(chances))
    assert bigram_perplexity(TRAIN, OTHER, WORDS, direction) == pytest.approx(expected, rel=1e-12)
    for first in range(2, WORDS):
        assert sum(chance(first, second) for second in range(WORDS)) == pytest.approx(1)
