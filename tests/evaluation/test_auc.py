"""AUC of weighted documents against scikit-learn, in blocks of any size, and of two systems
whose outputs are swapped.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from plant_cli.evaluation import auc
from plant_cli.evaluation.auc import PackedWeights, average_auc, pooled_auc
from plant_cli.evaluation.counters import ScoreTable, compute_families, compute_value
from plant_cli.evaluation.measurement import (
    JoinedScores,
    Measurement,
    join_inputs,
    join_metrics,
    keep_shared,
)

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


@pytest.fixture
def both(make_random):
    """Two systems on the same documents with every score; the second writes scores on another
    scale.
    """
    rng = np.random.default_rng(0)
    data = replace(make_random(0), train_counts=np.arange(1, 11))
    tables = [rng.normal(size=(15, 10)), 7 * rng.normal(size=(15, 10)) - 30]
    return [
        replace(
            data,
            all_scores=ScoreTable(values=t.astype(np.float32), rows=np.arange(15), memory=10**6),
        )
        for t in tables
    ]


@pytest.fixture
def systems(both, families):
    return [
        (name, [Measurement(metrics=compute_families(families, data), data=data)])
        for name, data in zip("ab", both, strict=True)
    ]


def test_weights_choose_whose_output_a_document_has(both, systems, families):
    """Each system alone has its own AUC; a swap has that of the outputs laid together by hand."""
    joined = join_metrics(systems, families)
    for name in ("macro-AUC", "micro-AUC"):
        metric = joined["b", name]
        ones, zeros = np.ones(15), np.zeros(15)
        own = [
            next(compute_value(m) for m in found[0].metrics if m.name == name)
            for _, found in systems
        ]
        assert metric.compute(np.array([[*ones, *zeros], [*zeros, *ones]])) == pytest.approx(
            own, abs=1e-6
        )
        swapped = np.arange(15) % 2 == 0
        scaled = [
            (t - t.mean()) / t.std()
            for t in (data.all_scores.values.astype(float) for data in both)
        ]
        mixed = np.where(swapped[:, None], scaled[1], scaled[0]).astype(np.float32)
        by_hand = replace(
            both[0], all_scores=ScoreTable(values=mixed, rows=np.arange(15), memory=10**6)
        )
        expected = next(
            compute_value(m) for m in compute_families(families, by_hand) if m.name == name
        )
        assert metric.compute(np.array([[*~swapped, *swapped]]).astype(float)) == pytest.approx(
            [expected], abs=1e-6
        )


def test_scores_are_read_in_any_block(both):
    whole = JoinedScores((both[0].all_scores, both[1].all_scores))
    everything = whole.read(slice(None), slice(None))
    assert everything.shape == whole.shape == (30, 10)
    assert np.abs(everything[15:].mean()) < 1e-6
    for start, stop in ((0, 3), (12, 18), (15, 30), (20, 21)):
        assert np.array_equal(
            whole.read(slice(start, stop), slice(2, 5)), everything[start:stop, 2:5]
        )


def test_lists_of_different_length_are_joined(both):
    longer = replace(
        both[1],
        top=np.pad(both[1].top, ((0, 0), (0, 2))),
        scores=np.pad(both[1].scores, ((0, 0), (0, 2))),
    )
    found = join_inputs(both[0], longer)
    assert found.top.shape == found.scores.shape == (30, 8)
    assert (found.top[:15, 6:] == -1).all()
    assert isinstance(found.gold, csr_array)
    assert found.gold.shape == (30, 10)


def test_only_metrics_of_all_systems_are_kept(systems, families):
    alone = replace(systems[1][1][0].data, all_scores=None)
    lists = ("b", [Measurement(metrics=compute_families(families, alone), data=alone)])
    kept = keep_shared([systems[0], lists])
    names = [[m.name for m in found[0].metrics] for _, found in kept]
    assert names[0] == names[1]
    assert "micro-AUC" not in names[0]
    assert join_metrics(kept, families) == {}


def test_of_several_seeds_the_mean(systems, families):
    repeated = [(name, found * 2) for name, found in systems]
    weights = np.ones((1, 30))
    for key, metric in join_metrics(repeated, families).items():
        assert metric.compute(weights) == pytest.approx(
            join_metrics(systems, families)[key].compute(weights)
        )
