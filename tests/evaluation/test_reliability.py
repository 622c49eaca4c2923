"""Reliability of probabilities by hand, and its intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plant_cli.evaluation.gold import read_gold
from plant_cli.evaluation.reliability import describe_calibration, measure_reliability
from plant_cli.scoring.calibration import calibration_error
from tests.evaluation.conftest import TinyCorpus

NOTHING = {"replicates": 0, "level": 0.95, "seed": 0}


def test_by_hand(gold: Any, align: Any, good: Any) -> None:
    """Right: .9 .8 .7 .9; wrong: .1 .2 .3 .6."""
    found = measure_reliability(align(good), gold, **NOTHING)
    assert found["ECE"] == pytest.approx((0.1 + 0.2 + 0.3 + 0.1 + 0.1 + 0.2 + 0.3 + 0.6) / 8)
    assert [one["pairs"] for one in found["bins"]] == [0, 1, 1, 1, 0, 0, 1, 1, 1, 2]
    assert found["bins"][9] == {
        "pairs": 2,
        "probability": pytest.approx(0.9),
        "right": 1.0,
        "low": None,
        "high": None,
    }
    assert (found["pairs"], found["low"]) == (8, None)
    [errors, convention] = describe_calibration({"all together": found})
    assert errors == "expected calibration error in points: all together 24 over 8 pairs"
    assert "10 bins of equal width" in convention


def test_intervals_of_few_pairs_are_wide(gold: Any, align: Any, good: Any) -> None:
    found = measure_reliability(align(good), gold, replicates=200, level=0.95, seed=0)
    last = found["bins"][9]
    assert 0.3 < last["low"] < 0.4  # Wilson: two of two
    assert last["high"] == 1
    assert found["low"] < found["ECE"] < found["high"]
    assert "[" in describe_calibration({"all together": found})[0]
    assert found == measure_reliability(align(good), gold, replicates=200, level=0.95, seed=0)


def test_the_interval_of_an_error_is_moved_back_by_what_resampling_adds(align: Any) -> None:
    """Half of what is given one half comes true; an average resample is off by 0.03, and some
    by 0.08.
    """
    rows = {str(i): {"a"} if i % 2 else set() for i in range(200)}
    gold = read_gold(TinyCorpus(rows=rows), "test")
    found = measure_reliability(
        align({i: {"a": 0.5} for i in rows}, gold), gold, replicates=500, level=0.95, seed=0
    )
    assert found["ECE"] == 0
    assert found["high"] < 0.06


def test_intervals_of_bins_resample_whole_documents(align: Any) -> None:
    """All four pairs of a document are right or wrong together; as independent ones, 20 of 40
    would be 0.35 to 0.65.
    """
    rows = {str(i): set("abcd") if i % 2 else set() for i in range(10)}
    gold = read_gold(TinyCorpus(rows=rows), "test")
    found = measure_reliability(
        align({i: dict.fromkeys("abcd", 0.55) for i in rows}, gold),
        gold,
        replicates=500,
        level=0.95,
        seed=0,
    )
    assert found["bins"][5]["low"] < 0.3 < 0.7 < found["bins"][5]["high"]


def test_the_error_is_weighted_by_pairs() -> None:
    distances, pairs = np.zeros((2, 2, 10))
    distances[0, [0, 9]], pairs[0, [0, 9]] = [3, 1], [30, 10]
    assert calibration_error(distances, pairs) == pytest.approx([(30 * 0.1 + 10 * 0.1) / 40, 0])


def test_scores_that_are_no_probabilities_have_none(gold: Any, align: Any, good: Any) -> None:
    for scores in ({"a": 7.0}, {"a": -0.1}):
        assert measure_reliability(align({**good, "1": scores}), gold, **NOTHING) is None
    assert measure_reliability(align({name: {} for name in good}), gold, **NOTHING) is None
    assert describe_calibration({}) == []
