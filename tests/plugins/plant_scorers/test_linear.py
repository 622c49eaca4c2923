"""The scorer `linear`: ridge against its normal equations, terms of labels, and the squared
hinge.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from plant_scorers import LinearOptions
from plant_scorers.linear import LinearScorer, fit
from plant_scorers.vectors import Train
from scipy.sparse import csr_array

from plant_cli.api import ComponentError, Reason
from plant_cli.testing.scorer_checks import SCORER_TEXTS, read_sample, sample_scorer_input


def weights(**options: object) -> np.ndarray:
    scorer = fit(LinearOptions(**options), sample_scorer_input()).scorer
    assert isinstance(scorer, LinearScorer)
    return scorer.weights.toarray()


def test_weights_solve_the_normal_equations() -> None:
    given = sample_scorer_input()
    x = Train.fit(given.documents, pieces=False).vectors.toarray().astype(np.float64)
    for found, label in zip(
        weights(pieces=False, strength=0.5, terms=1000), given.gold.toarray().T, strict=True
    ):
        chosen = np.flatnonzero(label @ x)
        own, mass = x[:, chosen], (x[label > 0] ** 2).sum() / label.sum()
        expected = np.linalg.solve(own.T @ own + 0.5 * mass * np.eye(len(chosen)), own.T @ label)
        np.testing.assert_allclose(found, np.bincount(chosen, expected, x.shape[1]), atol=1e-3)


def test_a_label_has_one_term_more_for_each_further_document() -> None:
    documents = sample_scorer_input().gold.sum(axis=0)
    for most, wanted in ((500, 1 + documents), (2, np.full(len(documents), 2))):
        found = weights(pieces=False, terms=2, most_terms=most)
        np.testing.assert_array_equal((found != 0).sum(axis=1), np.where(documents, wanted, 0))


def test_scores_are_products_with_the_weights_also_below_0() -> None:
    fitted = fit(LinearOptions(), sample_scorer_input()).scorer
    assert isinstance(fitted, LinearScorer)
    scorer, texts = replace(fitted, weights=csr_array(-fitted.weights)), read_sample(SCORER_TEXTS)
    [found] = scorer.score(texts)
    np.testing.assert_allclose(
        found.toarray(),
        scorer.vectoriser.transform(texts).toarray() @ scorer.weights.toarray().T,
        atol=1e-5,
    )
    assert found.data.min() < 0


def test_the_squared_hinge_finds_the_labels_too() -> None:
    pytest.importorskip("sklearn")
    scorer = fit(LinearOptions(loss="squared-hinge"), sample_scorer_input()).scorer
    [found] = scorer.score(read_sample(SCORER_TEXTS))
    assert found.toarray()[0].argmax() == 0
    assert found.toarray()[4].max() > 0


def test_the_squared_hinge_without_scikit_learn_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(ComponentError, match="scikit-learn is not installed"):
        fit(LinearOptions(loss="squared-hinge"), sample_scorer_input())


def test_reasons_are_words_of_the_document_also_where_training_knew_only_a_part() -> None:
    scorer = fit(LinearOptions(), sample_scorer_input()).scorer
    assert scorer.explain(read_sample(["a fever"]), [0]) == [Reason(words=("fever",))]
    assert scorer.explain(read_sample(["feverish she was"]), [0]) == [Reason(words=("feverish",))]
