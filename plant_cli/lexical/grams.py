"""Character n-grams of words: word forms that share a stem share most of them, and compounds share them with their parts.

The n-grams of a text are those of its words, so a word is cut once however often it occurs: counts of words [B, W] times n-grams
of words [W, G] are counts of n-grams [B, G].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

SHORTEST, LONGEST = 3, 5
EDGE = " "


def cut_word(word: str, shortest: int = SHORTEST, longest: int = LONGEST) -> list[str]:
    """The character n-grams of a word between two spaces, which mark its ends; with repeats.

    Args:
        word: without spaces.
        shortest: characters of the shortest n-grams.
        longest: characters of the longest ones; a word that is shorter with its spaces is one n-gram itself.
    """
    text = f"{EDGE}{word}{EDGE}"
    sizes = range(shortest, min(longest, len(text)) + 1)
    return [text[start : start + size] for size in sizes for start in range(len(text) - size + 1)] or [text]


def number_grams(words: Iterable[str], shortest: int = SHORTEST, longest: int = LONGEST) -> dict[str, int]:
    """A number for each n-gram of some words, in the order in which they come."""
    numbers: dict[str, int] = {}
    for word in words:
        for gram in cut_word(word, shortest, longest):
            numbers.setdefault(gram, len(numbers))
    return numbers


def count_grams(words: Sequence[str], numbers: Mapping[str, int], shortest: int = SHORTEST, longest: int = LONGEST) -> csr_array:
    """How often each n-gram is in each word, csr [W, G] float32.

    Args:
        words: distinct words [W].
        numbers: column of each n-gram that counts; others are left out.
        shortest: characters of the shortest n-grams.
        longest: characters of the longest ones.
    """
    columns: list[int] = []
    counts: list[int] = []
    ends = [0]
    for word in words:
        found = Counter(numbers[gram] for gram in cut_word(word, shortest, longest) if gram in numbers)
        columns.extend(found)
        counts.extend(found.values())
        ends.append(len(columns))
    cells = (np.array(counts, dtype=np.float32), np.array(columns, dtype=np.int32), np.array(ends))
    matrix = csr_array(cells, shape=(len(words), len(numbers)))
    matrix.sort_indices()
    return matrix
