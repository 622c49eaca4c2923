"""Vocabularies are added up, and words of each find their row in the sum."""

import polars as pl

from plant_cli.relevance.shards import merge_vocabularies, number_words

FIRST = pl.DataFrame({"word": ["b", "a", "rare"], "docs_with_word": [2, 1, 1]})
SECOND = pl.DataFrame({"word": ["a", "c"], "docs_with_word": [2, 3]})


def test_words_are_sorted_by_their_documents_then_by_the_alphabet() -> None:
    merged = merge_vocabularies([FIRST, SECOND], min_df=2)
    assert merged.rows() == [("a", 3), ("c", 3), ("b", 2)]


def test_words_find_their_row_and_rare_ones_none() -> None:
    merged = merge_vocabularies([FIRST, SECOND], min_df=2)
    assert number_words(FIRST, merged).tolist() == [2, 0, -1]
    assert number_words(SECOND, merged).tolist() == [0, 1]
