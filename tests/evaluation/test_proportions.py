"""Wilson's interval against scipy's, value by value."""

import numpy as np
import pytest
from scipy import stats

from plant_cli.evaluation.bootstrap import bound_proportion


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bounds_are_those_of_scipy(level):
    hits, trials = np.array([0.0, 1.0, 7.0, 30.0, 30.0]), np.array([1.0, 1.0, 12.0, 30.0, 4000.0])
    low, high = bound_proportion(hits, trials, level)
    for at, (hit, trial) in enumerate(zip(hits, trials, strict=True)):
        true = stats.binomtest(int(hit), int(trial)).proportion_ci(level, method="wilson")
        assert (low[at], high[at]) == pytest.approx((true.low, true.high), abs=1e-12)


def test_without_a_trial_nothing_is_known():
    low, high = bound_proportion(np.array([0.0, 2.0]), np.array([0.0, 2.0]), 0.95)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, False]
