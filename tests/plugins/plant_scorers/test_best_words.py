"""The scorer `table`: sums of the best words against a plain loop, and choices by documents
that are left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from plant_scorers import TableOptions
from plant_scorers.best_words import COUNTED_WORDS, PRIORS, BestWordScorer, fit
from scipy.sparse import csr_array

from plant_cli.api import Documents, ScorerInput
from plant_cli.testing.scorer_checks import (
    SCORER_TEXTS,
    TITLES,
    TRAIN,
    read_sample,
    sample_scorer_input,
)

WORDS = ("fever", "cough", "arm", "leg")
RELEVANCE = np.array([[1, 0.5, 0, 0], [0, 0, 0.4, 0.1], [0.3, 0, 0, 0.6]])


def given(**changes: Any) -> ScorerInput:
    """Three labels of four, two and one of five documents, with relevance as above, whatever
    the documents are.
    """
    gold = csr_array([[1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0]])

    def relate(documents: Documents, gold: csr_array) -> tuple[tuple[str, ...], csr_array]:
        return WORDS, csr_array(RELEVANCE.astype(np.float32))

    return replace(
        sample_scorer_input(),
        documents=read_sample(TRAIN[:5]),
        doc_ids=[f"d{row}" for row in range(5)],
        gold=gold,
        rows=np.zeros(0, dtype=np.int64),
        relate=relate,
        **changes,
    )


def test_folds_are_drawn_from_all_of_train_and_leave_out_a_fifth_at_most() -> None:
    documents = read_sample(TRAIN[:1] * 100)
    for wanted in (7, 90, 100):
        rows = np.arange(wanted, dtype=np.int64)
        folds = replace(sample_scorer_input(), documents=documents, rows=rows).cut_folds()
        assert sorted(np.concatenate(folds).tolist()) == rows.tolist()
        assert max(map(len, folds)) <= 20
    assert all(
        np.diff(fold).max() > 1 for fold in folds
    )  # no slices: neighbours in a file are often alike


@pytest.mark.parametrize("best", COUNTED_WORDS)
def test_scores_are_sums_of_the_best_words_and_the_frequency(best: int) -> None:
    scorer = fit(TableOptions(words=best, prior=0.2), given()).scorer
    texts = ["fever cough leg leg", "arm and leg", "nothing that is known"]
    [found] = scorer.score(read_sample(texts))
    scaled = RELEVANCE / RELEVANCE.max(axis=1, keepdims=True)
    for row, text in enumerate(texts):
        known = [
            scaled[:, WORDS.index(word)] for word in dict.fromkeys(text.split()) if word in WORDS
        ]
        words = np.array(known).reshape(-1, 3)
        sums = -np.sort(-words, axis=0)[:best].sum(axis=0)
        expected = sums + 0.2 * np.log([4, 2, 1])
        np.testing.assert_allclose(found.toarray()[row], expected, atol=1e-6)


def test_reasons_are_the_words_that_count() -> None:
    scorer = fit(TableOptions(words=1), given()).scorer
    reasons = scorer.explain(read_sample(["leg cough fever"]), [0, 2, 1])
    assert [reason.words for reason in reasons] == [("fever",), ("leg",), ("leg",)]


def test_what_is_not_given_is_chosen_by_documents_that_are_left_out() -> None:
    data = sample_scorer_input()
    fitted = fit(TableOptions(), data)
    assert isinstance(fitted.scorer, BestWordScorer)
    assert fitted.scorer.best in COUNTED_WORDS
    assert fitted.scorer.prior in PRIORS
    assert fitted.left_out is not None
    [left_out] = fitted.left_out
    chosen = TableOptions(words=fitted.scorer.best, prior=fitted.scorer.prior)
    for place, row in enumerate(data.rows):
        # The rows fall into parts of no more than a fifth of the documents: here two.
        parts = [
            fit(
                chosen,
                replace(
                    data,
                    documents=data.documents.take(np.setdiff1d(np.arange(12), [row, *others])),
                    gold=csr_array(data.gold[np.setdiff1d(np.arange(12), [row, *others])]),
                    rows=data.rows[:0],
                ),
            )
            .scorer.score(data.documents.take(np.array([row])))[0]
            .toarray()[0]
            for others in ([other] for other in data.rows)
        ]
        assert any(np.allclose(left_out.toarray()[place], part, atol=1e-6) for part in parts)


def test_labels_without_words_follow_by_frequency() -> None:
    scorer = fit(TableOptions(prior=0.0), given()).scorer
    [found] = scorer.score(read_sample([SCORER_TEXTS[3]]))
    assert found.shape == (1, len(TITLES) - 2)
    assert not found.toarray().any()
