"""Exact top-k with a fixed rule for ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def best(values: npt.NDArray[np.float64], words: npt.NDArray[np.integer[Any]], k: int) -> npt.NDArray[np.intp]:
    """Positions of the k largest values, best first; equal values in the order of their word index, at the k-th place too.

    Args:
        values: float64 [m], no NaN.
        words: distinct word indices [m]; the vocabulary is ordered so that the smaller index wins a tie.
        k: how many, at most.
    """
    chosen = np.arange(len(values))
    if len(values) > k:
        cut = np.partition(values, len(values) - k)[len(values) - k]
        above = np.flatnonzero(values > cut)
        equal = np.flatnonzero(values == cut)
        room = k - len(above)
        if len(equal) > room:
            equal = equal[np.argsort(words[equal])[:room]]
        chosen = np.concatenate([above, equal])
    return chosen[np.lexsort((words[chosen], -values[chosen]))]
