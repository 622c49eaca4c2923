"""Counting words in documents: the vocabulary and the document × word matrix that every signal starts from."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

BATCH_TOKENS = 1 << 22  # word occurrences held at once before they are added up: about 50 MB


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The words of the training documents.

    Args:
        words: the vocabulary, by falling document frequency, then alphabetically: a smaller index wins every tie.
        occurrences: csr [N, V], how often each word occurs in each document.
        docs_with_word: documents that hold each word [V].
    """

    words: tuple[str, ...]
    occurrences: csr_array
    docs_with_word: npt.NDArray[np.int64]


def count_terms(documents: Iterable[Iterable[str]], min_df: int = 2, keep: Set[str] = frozenset()) -> Terms:
    """Count the words of a stream of documents, each read once.

    Args:
        documents: the words of each document, in any order, with repeats.
        min_df: words in fewer documents than this are left out.
        keep: words that are not, however rare.
    """
    numbers: dict[str, int] = {}
    return join_batches(list(count_batches(documents, numbers)), numbers, min_df, keep)


def join_batches(batches: Sequence[csr_array], numbers: Mapping[str, int], min_df: int, keep: Set[str] = frozenset()) -> Terms:
    """The words of all documents, from the batches and numbers of `count_batches`; see `count_terms`."""
    parts = [csr_array((p.data, p.indices, p.indptr), shape=(p.shape[0], len(numbers))) for p in batches]
    counted = csr_array(vstack(parts, format="csr")) if parts else csr_array((0, 0), dtype=np.int32)
    frequency = np.bincount(counted.indices, minlength=len(numbers)).astype(np.int64)
    words, order = choose_words(numbers, frequency, min_df, keep)
    chosen = csr_array(counted[:, order])
    chosen.sort_indices()
    return Terms(words=words, occurrences=chosen, docs_with_word=frequency[order])


def choose_words(
    numbers: Mapping[str, int], frequency: npt.NDArray[np.int64], min_df: int, keep: Set[str]
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """The vocabulary, by falling document frequency, then alphabetically, and the number of each of its words [V]."""
    names = list(numbers)
    wanted = frequency >= min_df
    wanted[[numbers[word] for word in keep if word in numbers]] = True
    kept = sorted(np.flatnonzero(wanted).tolist(), key=lambda i: (-frequency[i], names[i]))
    return tuple(names[i] for i in kept), np.asarray(kept, dtype=np.int64)


def count_batches(documents: Iterable[Iterable[str]], numbers: dict[str, int]) -> Iterator[csr_array]:
    """Matrices of consecutive documents over the words met so far; new words get the next number in `numbers`."""
    tokens, ends = array("i"), [0]
    for document in documents:
        tokens.extend([numbers.setdefault(word, len(numbers)) for word in document])
        ends.append(len(tokens))
        if len(tokens) >= BATCH_TOKENS:
            yield _count(tokens, ends, len(numbers))
            tokens, ends = array("i"), [0]
    if len(ends) > 1:
        yield _count(tokens, ends, len(numbers))


def _count(tokens: array[int], ends: list[int], width: int) -> csr_array:
    ones = np.ones(len(tokens), dtype=np.int32)
    counted = csr_array((ones, np.array(tokens, dtype=np.int32), np.asarray(ends, dtype=np.int32)), shape=(len(ends) - 1, width))
    counted.sum_duplicates()
    return counted
