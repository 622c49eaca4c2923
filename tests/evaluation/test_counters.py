"""Hits, counters and metrics from them, and the families of metrics at any cut-off."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import (
    DataError,
    MetricInput,
    MetricSpec,
    NoOptions,
    PluginError,
    UsageError,
    WeightedMetric,
)
from plant_cli.evaluation import counters as metrics
from plant_cli.evaluation.counters import (
    ScoreTable,
    choose,
    compute_families,
    compute_value,
    find_missing,
)

GOLD = csr_array(np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]]))


def make_input(**changes):
    given = {
        "top": np.array([[2, 1], [0, -1], [-1, 1]]),
        "scores": np.array([[0.9, 0.4], [0.8, -np.inf], [0.7, 0.6]]),
        "gold": GOLD,
        "train_counts": np.array([4, 3, 0]),
        "train_documents": 9,
    }
    return MetricInput(**{**given, **changes})


def test_hits_are_gold_labels_and_never_padding():
    assert metrics.find_hits(make_input().top, GOLD).tolist() == [
        [True, False],
        [False, False],
        [False, True],
    ]
    assert not metrics.find_hits(np.array([[0, -1]]), csr_array((1, 3), dtype=np.int64)).any()
    # −1 in row 1 must not be taken for the last label of row 0
    assert not metrics.find_hits(
        np.array([[0], [-1]]), csr_array(np.array([[0, 0, 1], [0, 0, 0]]))
    ).any()


def test_gold_predicted_and_counted_labels():
    assert make_input().predicted.tolist() == [
        [True, True],
        [True, False],
        [True, True],
    ]  # −1 with a score is outside gold
    assert make_input().counted.tolist() == [True, True, False]
    assert make_input(settings={"label_set": "all"}).counted.all()


def test_assigned_are_the_scores_at_or_above_the_threshold():
    assert make_input(threshold=0.6).assigned.tolist() == [
        [True, False],
        [True, False],
        [True, True],
    ]
    assert make_input(threshold=np.array([0.9, 0.65, 0.3])).assigned.tolist() == [
        [True, False],
        [False, False],
        [True, False],
    ]
    assert not make_input(threshold=-np.inf).assigned[1, 1]


def test_counters_stand_side_by_side():
    counters = metrics.count_assignments(make_input(threshold=0.5))
    tp, assigned, gold = np.split(counters.toarray(), 3, axis=1)
    assert tp.tolist() == [[0, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert assigned.tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert gold.tolist() == GOLD.toarray().tolist()


def test_means_leave_out_undefined_documents():
    value = metrics.mean_of_documents("x", np.array([1.0, np.nan, 0.5]))
    assert metrics.compute_value(value) == pytest.approx(0.75)
    assert np.isnan(value.combine(np.array([[0.0, 0.0]])))


def test_ratio_of_sums_is_not_the_mean_of_ratios():
    value = metrics.ratio_of_sums("x", np.array([1.0, 0.0, 0.0]), np.array([1.0, 3.0, 0.0]))
    assert metrics.compute_value(value) == pytest.approx(0.25)
    assert np.array_equal(value.per_document, [1.0, 0.0, np.nan], equal_nan=True)


def test_a_score_table_shows_the_rows_that_are_looked_at():
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    table = metrics.ScoreTable(values=values, rows=np.array([3, 1]), memory=5)
    assert (table.shape, table.memory) == ((2, 3), 5)
    assert table.read(slice(0, 1), slice(1, None)).tolist() == [[10.0, 11.0]]
    values[1, 2] = np.nan
    assert table.read(slice(None), slice(0, 2)).tolist() == [[9.0, 10.0], [3.0, 4.0]]
    with pytest.raises(DataError, match="not a number") as caught:
        table.read(slice(None), slice(2, 3))
    assert "document 1 " in caught.value.where


def test_options_of_a_family_hold_beside_the_wanted_cut_offs(make_random, families):
    [spec] = [spec for spec, _ in families if spec.name == "propensity"]
    found = compute_families([(spec, spec.options(a=0.6, b=2.6, k=[2]))], make_random(0), ["PSP@4"])
    assert [metric.name for metric in found] == ["PSnDCG@2", "PSnDCG@4", "PSP@2", "PSP@4"]
    usual = compute_families([(spec, spec.options())], make_random(0), ["PSP@4"])
    values = [compute_value(m) for values in (found, usual) for m in values if m.name == "PSP@4"]
    assert values[0] != values[1]


@pytest.mark.parametrize(
    ("given", "said"), [("P@5", "two metrics are named 'P@5'"), ("", "a metric has no name")]
)
def test_two_metrics_cannot_have_one_name(given, said, make_random, families):
    """One would stand in the place of the other, also where a gate asks for it."""

    def flatter(data, options):
        return [
            WeightedMetric(
                name=given,
                documents=len(data.top),
                compute=lambda weights: weights.sum(axis=1) * 0 + 1,
            )
        ]

    odd = MetricSpec(name="zzz", summary="Flatters.", compute=flatter)
    with pytest.raises(PluginError, match=said) as caught:
        compute_families([*families, (odd, odd.options())], make_random(0))
    assert "'zzz'" in caught.value.where


def test_a_wanted_cut_off_is_computed_beside_the_others(make_random, families):
    names = [m.name for m in compute_families(families, make_random(0), ["P@7", "R@10[1-5]"])]
    assert {"P@5", "P@7", "R@7", "MAP"} <= set(names)
    assert len(names) == len(set(names))


def test_values_are_chosen_in_the_order_asked_for_and_a_misspelt_one_gets_a_near_name(
    make_random, families
):
    values = compute_families(families, make_random(0))
    assert [m.name for m in choose(values, ["MAP", "P@1", "MAP"], {})] == ["MAP", "P@1"]
    with pytest.raises(UsageError) as caught:
        choose(values, ["micro_F1"], {})
    assert "did you mean 'micro-F1'" in caught.value.expected


def test_what_needs_every_score_says_why_it_is_missing_and_what_to_do(make_random, families):
    data = make_random(0)
    missing = find_missing(families, data, "plant predict --auc")
    assert set(missing) == {"macro-AUC", "micro-AUC"}
    with pytest.raises(UsageError, match="not available") as caught:
        choose(compute_families(families, data), ["macro-AUC"], missing)
    assert "score of every label" in caught.value.where
    assert caught.value.todo == "plant predict --auc"


def test_a_strangers_metric_may_ask_for_every_score_too(make_random):
    def highest(data, options):
        found = data.all_scores.read(slice(None), slice(None)).max(axis=1)
        return [
            WeightedMetric(
                name="highest",
                documents=len(found),
                compute=lambda weights: weights @ found / weights.sum(axis=1),
            )
        ]

    spec = MetricSpec(
        name="odd", summary="needs all", compute=highest, needs_all_scores=("highest",)
    )
    data = make_random(0)
    assert compute_families([(spec, spec.options())], data) == []
    assert list(find_missing([(spec, spec.options())], data, "keep them")) == ["highest"]
    scores = ScoreTable(values=np.eye(15, 10, dtype=np.float32), rows=np.arange(15), memory=100)
    [value] = compute_families([(spec, spec.options())], replace(data, all_scores=scores))
    assert compute_value(value) == pytest.approx(10 / 15)
    assert find_missing([(spec, spec.options())], replace(data, all_scores=scores), "") == {}


def test_a_family_that_fails_is_named(make_random):
    def fail(data, options):
        raise ZeroDivisionError("oops")

    with pytest.raises(PluginError, match="'odd' failed: ZeroDivisionError: oops") as caught:
        compute_families(
            [(MetricSpec(name="odd", summary="fails", compute=fail), NoOptions())], make_random(0)
        )
    assert caught.value.exit_code == 5
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_error_in_four_parts_passes_through(make_random):
    def refuse(data, options):
        raise DataError("no", where="here", expected="yes", todo="go")

    with pytest.raises(DataError):
        compute_families(
            [(MetricSpec(name="odd", summary="refuses", compute=refuse), NoOptions())],
            make_random(0),
        )
