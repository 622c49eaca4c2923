"""Intervals of proportions from counts."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from plant_cli.kit.metrics import Floats


def bound_proportion(hits: Floats, trials: Floats, level: float) -> tuple[Floats, Floats]:
    """Wilson's interval of a proportion [n], NaN where there is no trial. It holds for few trials, and where all of them are hits.

    Args:
        hits: out of the trials [n].
        trials: how many there were [n].
        level: coverage, for example 0.95.

    Source: Wilson 1927, Probable inference, the law of succession, and statistical inference.
    """
    z = float(ndtri((1.0 + level) / 2.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = hits / trials
        middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
        reach = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return np.clip(middle - reach, 0.0, 1.0), np.clip(middle + reach, 0.0, 1.0)
