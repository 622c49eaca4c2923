"""Exact top-k with a fixed rule for ties, also of words that never meet a label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

STRIDE = 8  # of the sample by which values that are surely too small are recognised
WORD_BITS = 31  # a word's index is an int32
from plant_cli.relevance.counting import Ints


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
    order = np.argsort(row_of << WORD_BITS | words[positions])  # whole numbers without ties sort several times faster than three keys
    order = order[np.argsort(-values[positions[order]], kind="stable")]
    of_order = row_of[order].astype(np.uint16 if len(ends) <= 1 << 16 else np.int64)  # 16 bits are sorted by counting
    return positions[order[np.argsort(of_order, kind="stable")]], ends


def contenders(
    offsets: Ints, words: npt.NDArray[np.int32], both: npt.NDArray[np.int32], first_as_frequent: Ints, k: int, *, common: bool
) -> npt.NDArray[np.intp]:
    """Positions of the pairs that can be among the k best of their row if values fall, then rise, with the documents of the word.

    Of the words that meet a label in one document, most of all pairs, these are the k rarest and, if asked for, the k commonest;
    a word between them is worth less than the k on one of its sides.

    Args:
        offsets: row i is `offsets[i]:offsets[i + 1]` [rows + 1].
        words: word indices of all rows.
        both: documents with label and word.
        first_as_frequent: the first word of as many documents as each word [V]: it wins a tie.
        k: how many of a row are kept, at most.
        common: whether the rising side counts, too.
    """
    singles = np.flatnonzero(both == 1)
    ends = np.searchsorted(singles, offsets)
    once, lengths = words[singles], np.diff(offsets)
    rare, frequent = np.zeros(len(lengths), dtype=np.int32), np.full(len(lengths), -1, dtype=np.int32)
    for row in np.flatnonzero(np.diff(ends) > 2 * k).tolist():
        own = once[ends[row] : ends[row + 1]]
        own.partition((k - 1, len(own) - k) if common else len(own) - k)
        rare[row] = first_as_frequent[own[len(own) - k]]
        if common:
            frequent[row] = own[k - 1]
    return np.flatnonzero((both > 1) | (words >= np.repeat(rare, lengths)) | (words <= np.repeat(frequent, lengths)))


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
    """The k-th largest value. A sample finds values that are surely too small, so that few are left to partition."""
    sample = values[::STRIDE]
    rank = k // STRIDE + k // (4 * STRIDE) + 1  # a quarter more than the share of the sample that is expected above
    if rank < len(sample):
        above = values[values >= np.partition(sample, len(sample) - rank)[len(sample) - rank]]
        values = above if len(above) >= k else values
    return float(np.partition(values, len(values) - k)[len(values) - k])


def commonest_absent(met: npt.NDArray[np.int32], k: int, n_words: int) -> npt.NDArray[np.int32]:
    """The k commonest words that are not met, by falling frequency."""
    absent = np.ones(min(k + len(met), n_words), dtype=bool)  # of so many words k are not met, if there are k
    absent[met[met < len(absent)]] = False
    return np.flatnonzero(absent)[:k].astype(np.int32)


class AbsentWords:
    """The words that never meet a label: those of one document frequency share one value.

    Args:
        docs_with_word: documents that hold each word [V], falling.
    """

    def __init__(self, docs_with_word: npt.NDArray[np.int64]) -> None:
        falling, self._frequency_of, self._sizes = np.unique(-docs_with_word, return_inverse=True, return_counts=True)
        self.frequencies = -falling

    def find(self, values: npt.NDArray[np.float64], met: npt.NDArray[np.int32], k: int) -> npt.NDArray[np.int32]:
        """The k best words that never meet the label, of those above 0, best first; equal values in the order of their word.

        Args:
            values: the value of a word that never meets the label, by frequency [F].
            met: words that do meet it.
            k: how many are wanted, at most.
        """
        wanted = values > 0
        if self._sizes[wanted].sum() > k + len(met):  # of k + len(met) words at least k do not meet the label
            best_first = np.argsort(-values, kind="stable")
            enough = np.searchsorted(np.cumsum(self._sizes[best_first]), k + len(met))
            wanted &= values >= values[best_first[enough]]
        chosen = np.repeat(wanted, self._sizes)  # words of one frequency are neighbours
        chosen[met] = False
        words = np.flatnonzero(chosen)
        return words[np.argsort(-values[self._frequency_of[words]], kind="stable")[:k]].astype(np.int32)
