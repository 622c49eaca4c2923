"""AUC of weighted documents against scikit-learn, in blocks of any size."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from plant_metrics import auc
from plant_metrics.auc import PackedWeights, average_auc, pooled_auc
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from plant_cli.evaluation.counters import ScoreTable

SMALLEST, LARGEST = 1, 2**24


def table(values: Any, memory: int = LARGEST) -> ScoreTable:
    return ScoreTable(
        values=np.asarray(values, dtype=np.float32), rows=np.arange(len(values)), memory=memory
    )


def draw(seed: int, documents: int = 40, labels: int = 9, levels: int = 6) -> tuple[Any, Any, Any]:
    """Scores on few levels, gold with a label that nobody has and one that everybody has, and
    weights of 300 resamples.
    """
    rng = np.random.default_rng(seed)
    gold = (rng.random((documents, labels)) < 0.15).astype(np.int64)
    gold[:, 0], gold[:, 1], gold[0] = 0, 1, 0
    return (
        rng.integers(0, levels, (documents, labels)),
        gold,
        rng.poisson(1.0, (300, documents)).astype(np.float64),
    )


def by_scikit_learn(scores: Any, gold: Any, weights: Any) -> tuple[float, float]:
    """macro-AUC over the labels that the weights give both sides, and micro-AUC."""
    counted = [
        label for label in range(gold.shape[1]) if 0 < weights @ gold[:, label] < weights.sum()
    ]
    macro = np.mean(
        [
            roc_auc_score(gold[:, label], scores[:, label], sample_weight=weights)
            for label in counted
        ]
    )
    pooled = roc_auc_score(
        gold.ravel(), scores.ravel(), sample_weight=np.repeat(weights, gold.shape[1])
    )
    return float(macro), float(pooled)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("memory", [SMALLEST, LARGEST])
def test_resamples_equal_scikit_learn_with_multiplicities_as_weights(
    seed: int, memory: int
) -> None:
    scores, gold, weights = draw(seed)
    weights[0] = 1.0
    expected = np.array([by_scikit_learn(scores, gold, row) for row in weights])
    assert (
        np.abs(average_auc(table(scores, memory), csr_array(gold), weights) - expected[:, 0]).max()
        < 1e-12
    )
    assert (
        np.abs(pooled_auc(table(scores, memory), csr_array(gold), weights) - expected[:, 1]).max()
        < 1e-12
    )


def test_the_toy_by_hand() -> None:
    scores, gold = (
        table([[3.0, 1.0], [2.0, 1.0], [1.0, 0.0]]),
        csr_array(np.array([[0, 1], [1, 0], [0, 0]])),
    )
    once, twice = np.ones((1, 3)), np.array([[2.0, 1.0, 0.0]])
    assert average_auc(scores, gold, once) == pytest.approx(
        [(1 / 2 + 1.5 / 2) / 2]
    )  # label 0 beats 1 of 2, label 1 ties with 1 and beats 1
    assert average_auc(scores, gold, twice) == pytest.approx([(0 + 0.5) / 2])
    assert pooled_auc(scores, gold, once) == pytest.approx(
        [5 / 8]
    )  # 2 beats 1, 1 and 0; 1 beats 0 and ties with 1 and 1


def test_what_a_resample_leaves_undefined_is_no_number() -> None:
    scores, gold = table([[1.0], [2.0]]), csr_array(np.array([[1], [0]]))
    weights = np.array([[0.0, 2.0], [2.0, 0.0], [1.0, 1.0]])
    for compute in (average_auc, pooled_auc):
        assert np.array_equal(compute(scores, gold, weights), [np.nan, np.nan, 0.0], equal_nan=True)
        assert np.isnan(compute(scores, csr_array((2, 1), dtype=np.int64), weights)).all()


def test_sums_that_fill_their_field_do_not_run_into_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4096, (5, 50)).astype(np.float64)
    weights[:, 0] = 4095
    documents, ends = rng.permutation(50), np.array([50, 0, 7, 7, 49])
    expected = np.array([[weights[r, documents[:end]].sum() for r in range(5)] for end in ends])
    assert np.array_equal(PackedWeights(weights).prefixes(documents, ends), expected)
    assert np.array_equal(PackedWeights(weights).of(documents), weights[:, documents].T)
    monkeypatch.setattr(auc, "LANES", 1)
    scores, gold, counts = draw(1)
    narrow = average_auc(table(scores), csr_array(gold), counts)
    monkeypatch.undo()
    assert np.array_equal(narrow, average_auc(table(scores), csr_array(gold), counts))


@pytest.mark.parametrize("compute", [average_auc, pooled_auc])
def test_memory_follows_the_budget_and_not_the_scores(compute: Any) -> None:
    documents, labels = 400, 3000
    scores = np.random.default_rng(0).random((documents, labels), dtype=np.float32)
    gold = csr_array(
        (np.ones(documents, dtype=np.int64), (np.arange(documents), np.arange(documents))),
        shape=scores.shape,
    )
    weights = np.ones((2, documents))
    peaks = []
    for memory in (2**18, 2**24):
        tracemalloc.start()
        compute(table(scores, memory), gold, weights)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[0] < scores.nbytes / 3 < scores.nbytes < peaks[1] * 4
    assert peaks[0] < 2**18 + 1.5e6  # beside the blocks: lists of the labels and of the positives


def test_a_field_is_not_filled_by_one_document_too_many() -> None:
    """The documents as they are count once each: 4096 are one more than a field holds."""
    documents, ends = np.arange(4096), np.array([4096])
    assert PackedWeights(np.ones((1, 4096))).prefixes(documents, ends).tolist() == [[4096]]
