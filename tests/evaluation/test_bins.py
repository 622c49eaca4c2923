"""Pooled recall and macro-F1 of labels by training frequency."""

import math

import pytest

from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import compute_value
from plant_cli.evaluation.measures import measure_bins


@pytest.fixture
def bins(gold, save, good):
    data = build_input(read_predictions(save(good), gold), gold, 0.5, CONVENTIONS["plant"])
    return {b.name: b for b in measure_bins(data)}


def test_labels_fall_into_bins_by_training_documents(bins):
    assert list(bins) == ["0", "1-5", "6-10", ">500"]
    assert [tuple(b.counts.values())[:3] for b in bins.values()] == [(2, 2, 2), (2, 2, 2), (1, 1, 2), (1, 0, 0)]


def test_recall_is_pooled_over_assignments(bins):
    values = {m.name: compute_value(m) for b in bins.values() for m in b.metrics}
    assert values["R@10[0]"] == 0.0
    assert values["R@10[1-5]"] == 1.0
    assert values["R@50[6-10]"] == 1.0
    assert math.isnan(values["R@10[>500]"])  # nothing to find in that bin
    assert values["macro-F1-present[1-5]"] == 1.0
    assert values["macro-F1-present[0]"] == 0.0


@pytest.mark.parametrize(("threshold", "never"), [(0.5, [2, 0, 0, 1]), (0.05, [2, 0, 0, 0])])
def test_labels_that_were_never_assigned_are_counted(gold, save, good, threshold, never):
    """With the lower threshold `d` is assigned, though it is never right."""
    data = build_input(read_predictions(save(good), gold), gold, threshold, CONVENTIONS["plant"])
    assert [b.counts["never_assigned"] for b in measure_bins(data)] == never


def test_bins_add_up_to_the_pooled_recall(make_random):
    data = make_random(3)
    bins = measure_bins(data)
    assert sum(b.counts["assignments"] for b in bins) == data.gold.nnz
    found = sum(m.contributions[:, 0].sum() for b in bins for m in b.metrics if m.name.startswith("R@10["))
    gold = data.gold.toarray()
    assert found == sum(gold[row, label] for row, labels in enumerate(data.top) for label in labels)
