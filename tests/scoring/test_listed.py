"""The best labels from listed labels and training frequencies: those that the logits of all labels give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import random_array

from plant_cli.api import Interrupted
from plant_cli.scoring.calibration import Curve
from plant_cli.scoring.fusion import Candidates, Fusion, fuse_rows, gather_candidates
from plant_cli.scoring.models import Combination, list_calibrated
from plant_cli.scoring.scorers import FusedScorers, ScoredDocuments
from plant_cli.scoring.scores import keep_best
from plant_cli.scoring.top import ListedLogits, TopCollector, TopLabels, list_logits

DOCUMENTS, LABELS = 70, 300
CALIBRATION = Fusion(knots=np.array([1.0, 10.0]), weights=np.array([[0.8, 1.2]]), bias=np.array([1.0, -1.0]))
CURVES = tuple(Curve(least=n, logits=np.array([-9.0, 0.0, 9.0]), values=np.array([-7.0, n / 90, 5.0])) for n in (1, 6, 51))


def draw(seed: int, density: float) -> tuple[Fusion, Candidates, np.ndarray]:
    """Two scorers with random weights; scores are few different numbers, so that many labels are equal."""
    rng = np.random.default_rng(seed)
    scores = []
    for _ in range(2):
        matrix = random_array(
            (DOCUMENTS, LABELS), density=density, format="csr", rng=rng, data_sampler=lambda size: rng.integers(1, 4, size)
        )
        scores.append(keep_best(matrix.astype(np.float32), 40))
    knots = np.array([1.0, 3.0, 10.0, 50.0])
    fusion = Fusion(knots=knots, weights=rng.normal(0.5, 0.5, (2, 4)), bias=rng.normal(0, 1, 4))
    return fusion, gather_candidates(scores), rng.integers(1, 120, LABELS)


def rank_all(logits: np.ndarray, k: int) -> TopLabels:
    collected = TopCollector(len(logits), min(k, logits.shape[1]))
    collected.add(np.arange(len(logits)), logits)
    return collected.done()


def assert_same(found: TopLabels, expected: TopLabels) -> None:
    assert np.array_equal(found.labels, expected.labels)
    assert np.array_equal(found.scores, expected.scores)
    assert found.assigned_share == expected.assigned_share


@pytest.mark.parametrize("k", [1, 5, 100, 1000])
@pytest.mark.parametrize("density", [0.0, 0.005, 0.1, 0.6])
def test_they_are_those_of_all_logits(density: float, k: int) -> None:
    for seed in range(5):
        fusion, candidates, counts = draw(seed, density)
        expected = rank_all(fuse_rows(fusion, candidates, counts, np.arange(DOCUMENTS)), k)
        assert_same(list_logits(fusion, candidates, counts).best(k), expected)


@pytest.mark.parametrize("curves", [(), CURVES])
def test_they_are_those_of_all_calibrated_logits(curves: tuple[Curve, ...]) -> None:
    fusion, candidates, counts = draw(0, 0.1)
    scorers = FusedScorers(scorers=(), fusion=fusion, alone={}, train_counts=counts, analyser=None)  # type: ignore[arg-type]
    combination = Combination(scorers=scorers, calibration=CALIBRATION, train_counts=counts, curves=curves)
    scored = ScoredDocuments(scorers=scorers, candidates=candidates)
    expected = rank_all(combination.calibrate(scored.logits(np.arange(DOCUMENTS)), counts), 100)
    assert 0 < expected.assigned_share < 1
    assert_same(list_calibrated(combination, scored).best(100), expected)


def test_no_array_of_all_labels_is_made() -> None:
    """An array of all pairs would have 24 GB, and parts of it take minutes."""
    labels, documents = 2_000_000, 3_000
    rows = np.arange(documents)
    listed = ListedLogits(
        rows=rows,
        labels=rows * 7,
        logits=np.zeros(documents, dtype=np.float32),
        counts=np.array([1, 2]),
        groups=np.arange(labels) % 2,
        floors=np.tile(np.array([[-2.0, -1.0]], dtype=np.float32), (documents, 1)),
    )
    found = listed.best(3)
    assert found.labels[[0, 1, 2_999]].tolist() == [[0, 1, 3], [7, 1, 3], [20_993, 1, 3]]
    assert found.assigned_share == 1 / labels


def test_it_stops_when_it_is_asked_to() -> None:
    with pytest.raises(Interrupted):
        list_logits(*draw(0, 0.1)).best(3, lambda: True)
