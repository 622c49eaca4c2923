"""F1 of what is assigned, against scikit-learn and by hand."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score


@pytest.mark.parametrize("seed", range(4))
def test_equality_with_scikit_learn(seed, random_input, values_of):
    data = replace(random_input(seed), train_counts=np.arange(1, 13))
    dense = np.zeros(data.gold.shape)
    np.put_along_axis(dense, data.top, data.scores, axis=1)
    gold = data.gold.toarray()
    found = values_of(data)
    assert found["micro-F1"] == pytest.approx(f1_score(gold, dense >= 0.4, average="micro"))
    assert found["macro-F1"] == pytest.approx(f1_score(gold, dense >= 0.4, average="macro", zero_division=0))


def test_thresholds_per_label(make_input, values_of):
    data = make_input([[0, 1]], [{0, 1}], 2, scores=np.array([[0.6, 0.5]]), threshold=np.array([0.7, 0.5]))
    assert values_of(data)["macro-F1"] == pytest.approx(0.5)
