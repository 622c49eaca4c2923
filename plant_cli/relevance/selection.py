"""Exact top-k with a fixed rule for ties, also of words that never meet a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

STRIDE = 8  # of the sample by which values that are surely too small are recognised
Ints = npt.NDArray[np.integer[Any]]


def best_of_rows(
    offsets: Ints, values: npt.NDArray[np.float64], words: Ints, k: int, floor: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """The k largest values above a floor in each row of ragged lists, best first; equal values in the order of their word.

    Args:
        offsets: row i is `offsets[i]:offsets[i + 1]` [rows + 1].
        values: of all rows, no NaN.
        words: word indices, distinct in each row; the vocabulary is ordered so that the smaller index wins a tie.
        k: how many of a row, at most.
        floor: what is not above it is left out.

    Returns:
        Positions in `values`, row after row, and the offsets of the rows in them.
    """
    kept = values > floor
    for row in np.flatnonzero(np.diff(offsets) > k):
        piece = slice(offsets[row], offsets[row + 1])
        kept[piece] &= _mark_largest(values[piece], words[piece], k)
    positions = np.flatnonzero(kept)
    ends = np.searchsorted(positions, offsets)
    row_of = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return positions[np.lexsort((words[positions], -values[positions], row_of))], ends


def _mark_largest(values: npt.NDArray[np.float64], words: Ints, k: int) -> npt.NDArray[np.bool_]:
    """True for exactly k values: by partition, for all need not be sorted."""
    cut = _find_largest(values, k)
    marked: npt.NDArray[np.bool_] = values >= cut
    surplus = np.count_nonzero(marked) - k
    if surplus:
        equal = np.flatnonzero(values == cut)
        marked[equal[np.argsort(-words[equal])[:surplus]]] = False
    return marked


def _find_largest(values: npt.NDArray[np.float64], k: int) -> float:
    """The k-th largest value. A sample tells which values are surely too small, so that few are left to partition."""
    sample = values[::STRIDE]
    rank = k // STRIDE + k // (4 * STRIDE) + 1  # a quarter more than the share of the sample that is expected above
    if rank < len(sample):
        above = values[values >= np.partition(sample, len(sample) - rank)[len(sample) - rank]]
        values = above if len(above) >= k else values
    return float(np.partition(values, len(values) - k)[len(values) - k])


class AbsentWords:
    """The words that never meet a label: those of one document frequency share one value.

    Args:
        docs_with_word: documents that hold each word [V], falling.
    """

    def __init__(self, docs_with_word: npt.NDArray[np.int64]) -> None:
        falling, self._frequency_of, self._sizes = np.unique(-docs_with_word, return_inverse=True, return_counts=True)
        self.frequencies = -falling

    def find(
        self, values: npt.NDArray[np.float64], met: Ints, k: int, worth: float
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
