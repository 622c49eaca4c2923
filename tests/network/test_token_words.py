"""Words are matched with the tokens that spell them by character offsets."""

import numpy as np

from plant_cli.api import TokenBatch
from plant_cli.data.word_analysis import PLAIN
from plant_cli.network.reading import OUTSIDE, find_token_words, match_words

TEXT = "Fever and cough, fever again"
WORDS = ("again", "cough", "fever")
# tokens: "Fe" "ver" "and" "cough" "," "fe" "ver" "again"
SPANS = np.array([[0, 2], [2, 5], [6, 9], [10, 15], [15, 16], [17, 19], [19, 22], [23, 28]], dtype=np.int32)


def test_words_are_matched_with_the_tokens_that_spell_them() -> None:
    found = match_words(TEXT, SPANS, {w: i for i, w in enumerate(WORDS)}, PLAIN)
    assert found.vocabulary.tolist() == [2, OUTSIDE, 1, 0]  # fever, and, cough, again
    pairs = {(int(t), int(w)) for t, w in zip(found.token, found.word, strict=True)}
    assert pairs == {(0, 0), (1, 0), (5, 0), (6, 0), (2, 1), (3, 2), (7, 3)}


def test_tokens_that_hold_a_leading_blank_still_meet_their_word() -> None:
    spans = np.array([[0, 5], [5, 9], [9, 15]], dtype=np.int32)  # "Fever" " and" " cough"
    found = match_words("Fever and cough", spans, {"cough": 0}, PLAIN)
    assert {(int(t), int(w)) for t, w in zip(found.token, found.word, strict=True)} == {(0, 0), (1, 1), (2, 2)}


def test_words_beyond_the_last_token_are_no_items() -> None:
    found = match_words(TEXT, SPANS[:3], {"cough": 0, "fever": 1}, PLAIN)
    assert found.vocabulary.tolist() == [1, OUTSIDE]


def test_every_token_has_the_row_of_its_word() -> None:
    tokens = TokenBatch(ids=[np.arange(8), np.arange(0), np.arange(2)], spans=[SPANS, SPANS[:0], SPANS[:2]], dropped=[0, 0, 0])
    found = find_token_words([TEXT, "", "other"], tokens, WORDS, PLAIN)
    assert [rows.tolist() for rows in found] == [[2, 2, -1, 1, -1, 2, 2, 0], [], [-1, -1]]


def test_of_several_words_of_a_token_the_first_in_the_table_counts() -> None:
    tokens = TokenBatch(ids=[np.arange(1)], spans=[np.array([[0, 15]], dtype=np.int32)], dropped=[0])
    assert find_token_words(["Fever and cough"], tokens, ("cough", "and"), PLAIN)[0].tolist() == [1]


def test_positions_are_items_of_their_own() -> None:
    found = match_words(TEXT, SPANS, {w: i for i, w in enumerate(WORDS)}, PLAIN).by_position()
    assert found.token.tolist() == [0, 1, 2, 3, 5, 6, 7]  # the comma spells no word
    assert found.word.tolist() == list(range(7))
    assert found.vocabulary.tolist() == [2, 2, OUTSIDE, 1, 2, 2, 0]
