import numpy as np
import pytest

from plant_cli.relevance import counting as module
from plant_cli.relevance.counting import count_terms

DOCUMENTS = ["b a a", "b c", "", "b a d", "c e"]


def split(rows: list[str]) -> list[list[str]]:
    return [row.split() for row in rows]


def test_vocabulary_is_by_falling_document_frequency_then_alphabet() -> None:
    terms = count_terms(split(DOCUMENTS), min_df=2)
    assert terms.words == ("b", "a", "c")
    assert terms.docs_with_word.tolist() == [3, 2, 2]


def test_occurrences_count_repeats_and_keep_empty_documents() -> None:
    terms = count_terms(split(DOCUMENTS), min_df=2)
    assert terms.occurrences.toarray().tolist() == [[1, 2, 0], [1, 0, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]]


def test_batches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = count_terms(split(DOCUMENTS), min_df=1)
    monkeypatch.setattr(module, "BATCH_TOKENS", 2)
    parts = count_terms(split(DOCUMENTS), min_df=1)
    assert parts.words == whole.words
    assert np.array_equal(parts.occurrences.toarray(), whole.occurrences.toarray())


@pytest.mark.parametrize("rows", [[], ["", ""]])
def test_no_words_are_no_error_here(rows: list[str]) -> None:
    terms = count_terms(split(rows))
    assert terms.words == ()
    assert terms.occurrences.shape == (len(rows), 0)
