"""Averages over seeds hold on any choice of documents; spreads and t intervals against numbers by hand."""

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from plant_cli.api import MetricValue
from plant_cli.evaluation.bootstrap import averages_labels, randomise, resample
from plant_cli.evaluation.comparison import compare_seeds, make_seed_tables, summarise_seeds
from plant_cli.evaluation.counters import average_present_f1, compute_value, mean_of_documents, ratio_of_sums
from plant_cli.evaluation.measurement import Measurement, average

DOCUMENTS, LABELS = 12, 3


def measure(seed):
    """A mean with an undefined document, and two averages of F1 over labels that share their counters."""
    rng = np.random.default_rng(seed)
    values = rng.random(DOCUMENTS)
    values[3] = np.nan
    gold = np.random.default_rng(99).integers(0, 2, (DOCUMENTS, LABELS))
    assigned = rng.integers(0, 2, (DOCUMENTS, LABELS))
    counters = csr_array(np.hstack([gold & assigned, assigned, gold]).astype(float))
    f1 = [MetricValue(name=name, contributions=counters, combine=average_present_f1) for name in ("macro-F1", "macro-F1-present")]
    return [mean_of_documents("P@5", values), *f1]


def test_the_average_is_the_mean_of_the_seeds_on_every_resample():
    seeds = [measure(seed) for seed in range(3)]
    averaged = average(seeds)
    assert [compute_value(m) for m in averaged] == pytest.approx(np.mean([[compute_value(m) for m in seed] for seed in seeds], axis=0))
    drawn = resample(averaged, 20, np.random.default_rng(1))
    alone = [resample(seed, 20, np.random.default_rng(1)) for seed in seeds]
    assert np.allclose(drawn, np.mean(alone, axis=0), equal_nan=True)


def test_what_metrics_share_stays_shared_and_keeps_its_kind():
    averaged = average([measure(0), measure(1)])
    assert averaged[1].contributions is averaged[2].contributions
    assert [averages_labels(m) for m in averaged] == [False, True, True]


def test_means_over_documents_are_those_of_averaged_documents():
    a, b = ([measure(seed) for seed in seeds] for seeds in ((0, 1), (5, 6)))
    averaged = [mean_of_documents("P@5", np.mean([seed[0].per_document for seed in system], axis=0)) for system in (a, b)]
    p = randomise([(average(a)[0], average(b)[0])], 200, np.random.default_rng(0))
    assert p == pytest.approx(randomise([(averaged[0], averaged[1])], 200, np.random.default_rng(0)))
    assert np.allclose(average(a)[0].per_document, averaged[0].per_document, equal_nan=True)


def constant(*values):
    return [Measurement(metrics=[mean_of_documents("P@1", np.full(4, value))], data=None) for value in values]


def test_spreads_and_differences_by_hand():
    spreads = summarise_seeds([("a", constant(0.2, 0.4, 0.6)), ("b", constant(0.1, 0.4, 0.4))])
    assert [(s["system"], s["lowest"], s["highest"]) for s in spreads] == [("a", 0.2, 0.6), ("b", 0.1, 0.4)]
    assert [s["mean"] for s in spreads] == pytest.approx([0.4, 0.3])
    assert [s["spread"] for s in spreads] == pytest.approx([0.2, 0.03**0.5])
    (difference,) = compare_seeds(spreads, 0.95)
    expected = stats.ttest_1samp([0.1, 0.0, 0.2], 0).confidence_interval(0.95)
    assert difference["differences"] == pytest.approx([0.1, 0.0, 0.2])
    assert (difference["low"], difference["high"]) == pytest.approx((expected.low, expected.high))
    shown, table = make_seed_tables(spreads, [difference], {"a": "a", "b": "short"}, [4, 5, 6], 0.95, "of three documents")
    assert (table.title, table.rows[0][-1]) == ("a against short, seed by seed", "2 of 3")
    assert "95% t interval of the mean difference over 3 seeds (2 degrees of freedom)" in table.notes[0]
    assert "4, 5, 6" in shown.notes[0]
    assert all(len(row) == len(shown.columns) for row in shown.rows)


def test_metrics_that_nothing_defines_have_no_spread():
    nothing = Measurement(metrics=[ratio_of_sums("R@10[0]", np.zeros(4), np.zeros(4))], data=None)
    assert summarise_seeds([("a", [nothing, nothing])]) == []
