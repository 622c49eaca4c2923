"""Mutual information of words and labels, from counts of documents."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from plant_cli.api.signals import Counts


def mutual_information(counts: Counts) -> npt.NDArray[np.float64]:
    """Mutual information gain in nats: Σ over the four pairs of p(x,y) ln(p(x,y) / p(x)p(y)), with
    0 ln 0 = 0; float64, at least 0.

    Counts are integers up to N, so every term is a look-up in a table of n ln n: N · I = Σ f(pairs)
    − Σ f(margins) + f(N). The sums are grouped so that a word and its complement tie exactly.
    """
    total = counts.n_docs
    table, margin = _n_log_n(total), _margins(total)
    both = np.asarray(counts.docs_with_both, dtype=np.intp)
    word = np.asarray(counts.docs_with_word, dtype=np.intp)
    label = np.asarray(counts.docs_with_label, dtype=np.intp)
    only_word = word - both
    pairs = (table[both] + table[only_word]) + (
        table[label - both] + table[(total - label) - only_word]
    )
    gain: npt.NDArray[np.float64] = np.maximum(
        (pairs - (margin[word] + margin[label]) + table[total]) / total, 0.0
    )
    gain[both * total == word * label] = (
        0.0  # independence is exact, not what rounding leaves of it
    )
    return gain


def entropy(share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Entropy in nats of a yes/no variable that is "yes" with the given probability."""
    gain = np.zeros_like(share)
    for part in (share, 1.0 - share):
        inside = part > 0
        gain[inside] -= part[inside] * np.log(part[inside])
    return gain


def divide_by_joint_entropy(
    information: npt.NDArray[np.float64],
    word: npt.NDArray[np.float64],
    label: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """I / (H_word + H_label − I), in [0, 1]: mutual information as a share of the joint entropy,
    by the shares of documents that have the word and the label; 0 where that is 0.
    """
    joint = entropy(word) + entropy(label) - information
    return np.divide(information, joint, out=np.zeros_like(information), where=joint > 0)


@lru_cache(maxsize=4)
def _n_log_n(total: int) -> npt.NDArray[np.float64]:
    """Table of n ln n for n = 0 … total; float64, because its values reach 5.7e5 at 52,722
    documents.
    """
    numbers = np.arange(total + 1, dtype=np.float64)
    table = numbers * np.log(np.maximum(numbers, 1.0))
    table.flags.writeable = False
    return table


@lru_cache(maxsize=4)
def _margins(total: int) -> npt.NDArray[np.float64]:
    """Table of n ln n + (N - n) ln(N - n) for n = 0 … N = total."""
    table = _n_log_n(total)
    sums: npt.NDArray[np.float64] = table + table[::-1]
    sums.flags.writeable = False
    return sums
