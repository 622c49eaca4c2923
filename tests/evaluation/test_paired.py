"""Paired tests against full enumeration, scipy and numbers by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from plant_cli.api import WeightedMetric
from plant_cli.evaluation.bootstrap import adjust_holm, compare_ranks, randomise, randomise_joined
from plant_cli.evaluation.counters import compute_families, compute_value, mean_of_documents


@pytest.mark.parametrize("seed", [4, 32])
def test_randomisation_agrees_with_all_sign_patterns(seed):
    """Among those of 32 some reach the observed difference on paper alone: 0.1 + 0.2 is not 0.3."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(8).round(1), rng.random(8).round(1)
    differences = a - b
    all_patterns = np.array(list(product([1, -1], repeat=8))) @ differences
    exact = np.mean(np.abs(all_patterns) >= abs(differences.sum()) - 1e-12)
    pair = (mean_of_documents("x", a), mean_of_documents("x", b))
    [p] = randomise([pair], 20000, np.random.default_rng(0))
    assert p == pytest.approx(exact, abs=0.012)


def test_swapped_outputs_recompute_macro_f1(make_random, families):
    """Against swapping rows of the counters by hand, with the same swaps."""
    data = make_random(0, documents=8)
    turned = replace(data, top=data.top[:, ::-1])  # the same labels with other scores: others are assigned
    one, two = ({m.name: m for m in compute_families(families, d)}["macro-F1"] for d in (data, turned))
    observed = abs(compute_value(one) - compute_value(two))
    a, b = one.contributions.toarray(), two.contributions.toarray()
    reached = 0
    for swap in np.random.default_rng(7).integers(0, 2, size=(200, 8)).astype(bool):
        x, y = np.where(swap[:, None], b, a), np.where(swap[:, None], a, b)
        difference = one.combine(x.sum(axis=0, keepdims=True)) - one.combine(y.sum(axis=0, keepdims=True))
        reached += abs(difference[0]) >= observed - 1e-12
    [p] = randomise([(one, two)], 200, np.random.default_rng(7))
    assert p == pytest.approx((1 + reached) / 201)


def test_equal_systems_have_p_one_and_clear_ones_the_smallest():
    same = mean_of_documents("x", np.linspace(0, 1, 30))
    worse = mean_of_documents("x", np.linspace(0, 1, 30) - 0.5)
    assert randomise([(same, same), (same, worse)], 999, np.random.default_rng(0)) == pytest.approx([1.0, 0.001])


def test_signed_ranks_equal_scipy_without_ties():
    rng = np.random.default_rng(1)
    a, b = rng.random(8), rng.random(8)
    ranks = compare_ranks(a, b)
    assert ranks.exact
    assert ranks.p == pytest.approx(stats.wilcoxon(a, b, method="exact").pvalue)
    many = compare_ranks(rng.random(200), rng.random(200))
    assert not many.exact
    assert many.documents == 200


def test_signed_ranks_with_ties_equal_enumeration_and_zeros_are_left_out():
    a, b = np.array([0.3, 0.3, 0.1, 0.2, 0.5, np.nan, 0.4, 0.9]), np.array([0.1, 0.1, 0.3, 0.2, 0.1, 0.5, 0.2, 0.1])
    ranks = compare_ranks(a, b)
    assert ranks.documents == 6
    d = np.array([0.2, 0.2, -0.2, 0.4, 0.2, 0.8])
    r = stats.rankdata(np.abs(d))
    sums = np.array([(np.array(s) * r).sum() for s in product([0, 1], repeat=6)])
    positive = r[d > 0].sum()
    exact = min(1.0, 2 * min(np.mean(sums <= positive), np.mean(sums >= positive)))
    assert ranks.p == pytest.approx(exact)
    assert compare_ranks(a[:1], a[:1]).p == 1.0


@pytest.mark.parametrize("size", [30, 85, 300])
def test_signed_ranks_of_fifths_are_those_of_whole_numbers(size):
    """0.6 − 0.4 and 0.4 − 0.2 are ties, whether all patterns are counted or not."""
    rng = np.random.default_rng(size)
    a, b = rng.integers(0, 6, size), rng.integers(0, 6, size)
    expected, found = compare_ranks(a.astype(np.float64), b.astype(np.float64)), compare_ranks(a / 5, b / 5)
    assert found == expected
    if not found.exact:
        assert found.p == pytest.approx(stats.wilcoxon(a - b, method="approx").pvalue)


def test_which_system_stands_first_does_not_matter():
    """With ties and few documents, where patterns that equal the observed one count on both sides."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 6, 9) / 5, rng.integers(0, 6, 9) / 5
    assert compare_ranks(a, b) == compare_ranks(b, a)


def test_holm_by_hand():
    assert adjust_holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust_holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])


def test_documents_that_differ_by_rounding_alone_do_not_differ():
    assert 0.1 + 0.2 != 0.3
    ranks = compare_ranks(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.4]))
    assert ranks.documents == 1


def test_swapping_by_weights_is_exact_where_all_swaps_are_known():
    """Three documents on which A is better by 1 each: 2 of 8 swaps reach the observed difference."""
    values = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    joined = WeightedMetric(name="m", documents=6, compute=lambda weights: weights @ values / weights.sum(axis=1))
    p = randomise_joined(joined, 1.0, 10**6, np.random.default_rng(0))
    assert p == pytest.approx(2 / 8, abs=0.04)
    assert randomise_joined(joined, 0.0, 9, np.random.default_rng(0)) == 1.0
