import numpy as np
import pytest

from plant_cli.relevance.engine import KeptWords
from plant_cli.relevance.normalise import add_title_words

KEPT = KeptWords(
    offsets=np.array([0, 2, 3, 3]),
    words=np.array([4, 1, 0], dtype=np.int32),
    values=np.array([0.9, 0.3, 0.2]),
    both=np.array([2, 1, 1], dtype=np.int32),
)
DOCS = np.array([8, 4, 2, 1, 1])  # of N = 7 + 1: idf is ln 1.125, ln 2.25, ln 4.5, ln 9, ln 9


def test_title_words_are_raised_or_put_behind_by_idf() -> None:
    """Label 0: word 1 was kept, word 3 was not. Label 1 has no title. Label 2 kept nothing; its title is word 2."""
    kept, relevance = add_title_words(KEPT, np.array([1.0, 0.4, 1.0]), [[1, 3], [], [2]], weight=0.5, n_docs=8, docs_with_word=DOCS)
    assert kept.offsets.tolist() == [0, 3, 4, 5]
    assert kept.words.tolist() == [4, 1, 3, 0, 2]
    assert relevance == pytest.approx([1.0, 0.4 + 0.5 * np.log(2.25) / np.log(9), 0.5, 1.0, 0.5])
    assert np.isnan(kept.values).tolist() == [False, False, True, False, True]
    assert kept.both.tolist() == [2, 1, -1, 1, -1]
    assert kept.ranks.tolist() == [1, 2, 3, 1, 1]


def test_relevance_is_clipped_to_one() -> None:
    _, relevance = add_title_words(KEPT, np.array([1.0, 0.8, 1.0]), [[1, 4], [], []], weight=1.0, n_docs=8, docs_with_word=DOCS)
    assert relevance.max() == 1.0


def test_without_titles_nothing_changes() -> None:
    kept, relevance = add_title_words(KEPT, np.array([1.0, 0.4, 1.0]), [[], [], []], weight=1.0, n_docs=8, docs_with_word=DOCS)
    assert kept.words.tolist() == KEPT.words.tolist()
    assert relevance.tolist() == [1.0, 0.4, 1.0]
