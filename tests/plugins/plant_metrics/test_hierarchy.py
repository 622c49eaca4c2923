"""Hierarchical metrics on a toy by hand, and in a flat hierarchy, where they are the plain ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import Hierarchy

# labels 0 and 1 stand under 3, label 2 stands alone; 3 is no label of the corpus
NESTED = Hierarchy(
    nodes=["0", "1", "2", "3"], above=csr_array(np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]])), depths=np.array([2, 2, 1, 1])
)


def test_a_sibling_counts_for_what_it_shares(make_input, values_of):
    """One document has 0 and is assigned 1, the other has 2 and is assigned 2."""
    found = values_of(make_input([[1], [2]], [{0}, {2}], 3, hierarchy=NESTED))
    assert found["hierarchical-precision"] == found["hierarchical-recall"] == pytest.approx(2 / 3)
    assert found["hierarchical-F1"] == pytest.approx(2 / 3)
    assert found["micro-F1[level 1]"] == 1.0  # rolled up, the sibling is right
    assert found["micro-F1[level 2]"] == 0.0
    assert found["macro-F1-present[level 1]"] == 1.0


def test_two_siblings_roll_up_to_one_label(make_input, values_of):
    found = values_of(make_input([[0, 1, 2]], [{0, 1}], 3, hierarchy=NESTED))
    assert found["micro-F1[level 1]"] == pytest.approx(2 / 3)  # assigned 3 and 2, gold 3


def test_a_flat_hierarchy_changes_nothing(random_input, values_of):
    data = replace(random_input(1), settings={"label_set": "all"})
    flat = Hierarchy(nodes=[str(i) for i in range(12)], above=csr_array(np.eye(12, dtype=np.int64)), depths=np.ones(12, dtype=np.int64))
    found = values_of(replace(data, hierarchy=flat))
    for name in ("precision", "recall", "F1"):
        assert found[f"hierarchical-{name}"] == pytest.approx(found[f"micro-{name}"])
    assert found["micro-F1[level 1]"] == pytest.approx(found["micro-F1"])
    assert found["macro-F1-present[level 1]"] == pytest.approx(found["macro-F1-present"])


def test_without_a_hierarchy_there_are_no_such_metrics(random_input, values_of):
    assert not any("hierarch" in name or "level" in name for name in values_of(random_input(0)))
