"""Exact top-k with a fixed rule for ties, also of words that never meet a label."""

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


class AbsentWords:
    """The words that never meet a label: those of one document frequency share one value.

    Args:
        docs_with_word: documents that hold each word [V], falling.
    """

    def __init__(self, docs_with_word: npt.NDArray[np.int64]) -> None:
        falling, self._frequency_of, self._sizes = np.unique(-docs_with_word, return_inverse=True, return_counts=True)
        self.frequencies = -falling

    def find(
        self, values: npt.NDArray[np.float64], met: npt.NDArray[np.integer[Any]], k: int, worth: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Words among which are the k best that never meet the label, and their values, all above 0.

        Args:
            values: the value of a word that never meets the label, by frequency [F].
            met: words that do meet it.
            k: how many are wanted, at most.
            worth: a smaller value is not kept in any case.
        """
        wanted = (values >= worth) & (values > 0)
        if self._sizes[wanted].sum() > k + len(met):  # of k + len(met) words at least k do not meet the label
            best_first = np.argsort(-values, kind="stable")
            enough = np.searchsorted(np.cumsum(self._sizes[best_first]), k + len(met))
            wanted &= values >= values[best_first[enough]]
        if not wanted.any():
            return np.empty(0, np.int64), np.empty(0)
        chosen = np.repeat(wanted, self._sizes)  # words of one frequency are neighbours
        chosen[met] = False
        words = np.flatnonzero(chosen)
        return words, values[self._frequency_of[words]]
