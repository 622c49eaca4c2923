"""Hits, counters and the two kinds of metric that they build."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import DataError, MetricInput
from plant_cli.evaluation import counters as metrics

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
    assert metrics.find_hits(make_input().top, GOLD).tolist() == [[True, False], [False, False], [False, True]]
    assert not metrics.find_hits(np.array([[0, -1]]), csr_array((1, 3), dtype=np.int64)).any()
    # −1 in row 1 must not be taken for the last label of row 0
    assert not metrics.find_hits(np.array([[0], [-1]]), csr_array(np.array([[0, 0, 1], [0, 0, 0]]))).any()


def test_gold_counts_include_labels_that_no_training_document_has():
    assert metrics.count_gold(make_input()).tolist() == [2, 0, 1]


def test_a_score_tells_a_label_outside_gold_from_no_prediction():
    assert metrics.find_predicted(make_input()).tolist() == [[True, True], [True, False], [True, True]]


def test_labels_counted_are_those_of_train_unless_all_are_asked_for():
    assert metrics.labels_counted(make_input()).tolist() == [True, True, False]
    assert metrics.labels_counted(make_input(settings={"label_set": "all"})).all()


def test_assigned_are_the_scores_at_or_above_the_threshold():
    assert metrics.find_assigned(make_input(threshold=0.6)).tolist() == [[True, False], [True, False], [True, True]]
    assert metrics.find_assigned(make_input(threshold=np.array([0.9, 0.65, 0.3]))).tolist() == [
        [True, False],
        [False, False],
        [True, False],
    ]
    assert not metrics.find_assigned(make_input(threshold=-np.inf))[1, 1]


def test_counters_stand_side_by_side():
    counters = metrics.count_assignments(make_input(threshold=0.5))
    tp, assigned, gold = metrics.split_counters(counters.toarray())
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
