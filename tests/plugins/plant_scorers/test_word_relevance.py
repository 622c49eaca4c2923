"""The scorer `words` against plain loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from plant_scorers import WordsOptions
from plant_scorers.word_relevance import WordScorer, fit, positive_information
from scipy.sparse import csr_array

from plant_cli.testing.scorer_checks import SCORER_TEXTS, TRAIN, read_sample, sample_scorer_input


def test_information_counts_where_a_word_is_more_frequent_with_the_label() -> None:
    one = np.array([4, 1]), np.array([4, 4]), np.array([4, 4])
    found = positive_information(*one, 8)
    assert found[0] == pytest.approx(math.log(2))
    assert found[1] == 0  # less frequent with than without


def test_scores_are_cosines_of_tf_idf_and_information() -> None:
    given = sample_scorer_input()
    fitted = fit(WordsOptions(min_df=1), given)
    assert isinstance(fitted.scorer, WordScorer)
    gold, count = given.gold.toarray(), len(TRAIN)
    frequency = {
        word: sum(word in text.split() for text in TRAIN) for word in given.documents.vocabulary
    }
    [found] = fitted.scorer.score(read_sample(SCORER_TEXTS))
    for row, text in enumerate(SCORER_TEXTS):
        words = text.split()
        vector = {
            w: (1 + math.log(words.count(w))) * math.log((count + 1) / (n + 1))
            for w, n in frequency.items()
            if w in words
        }
        length = math.sqrt(sum(value**2 for value in vector.values())) or 1.0
        for label in range(gold.shape[1]):
            relevance = {}
            for word, n in frequency.items():
                both = sum(
                    word in text.split()
                    for text, own in zip(TRAIN, gold[:, label], strict=True)
                    if own
                )
                relevance[word] = float(
                    positive_information(
                        *(np.array([v]) for v in (both, n, gold[:, label].sum())), count
                    )[0]
                )
            size = math.sqrt(sum(value**2 for value in relevance.values())) or 1.0
            cosine = sum(value * relevance[word] for word, value in vector.items()) / length / size
            assert found.toarray()[row, label] == pytest.approx(cosine, abs=1e-5)


def test_words_are_too_rare_where_the_left_out_document_is_one_of_those_that_have_them() -> None:
    """A word of three documents is in two others: too few where three are wanted."""
    given, options = sample_scorer_input(), WordsOptions(min_df=3)
    documents = read_sample(
        [text + (" rash" if row in (0, 4, 8) else "") for row, text in enumerate(TRAIN)]
    )
    plain, found = (
        fit(options, given).left_out,
        fit(options, replace(given, documents=documents)).left_out,
    )
    assert plain is not None
    assert found is not None
    assert given.rows[[0, 2]].tolist() == [0, 4]
    np.testing.assert_allclose(found[0].toarray()[[0, 2]], plain[0].toarray()[[0, 2]], atol=1e-6)


def test_pruning_keeps_the_words_of_highest_relevance() -> None:
    scorer = fit(WordsOptions(min_df=1, terms=1), sample_scorer_input()).scorer
    assert isinstance(scorer, WordScorer)
    assert np.diff(csr_array(scorer.relevance).indptr).max() == 1


def test_very_many_labels_score_as_all_do_that_are_compared() -> None:
    """Lists of labels by word fit here, so that nothing is lost."""
    given = sample_scorer_input()
    [whole], [found] = (
        fit(WordsOptions(min_df=1, exact=exact), given).scorer.score(read_sample(SCORER_TEXTS))
        for exact in (99, 1)
    )
    assert whole.nnz
    np.testing.assert_allclose(found.toarray(), whole.toarray(), atol=1e-6)


def test_reasons_are_words_of_the_document() -> None:
    scorer = fit(WordsOptions(min_df=1), sample_scorer_input()).scorer
    reason = scorer.explain(read_sample(["cough and fever of somebody"]), [0])[0]
    assert set(reason.words) <= {"cough", "fever", "and"}
    assert "fever" in reason.words
