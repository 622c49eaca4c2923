"""The scorer `linear`: ridge against its normal equations, by both ways of solving, pruned weights, and the squared hinge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from plant_scorers import LinearOptions
from plant_scorers.linear import LinearScorer, fit
from plant_scorers.vectors import Vectoriser

from plant_cli.api import ComponentError, Reason
from plant_cli.scoring.sparse_scores import cut_folds
from plant_cli.testing.scorer_checks import SCORER_TEXTS, TRAIN, read_sample, sample_scorer_input


def weights(**options: object) -> np.ndarray:
    scorer = fit(LinearOptions(**options), sample_scorer_input()).scorer
    assert isinstance(scorer, LinearScorer)
    return scorer.weights.toarray()


def test_weights_solve_the_normal_equations() -> None:
    given = sample_scorer_input()
    x = Vectoriser.fit(given.documents, pieces=False)[1].toarray().astype(np.float64)
    expected = np.linalg.solve(x.T @ x + 0.5 * np.eye(x.shape[1]), x.T @ given.gold.toarray()).T
    np.testing.assert_allclose(weights(pieces=False, strength=0.5, terms=1000), expected, atol=1e-3)


def test_beyond_the_largest_kernel_a_label_has_one_term_more_for_each_further_document() -> None:
    documents = sample_scorer_input().gold.sum(axis=0)
    for most, wanted in ((500, 1 + documents), (2, np.full(len(documents), 2))):
        found = weights(pieces=False, terms=2, most_terms=most, largest=1)
        np.testing.assert_array_equal((found != 0).sum(axis=1), np.where(documents, wanted, 0))


@pytest.mark.parametrize(
    ("rows", "texts"),
    [([0, 3, 4, 11], TRAIN), (range(12), TRAIN), ([0, 3, 4, 11], [f"{text} unique{row}" for row, text in enumerate(TRAIN)])],
    ids=["some", "all", "words of one document"],
)
def test_left_out_scores_are_of_weights_solved_without_the_documents(rows: Sequence[int], texts: Sequence[str]) -> None:
    given = replace(sample_scorer_input(), rows=np.array(rows), documents=read_sample(texts))
    fitted = fit(LinearOptions(strength=0.5, terms=1000), given)
    assert fitted.left_out is not None
    found, whole = fitted.left_out
    vectoriser, train = Vectoriser.fit(given.documents, pieces=True)
    x, gold = train.toarray().astype(np.float64), given.gold.toarray()
    folds = cut_folds(len(x), len(given.rows))
    assert len(folds) > 1  # twelve documents are too few to leave four out at once
    for fold in folds:
        kept = np.setdiff1d(np.arange(len(x)), given.rows[fold])
        solved = np.linalg.solve(x[kept].T @ x[kept] + 0.5 * np.eye(x.shape[1]), x[kept].T @ gold[kept])
        own = vectoriser.forget(train[given.rows[fold]], ~(x[kept] > 0).any(axis=0)).toarray()
        np.testing.assert_allclose(found.toarray()[fold], own @ solved, atol=1e-3)
    for place, row in enumerate(given.rows):
        kept = np.setdiff1d(np.arange(len(x)), [row])
        solved = np.linalg.solve(x[kept].T @ x[kept] + 0.5 * np.eye(x.shape[1]), x[kept].T @ gold[kept])
        np.testing.assert_allclose(whole.toarray()[place], x[row] @ solved, atol=1e-3)


def test_the_second_view_scores_by_all_weights_and_is_left_out_where_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    given, texts = sample_scorer_input(), read_sample(SCORER_TEXTS)
    scorer = fit(LinearOptions(terms=2), given).scorer
    assert isinstance(scorer, LinearScorer)
    pruned, whole = (view.toarray() for view in scorer.score(texts))
    every = weights(terms=1000)
    np.testing.assert_allclose(whole, scorer.vectoriser.transform(texts).toarray() @ every.T, atol=2e-3)
    assert np.abs(whole - pruned).max() > 0.01
    again = LinearScorer.load(LinearOptions(), scorer.tensors())
    np.testing.assert_array_equal(again.score(texts)[1].toarray(), whole)
    monkeypatch.setattr("plant_scorers.linear.COEFFICIENTS", 10)
    fitted = fit(LinearOptions(terms=2), given)
    assert fitted.left_out is not None
    assert len(fitted.left_out) == len(fitted.scorer.score(texts)) == 1


def test_pruned_weights_are_the_largest() -> None:
    whole, pruned = weights(terms=1000), weights(terms=3)
    assert (np.count_nonzero(pruned, axis=1) == 3).all()
    assert np.abs(pruned).sum() < np.abs(whole).sum()
    np.testing.assert_array_equal(pruned[pruned != 0], whole[pruned != 0])
    for row, kept in zip(whole, pruned, strict=True):
        assert np.abs(kept[kept != 0]).min() >= np.sort(np.abs(row))[-3] - 1e-6


def test_the_squared_hinge_finds_the_labels_too() -> None:
    pytest.importorskip("sklearn")
    scorer = fit(LinearOptions(loss="squared-hinge"), sample_scorer_input()).scorer
    [found] = scorer.score(read_sample(SCORER_TEXTS))
    assert found.toarray()[0].argmax() == 0
    assert found.toarray()[4].max() > 0


def test_the_squared_hinge_without_scikit_learn_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.svm", None)
    with pytest.raises(ComponentError, match="scikit-learn is not installed"):
        fit(LinearOptions(loss="squared-hinge"), sample_scorer_input())


def test_reasons_are_words_of_the_document_also_where_training_knew_only_a_part() -> None:
    scorer = fit(LinearOptions(), sample_scorer_input()).scorer
    assert scorer.explain(read_sample(["a fever"]), [0]) == [Reason(text="fever", words=("fever",))]
    assert scorer.explain(read_sample(["feverish she was"]), [0]) == [Reason(text="feverish", words=("feverish",))]
