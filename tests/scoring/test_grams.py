"""n-grams by hand, and counts of texts from counts of words."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from plant_cli.scoring.lexical import count_grams, cut_word, number_grams


def test_a_word_is_cut_between_its_ends() -> None:
    assert cut_word("art", 3, 4) == [" ar", "art", "rt ", " art", "art "]


def test_a_word_shorter_than_the_shortest_is_one_itself() -> None:
    assert cut_word("é", 4, 5) == [" é "]
    assert cut_word("é", 3, 5) == [" é "]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Zs"]), min_size=1, max_size=12))
def test_every_piece_is_in_the_word_and_every_position_begins_one(word: str) -> None:
    pieces = cut_word(word)
    assert all(piece in f" {word} " for piece in pieces)
    assert {piece for piece in pieces if len(piece) == 3} == {f" {word} "[i : i + 3] for i in range(len(word))}


def test_counts_of_texts_are_counts_of_words_times_grams_of_words() -> None:
    words, texts = ["banana", "ban", "nab"], [["banana", "ban", "ban"], ["nab"], []]
    numbers = number_grams(words[:2])  # n-grams that only "nab" has do not count
    counts = csr_array(np.array([[text.count(word) for word in words] for text in texts], dtype=np.float32))
    found = (counts @ count_grams(words, numbers)).toarray()
    for text, row in zip(texts, found, strict=True):
        plain = Counter(gram for word in text for gram in cut_word(word))
        np.testing.assert_array_equal(row, [plain[gram] for gram in numbers])
