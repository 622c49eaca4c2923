"""Precision, recall and F1 of what is assigned, against scikit-learn and torchmetrics, and by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import precision_recall_fscore_support
from torchmetrics.functional.classification import multilabel_f1_score, multilabel_precision, multilabel_recall


@pytest.fixture
def drawn(random_input):
    """Random predictions, all of labels of train, with every score and all of gold as arrays."""

    def draw(seed):
        data = replace(random_input(seed), train_counts=np.arange(1, 13))
        dense = np.zeros(data.gold.shape)
        np.put_along_axis(dense, data.top, data.scores, axis=1)
        return data, dense, data.gold.toarray()

    return draw


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_scikit_learn(seed, drawn, values_of):
    data, dense, gold = drawn(seed)
    found = values_of(data)
    for average in ("micro", "macro"):
        expected = precision_recall_fscore_support(gold, dense >= 0.4, average=average, zero_division=0)[:3]
        assert [found[f"{average}-{name}"] for name in ("precision", "recall", "F1")] == pytest.approx(list(expected))
    assert found["sample-F1"] == pytest.approx(precision_recall_fscore_support(gold, dense >= 0.4, average="samples", zero_division=0)[2])
    present = gold.any(axis=0)
    labels = precision_recall_fscore_support(gold[:, present], (dense >= 0.4)[:, present], average="macro", zero_division=0)[2]
    assert found["macro-F1-present"] == pytest.approx(labels)


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_torchmetrics(seed, drawn, values_of):
    data, dense, gold = drawn(seed)
    found = values_of(data)
    scores, target = torch.from_numpy(dense), torch.from_numpy(gold)
    for name, compute in (("precision", multilabel_precision), ("recall", multilabel_recall), ("F1", multilabel_f1_score)):
        for average in ("micro", "macro"):
            expected = compute(scores, target, num_labels=12, threshold=0.4 - 1e-9, average=average)
            assert found[f"{average}-{name}"] == pytest.approx(float(expected), abs=1e-6)


def test_thresholds_per_label(make_input, values_of):
    data = make_input([[0, 1]], [{0, 1}], 2, scores=np.array([[0.6, 0.5]]), threshold=np.array([0.7, 0.5]))
    assert values_of(data)["macro-F1"] == pytest.approx(0.5)


def test_nothing_assigned_and_no_gold_is_zero(make_input, values_of):
    found = values_of(make_input([[0]], [set()], 2, threshold=2.0))
    assert [found[name] for name in ("micro-precision", "micro-recall", "micro-F1", "sample-F1", "macro-F1")] == [0.0] * 5
