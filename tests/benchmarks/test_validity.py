"""A slice of the simulation: enough to notice a test that calls chance significant, or
intervals that are too narrow.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.benchmarks.validity import World, compare_pairs, count_covered, count_false, find_truth

SMALL = World(documents=60, labels=30)


@pytest.fixture(scope="module")
def false() -> dict[str, object]:
    return count_false(list(compare_pairs(SMALL, 40, 100, 3)))


def test_chance_is_seldom_called_significant(false: dict[str, dict]) -> None:
    shares = {name: rates["raw"] for name, rates in false["metrics"].items()}
    assert len(shares) > 40
    assert {name: share for name, share in shares.items() if share["low"] > 0.05} == {}
    assert np.mean([share["share"] for share in shares.values()]) < 0.08
    assert false["family"]["low"] <= 0.05


def test_the_simulation_would_notice(false: dict[str, dict]) -> None:
    """The published rule takes replicates for observations: it calls chance significant far
    more often.
    """
    assert false["metrics"]["micro-F1"]["published"] > false["metrics"]["micro-F1"]["marked"]
    wrong = World(documents=60, labels=30, skill=(2.5, 1.0))
    assert (
        count_false(list(compare_pairs(wrong, 3, 100, 0)))["metrics"]["micro-F1"]["raw"]["share"]
        == 1.0
    )


@pytest.mark.slow
def test_intervals_cover_what_is_true() -> None:
    found = count_covered(World(documents=100, labels=30, skill=(2.0, 1.5)), 60, 300, 200, 1)
    assert {"P@5", "micro-F1", "macro-F1", "macro-AUC", "R@10[1-5]"} <= set(found)
    for what in ("value", "difference"):
        shares = [covered[what]["share"] for covered in found.values()]
        assert np.mean(shares) == pytest.approx(0.95, abs=0.05)
        assert min(shares) > 0.8


def test_the_truth_knows_which_system_is_better() -> None:
    truth = find_truth(World(documents=60, labels=30, skill=(2.5, 1.0)), 20, 0)
    assert truth["P@1"][1] > 0.1
    assert truth["macro-F1"][0] > truth["macro-F1"][1] > 0
