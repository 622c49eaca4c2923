"""The sparse product counts what a plain loop over documents counts."""

from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from plant_cli.relevance.counting import SparseCounting, count_terms, mark_presence

TEXTS = [["a", "a", "b"], ["b", "c"], ["a", "c", "c"], ["b"]]
GOLD = csr_array(np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1]], dtype=np.int32))


def count_plainly(words: tuple[str, ...]) -> tuple[Any, Any]:
    """Documents with label and word, and occurrences of the word in the documents of the label, both [L, V]."""
    both, occurrences = np.zeros((2, GOLD.shape[1], len(words)), dtype=int)
    for (label, column), (document, text) in product(np.ndindex(both.shape), enumerate(TEXTS)):
        if GOLD[document, label]:
            both[label, column] += words[column] in text
            occurrences[label, column] += text.count(words[column])
    return both, occurrences


def test_pairs_and_occurrences_are_those_of_a_loop() -> None:
    counting = SparseCounting(count_terms(TEXTS, 1), GOLD, with_occurrences=True)
    both, occurrences = count_plainly(counting.margins.words)
    found = counting.count(0, 3)
    dense = np.zeros((2, *both.shape), dtype=int)
    dense[0, found.label, found.word] = found.both
    dense[1, found.label, found.word] = found.occurrences
    assert dense[0].tolist() == both.tolist()
    assert dense[1].tolist() == occurrences.tolist()
    assert counting.margins.docs_with_label.tolist() == [2, 0, 3]
    assert counting.margins.words_with_label is not None
    assert counting.margins.words_with_label.tolist() == [6, 0, 6]


def test_bounds_are_never_below_the_pairs() -> None:
    counting = SparseCounting(count_terms(TEXTS, 1), GOLD)
    assert (counting.pair_bounds >= np.diff(counting.count(0, 3).offsets)).all()


def test_words_that_never_co_occur_are_added_behind_those_that_do() -> None:
    counting = SparseCounting(count_terms(TEXTS, 1), GOLD)
    pairs = counting.count(0, 3).with_absent([np.array([], dtype=np.int32), np.array([2, 0], dtype=np.int32), np.array([], dtype=np.int32)])
    row = slice(pairs.offsets[1], pairs.offsets[2])
    assert (pairs.word[row].tolist(), pairs.both[row].tolist()) == ([2, 0], [0, 0])


def test_a_repeated_word_is_present_once() -> None:
    assert mark_presence(csr_array(np.array([[3, 0, 1]]))).toarray().tolist() == [[1, 0, 1]]
