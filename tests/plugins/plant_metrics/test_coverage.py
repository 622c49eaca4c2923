"""Labels found at least once, by hand and against napkinXC."""

import math

import numpy as np
import pytest
from napkinxc.metrics import coverage_at_k


def test_by_hand(make_input, values_of):
    """Gold of three documents: labels 0 to 3; 0 is first once, 1 is second, 2 is never found and 3 only beyond the cut-off."""
    data = make_input([[0, 1], [5, 4, 6, 7, 8, 3], [0]], [{0, 1}, {2, 3}, {0}], 9)
    assert values_of(data)["coverage@1"] == pytest.approx(1 / 4)
    assert values_of(data)["coverage@5"] == pytest.approx(2 / 4)


@pytest.mark.parametrize("seed", range(3))
def test_equality_with_napkinxc(seed, random_input, values_of):
    data = random_input(seed)
    gold = [np.flatnonzero(row).tolist() for row in data.gold.toarray()]
    expected = coverage_at_k(gold, data.top.tolist(), k=5)
    assert [values_of(data)[f"coverage@{k}"] for k in (1, 5)] == pytest.approx([expected[0], expected[4]])


def test_nothing_to_find_is_undefined(make_input, values_of):
    assert math.isnan(values_of(make_input([[0]], [set()], 2))["coverage@1"])
