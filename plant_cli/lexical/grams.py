"""Character n-grams of words: word forms that share a stem share most of them, and compounds share them with their parts.

The n-grams of a text are those of its words, so a word is cut once however often it occurs: counts of words [B, W] times n-grams
of words [W, G] are counts of n-grams [B, G].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
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


@lru_cache(maxsize=4)
def cut_words(words: tuple[str, ...], shortest: int = SHORTEST, longest: int = LONGEST) -> tuple[Mapping[str, int], csr_array]:
    """A number for each n-gram of some words, in the order in which they come, and how often each is in each word, csr [W, G] float32.

    Every scorer that reads a vocabulary asks for the same: the last answers are kept.

    Args:
        words: distinct words [W].
        shortest: characters of the shortest n-grams.
        longest: characters of the longest ones; a word that is shorter with its spaces is one n-gram itself.
    """
    numbers: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for word in words:
        columns += [numbers.setdefault(gram, len(numbers)) for gram in cut_word(word, shortest, longest)]
        ends.append(len(columns))
    cells = (np.ones(len(columns), dtype=np.float32), np.array(columns, dtype=np.int32), np.array(ends))
    matrix = csr_array(cells, shape=(len(words), len(numbers)))
    matrix.sum_duplicates()
    return MappingProxyType(numbers), matrix


def number_grams(words: Iterable[str], shortest: int = SHORTEST, longest: int = LONGEST) -> Mapping[str, int]:
    """A number for each n-gram of some words, in the order in which they come."""
    return cut_words(tuple(words), shortest, longest)[0]


def count_grams(words: Sequence[str], numbers: Mapping[str, int], shortest: int = SHORTEST, longest: int = LONGEST) -> csr_array:
    """How often each n-gram is in each word, csr [W, G] float32.

    Args:
        words: distinct words [W].
        numbers: column of each n-gram that counts, 0 ≤ column < G; others are left out.
        shortest: characters of the shortest n-grams.
        longest: characters of the longest ones.
    """
    own, counts = cut_words(tuple(words), shortest, longest)
    columns = np.fromiter((numbers.get(gram, -1) for gram in own), dtype=np.int32, count=len(own))
    return choose_columns(counts, columns, len(numbers))


def choose_columns(matrix: csr_array, columns: npt.NDArray[np.integer[Any]], width: int) -> csr_array:
    """A csr matrix [R, W] with its columns in other places [R, width]; columns of −1 are left out. Columns of a row ascend.

    Args:
        matrix: csr [R, W].
        columns: the new place of each column [W], distinct where it is not −1.
        width: columns of the result.
    """
    known = np.append(columns, -1)[matrix.indices] >= 0
    ends = np.concatenate([[0], np.cumsum(known)])[matrix.indptr]
    found = csr_array((matrix.data[known], columns[matrix.indices[known]], ends), shape=(matrix.shape[0], width))
    found.sort_indices()
    return found
