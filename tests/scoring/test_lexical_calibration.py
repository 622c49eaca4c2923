"""Platt scaling by training frequency, and reliability, against hand-made figures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, log_loss

from plant_cli.scoring.calibration import (
    FLATTEST,
    calibrate_pairs,
    describe_reliability,
    find_floored,
    fit_calibration,
    label_weights,
    measure_losses,
    measure_reliability,
)
from plant_cli.scoring.fusion import Fusion


def drawn(slope: float, offset: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and what comes true where the true logit is slope · x + offset."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=20000) * 2
    return x[:, None], chance.random(20000) < 1 / (1 + np.exp(-(slope * x + offset)))


def test_slope_and_offset_are_found() -> None:
    values, right = drawn(0.5, -1.0)
    found = fit_calibration(values, right, np.ones(20000, dtype=np.int64), 100, prior=(1.0,), knots=(1.0,))
    assert found.weights[0, 0] == pytest.approx(0.5, abs=0.03)
    assert found.bias[0] == pytest.approx(-1.0, abs=0.05)
    logits = calibrate_pairs(found, values, np.ones(20000, dtype=np.int64))
    before, after = (measure_reliability(1 / (1 + np.exp(-x)), right).error for x in (values[:, 0], logits))
    assert after < 0.015 < 0.1 < before


def test_rare_and_frequent_labels_have_slopes_of_their_own() -> None:
    one, many = drawn(0.5, 0.0), drawn(2.0, -1.0, seed=1)
    values, right = (np.concatenate(pair) for pair in zip(one, many, strict=True))
    counts = np.repeat([1, 100], 20000)
    found = fit_calibration(values, right, counts, 100, prior=(1.0,))
    weights, offset = label_weights(found, np.array([1, 100]))
    np.testing.assert_allclose(weights[0], [0.5, 2.0], atol=0.1)
    np.testing.assert_allclose(offset, [0.0, -1.0], atol=0.1)


def test_without_anything_to_learn_from_sources_keep_their_weights() -> None:
    found = fit_calibration(np.zeros((0, 2)), np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64), 0, prior=(0.0, 1.0))
    np.testing.assert_array_equal(found.weights, [[0, 0], [1, 1]])
    np.testing.assert_array_equal(found.bias, [0, 0])


def test_the_order_of_one_source_is_never_turned_round() -> None:
    values, right = drawn(-1.0, 0.0)
    found = fit_calibration(values, right, np.ones(20000, dtype=np.int64), 1, prior=(1.0,), knots=(1.0,))
    assert found.weights[0, 0] == FLATTEST
    assert find_floored(found) == [1.0]
    rising = fit_calibration(-values, right, np.ones(20000, dtype=np.int64), 1, prior=(1.0,))
    assert find_floored(rising) == []
    two = np.repeat(values, 2, axis=1)
    both = fit_calibration(two, right, np.ones(20000, dtype=np.int64), 1, prior=(0.0, 1.0), knots=(1.0,))
    assert find_floored(both) == []  # weights of two sources may be negative


def test_logits_are_cut_where_probabilities_are_zero_and_one_alone() -> None:
    same = Fusion(knots=np.ones(1), weights=np.ones((1, 1)), bias=np.zeros(1))
    found = calibrate_pairs(same, np.array([[-90.0], [-12.0], [12.0], [90.0]]), np.ones(4, dtype=np.int64))
    assert found.tolist() == [-50, -12, 12, 50]


def test_reliability_by_hand() -> None:
    found = measure_reliability(np.array([0.05, 0.05, 0.95, 1.0, 0.5]), np.array([False, True, True, True, False]))
    assert found.counts.tolist() == [2, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert found.shares[[0, 5, 9]].tolist() == [0.5, 0.0, 1.0]
    assert found.error == pytest.approx((2 * 0.45 + 1 * 0.5 + 2 * 0.025) / 5)
    described = describe_reliability(found)
    assert described["ECE"] == found.error
    assert described["bins"][0] == {"pairs": 2, "probability": pytest.approx(0.05), "right": 0.5}


def test_over_no_pairs_nothing_is_measured() -> None:
    found = measure_reliability(np.zeros(0), np.zeros(0, dtype=bool))
    assert found.error is None
    assert describe_reliability(found)["ECE"] is None


def test_losses_against_scikit_learn() -> None:
    values, right = drawn(1.0, 0.5)
    losses = measure_losses(values[:, 0], right)
    probabilities = 1 / (1 + np.exp(-values[:, 0]))
    assert losses.brier == pytest.approx(brier_score_loss(right, probabilities))
    assert losses.log_loss == pytest.approx(log_loss(right, probabilities))
    assert measure_losses(np.array([800.0, -800.0]), np.array([False, True])).log_loss == pytest.approx(800)
    assert measure_losses(np.zeros(0), np.zeros(0, dtype=bool)).brier == 0
