"""Resamples as weights against really drawing the documents again; paired tests against full
enumeration and scipy.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from plant_cli.api import MetricValue, WeightedMetric
from plant_cli.evaluation import bootstrap
from plant_cli.evaluation.bootstrap import (
    adjust_holm,
    bound_proportion,
    compare_ranks,
    count_measured,
    draw_weights,
    interval,
    jackknife,
    leave_out,
    randomise,
    randomise_joined,
    resample,
)
from plant_cli.evaluation.counters import compute_families, compute_value, mean_of_documents
from plant_cli.evaluation.measures import measure_bins


def everything(data, families):
    return [*compute_families(families, data), *(m for b in measure_bins(data) for m in b.metrics)]


def test_each_replicate_equals_the_metric_of_the_drawn_documents(make_random, families):
    data = make_random(0)
    metrics = everything(data, families)
    drawn = resample(metrics, 6, np.random.default_rng(1))
    weights = draw_weights(15, 6, np.random.default_rng(1)).astype(int)
    for replicate in range(6):
        rows = np.repeat(np.arange(15), weights[replicate])
        again = replace(
            data,
            top=data.top[rows],
            scores=data.scores[rows],
            gold=csr_array(data.gold.toarray()[rows]),
        )
        expected = {m.name: compute_value(m) for m in everything(again, families)}
        for metric, values in zip(metrics, drawn, strict=True):
            assert values[replicate] == pytest.approx(expected[metric.name], nan_ok=True), (
                metric.name
            )


def test_weights_count_draws():
    weights = draw_weights(7, 50, np.random.default_rng(0))
    assert weights.shape == (50, 7)
    assert (weights.sum(axis=1) == 7).all()
    assert weights.min() == 0 < weights.max()


def test_blocks_change_nothing(make_random, families, monkeypatch):
    metrics = everything(make_random(2), families)
    whole = resample(metrics, 9, np.random.default_rng(3))
    monkeypatch.setattr(bootstrap, "BOOTSTRAP_BYTES", 1)
    told = []
    assert np.allclose(
        resample(metrics, 9, np.random.default_rng(3), told.append), whole, equal_nan=True
    )
    assert sum(told) == 9


TENTHS, SHARE = np.arange(0, 101) / 10, {"documents": 10, "within": (0.0, 1.0)}
NEARLY = np.array([1 - 2e-16, 1.0, 1 + 2e-16])


@pytest.mark.parametrize(
    ("value", "drawn", "level", "options", "bounds"),
    [
        (3.0, TENTHS, 0.9, {}, (0.5, 9.5)),
        (
            7.0,
            TENTHS,
            0.9,
            {"error": 0.1},
            (2.5, 11.5),
        ),  # an average over labels is moved back by its bias
        (7.0, TENTHS, 0.9, {"error": 0.1, "within": (3.0, 10.0)}, (3.0, 10.0)),
        (
            0.5,
            np.array([0.5, np.nan, 0.5]),
            0.95,
            {},
            (0.5, 0.5),
        ),  # resamples that define nothing are left out
        (np.nan, np.array([np.nan]), 0.95, {}, (np.nan, np.nan)),
        # ten documents of one mind are no certainty: Wilson's interval of 10 out of 10 and of 0 out
        # of 10
        (1.0, np.full(50, 1.0), 0.95, SHARE, (0.722467, 1.0)),
        (0.0, np.full(50, 0.0), 0.95, SHARE, (0.0, 0.277533)),
        (
            0.5,
            np.full(50, 0.5),
            0.95,
            SHARE,
            (0.5, 0.5),
        ),  # equal resamples within the scale are what they are
        (1 - 2e-16, NEARLY, 0.95, SHARE, (0.722467, 1.0)),
        (
            1.0,
            TENTHS / 10,
            0.9,
            SHARE,
            (0.05, 0.95),
        ),  # where resamples differ the number of documents says nothing
    ],
)
def test_intervals_by_hand(value, drawn, level, options, bounds):
    assert interval(value, drawn, level, **options) == pytest.approx(bounds, abs=1e-6, nan_ok=True)


def test_documents_are_counted_where_anything_was(families, make_random):
    data = make_random(2)
    counted = {m.name: count_measured(m) for m in everything(data, families)}
    rare = np.flatnonzero((data.train_counts >= 1) & (data.train_counts <= 5))
    assert counted["P@1"] == counted["macro-F1"] == 15
    assert counted["R@10[1-5]"] == np.count_nonzero(data.gold[:, rare].sum(axis=1)) < 15
    one = WeightedMetric(name="of pairs", compute=lambda weights: weights.sum(axis=1), documents=15)
    assert count_measured(one) is None


def test_an_interval_that_was_moved_holds_its_value():
    """Few resamples far away move the mean past both percentiles of the others."""
    for far, others in ((0.0, 0.51), (1.0, 0.49)):
        drawn = np.array([far] * 2 + [others] * 98)
        low, high = interval(0.5, drawn, 0.95, error=0.0, within=(0.0, 1.0))
        assert low <= 0.5 <= high


def test_the_interval_of_a_mean_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        sample = rng.random(60) < 0.4
        values = draw_weights(60, 300, rng) @ sample / 60
        low, high = interval(sample.mean(), values, 0.9)
        covered += low <= 0.4 <= high
    assert 0.84 <= covered / 200 <= 0.96


def test_the_weights_of_a_block_stay_within_the_bound():
    sizes = list(bootstrap.Sums([np.zeros((1000, 1))]).block_sizes(100_000))
    assert sum(sizes) == 100_000
    assert 8 * 1000 * max(sizes) <= bootstrap.BOOTSTRAP_BYTES


def test_the_jackknife_is_the_usual_standard_error_of_a_mean():
    values = np.random.default_rng(0).random(50)
    [left_out] = leave_out([mean_of_documents("P@1", values)])
    assert left_out.shape == (50,)
    assert jackknife(left_out) == pytest.approx(values.std(ddof=1) / np.sqrt(50))
    [parts] = leave_out([mean_of_documents("P@1", values)], parts=10)
    assert parts[0] == pytest.approx(np.delete(values, np.arange(0, 50, 10)).mean())
    assert np.isnan(jackknife(np.array([np.nan, 1.0])))


def test_a_metric_of_pairs_is_left_out_alike():
    values = np.random.default_rng(0).random(30)
    weighted = WeightedMetric(
        name="macro-AUC", documents=30, compute=lambda w: w @ values / w.sum(axis=1), labels=3
    )
    ours, same = leave_out([weighted, mean_of_documents("P@1", values)])
    assert ours == pytest.approx(same)
    assert leave_out([]).size == 0


def test_labels_of_one_document_widen_an_interval():
    """Recall of 40 labels with a document each, half of them found: their share has the
    binomial's standard error, not the resamples'.
    """
    found = np.arange(40) % 2 == 0
    hits = csr_array((found.astype(float), (np.arange(40), np.arange(40))), shape=(40, 40))
    metric = MetricValue(
        name="macro-recall", contributions=hits, combine=lambda sums: (sums > 0).mean(axis=1)
    )
    [drawn] = resample([metric], 4000, np.random.default_rng(0))
    error = jackknife(leave_out([metric])[0])
    assert error == pytest.approx(np.sqrt(0.25 / 40), rel=0.02)
    assert drawn.std() < 0.8 * error
    low, high = interval(0.5, drawn, 0.95, error=error)
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.1)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bounds_are_those_of_scipy(level):
    hits, trials = np.array([0.0, 1.0, 7.0, 30.0, 30.0]), np.array([1.0, 1.0, 12.0, 30.0, 4000.0])
    low, high = bound_proportion(hits, trials, level)
    for at, (hit, trial) in enumerate(zip(hits, trials, strict=True)):
        true = stats.binomtest(int(hit), int(trial)).proportion_ci(level, method="wilson")
        assert (low[at], high[at]) == pytest.approx((true.low, true.high), abs=1e-12)


def test_without_a_trial_nothing_is_known():
    low, high = bound_proportion(np.array([0.0, 2.0]), np.array([0.0, 2.0]), 0.95)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, False]


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
    turned = replace(
        data, top=data.top[:, ::-1]
    )  # the same labels with other scores: others are assigned
    one, two = (
        {m.name: m for m in compute_families(families, d)}["macro-F1"] for d in (data, turned)
    )
    observed = abs(compute_value(one) - compute_value(two))
    a, b = one.contributions.toarray(), two.contributions.toarray()
    reached = 0
    for swap in np.random.default_rng(7).integers(0, 2, size=(200, 8)).astype(bool):
        x, y = np.where(swap[:, None], b, a), np.where(swap[:, None], a, b)
        difference = one.combine(x.sum(axis=0, keepdims=True)) - one.combine(
            y.sum(axis=0, keepdims=True)
        )
        reached += abs(difference[0]) >= observed - 1e-12
    [p] = randomise([(one, two)], 200, np.random.default_rng(7))
    assert p == pytest.approx((1 + reached) / 201)


def test_equal_systems_have_p_one_and_clear_ones_the_smallest():
    same = mean_of_documents("x", np.linspace(0, 1, 30))
    worse = mean_of_documents("x", np.linspace(0, 1, 30) - 0.5)
    assert randomise([(same, same), (same, worse)], 999, np.random.default_rng(0)) == pytest.approx(
        [1.0, 0.001]
    )


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
    a, b = (
        np.array([0.3, 0.3, 0.1, 0.2, 0.5, np.nan, 0.4, 0.9]),
        np.array([0.1, 0.1, 0.3, 0.2, 0.1, 0.5, 0.2, 0.1]),
    )
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
    expected, found = (
        compare_ranks(a.astype(np.float64), b.astype(np.float64)),
        compare_ranks(a / 5, b / 5),
    )
    assert found == expected
    if not found.exact:
        assert found.p == pytest.approx(stats.wilcoxon(a - b, method="approx").pvalue)


def test_which_system_stands_first_does_not_matter():
    """With ties and few documents, where patterns that equal the observed one count on both
    sides.
    """
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 6, 9) / 5, rng.integers(0, 6, 9) / 5
    assert compare_ranks(a, b) == compare_ranks(b, a)


def test_holm_by_hand():
    assert adjust_holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx(
        [0.03, 0.06, 0.06, 0.02]
    )
    assert adjust_holm(np.array([0.9, 0.8])) == pytest.approx([1.0, 1.0])


def test_documents_that_differ_by_rounding_alone_do_not_differ():
    assert 0.1 + 0.2 != 0.3
    ranks = compare_ranks(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.4]))
    assert ranks.documents == 1


def test_swapping_by_weights_is_exact_where_all_swaps_are_known():
    """Three documents on which A is better by 1 each: 2 of 8 swaps reach the observed
    difference.
    """
    values = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    joined = WeightedMetric(
        name="m", documents=6, compute=lambda weights: weights @ values / weights.sum(axis=1)
    )
    p = randomise_joined(joined, 1.0, 10**6, np.random.default_rng(0))
    assert p == pytest.approx(2 / 8, abs=0.04)
    assert randomise_joined(joined, 0.0, 9, np.random.default_rng(0)) == 1.0
