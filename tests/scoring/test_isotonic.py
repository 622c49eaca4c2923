"""Curves by isotonic regression against scikit-learn, and the order that they keep."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from plant_cli.scoring.calibration import SLOPE, bend_labels, bend_pairs, fit_curves, measure_losses


def drawn(seed: int, size: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and what comes true by a curve that no slope and offset can follow."""
    chance = np.random.default_rng(seed)
    x = chance.normal(size=size) * 2
    return x, chance.random(size) < np.where(x > 0, 0.4, 0.02)


def test_blocks_are_those_of_the_reference() -> None:
    """Of a block, the share that is right, with one pair more that is right as often as was said before."""
    x, right = drawn(0)
    ones = np.ones(len(x), dtype=np.int64)
    reference = IsotonicRegression().fit(x, right).predict(x)
    blocks, of = np.unique(np.round(reference, 12), return_inverse=True)
    sizes = np.bincount(of)
    shares = np.maximum.accumulate((blocks * sizes + np.bincount(of, expit(x)) / sizes) / (sizes + 1))
    found = (bend_pairs(fit_curves(x, right, ones, (1,)), x, ones) - SLOPE * x) / (1 - SLOPE)
    np.testing.assert_allclose(expit(found), shares[of], atol=1e-9)


def test_it_fits_what_no_slope_can_and_not_worse_where_one_can() -> None:
    x, right = drawn(1)
    other, truth = drawn(2)
    ones = np.ones(len(x), dtype=np.int64)
    bent = bend_pairs(fit_curves(x, right, ones, (1,)), other, ones)
    best = measure_losses(logit(np.where(other > 0, 0.4, 0.02)), truth)
    assert measure_losses(bent, truth).log_loss < best.log_loss + 0.01 < measure_losses(other, truth).log_loss


@pytest.mark.parametrize("size", [1, 3, 60])
def test_the_order_of_a_label_stays(size: int) -> None:
    x, right = drawn(3, size)
    ones = np.ones(size, dtype=np.int64)
    where = np.linspace(-60, 60, 999)
    bent = bend_pairs(fit_curves(x, right, ones), where, np.ones(999, dtype=np.int64))
    assert (np.diff(bent) > 0).all()
    assert np.diff(bent).min() >= SLOPE * np.diff(where).min() * 0.99
    assert np.isfinite(bent).all()


def test_rare_and_frequent_labels_have_curves_of_their_own_where_both_have_enough() -> None:
    x, right = drawn(4)
    counts = np.where(np.arange(len(x)) % 2 == 0, 1, 30)
    curves = fit_curves(x, right & (counts > 1), counts)
    assert [curve.least for curve in curves] == [1]  # no rare label is ever right: one curve for all
    curves = fit_curves(x, right & (counts == 1), counts)
    assert [curve.least for curve in curves] == [1]  # nor any frequent one
    flipped = np.where(counts == 1, right, ~right)
    two = fit_curves(x, flipped, counts)
    assert [curve.least for curve in two] == [1, 6]
    few = bend_labels(two, np.array([[1.0, 1.0]], dtype=np.float32), np.array([5, 6]))
    np.testing.assert_allclose(few[0], bend_pairs(two, np.array([1.0, 1.0]), np.array([5, 6])), rtol=1e-6)
    assert few[0, 0] != few[0, 1]
    none, one = bend_labels(two, np.array([[1.0, 1.0]], dtype=np.float32), np.array([0, 1]))[0]
    assert none == one != 1.0


def test_a_block_of_one_pair_is_not_raised_above_a_larger_one_by_what_was_said_before() -> None:
    """The one pair is wrong, and was said to be right nearly for sure; of the next hundred, ten are right."""
    x, right = np.append(3.0, np.full(100, 4.0)), np.append(False, np.arange(100) < 10)
    ones = np.ones(101, dtype=np.int64)
    low, high = bend_pairs(fit_curves(x, right, ones, (1,)), np.array([3.0, 4.0]), ones[:2])
    assert low < high


def test_equal_logits_weigh_as_many_as_they_are() -> None:
    """One right pair joins the hundred after it, as 11 of 101, and not also the ten after these, of which 3 are right."""
    x = np.repeat([0.0, 1.0, 2.0], [1, 100, 10])
    right = np.concatenate([[True], np.arange(100) < 10, np.arange(10) < 3])
    ones = np.ones(111, dtype=np.int64)
    low, high = bend_pairs(fit_curves(x, right, ones, (1,)), np.array([1.0, 2.0]), ones[:2])
    assert high > low + 0.5


def test_nothing_to_learn_from() -> None:
    assert fit_curves(np.zeros(0), np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)) == ()
    np.testing.assert_array_equal(bend_pairs((), np.array([1.0]), np.array([1])), [1.0])
