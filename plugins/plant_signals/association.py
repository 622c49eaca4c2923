"""The formulas. N documents, n_w with the word, n_l with the label, n_lw with both; p = n / N;
logarithms are natural.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plant_cli.api import Counts, NoOptions
from plant_cli.kit import divide_by_joint_entropy
from plant_cli.kit import mutual_information as measure_information
from plant_signals import RandomOptions

Floats = npt.NDArray[np.float64]


def mutual_information(counts: Counts, options: NoOptions) -> Floats:
    """Σ over the four pairs of p(x,y) ln(p(x,y) / p(x)p(y)), in nats; 0 where word and label
    are independent.
    """
    return measure_information(counts)


def jaccard(counts: Counts, options: NoOptions) -> Floats:
    """I / (H_word + H_label − I), in [0, 1]: the share of what word and label tell that both
    tell; 0 where nothing is told.
    """
    _, word, label = _floats(counts)
    return divide_by_joint_entropy(
        measure_information(counts), word / counts.n_docs, label / counts.n_docs
    )


def pointwise(counts: Counts, options: NoOptions) -> Floats:
    """Pointwise mutual information ln(N n_lw / (n_l n_w)) in nats; −∞ where word and label
    never meet.
    """
    both, word, label = _floats(counts)
    with np.errstate(divide="ignore"):
        return np.where(
            both > 0,
            np.log(np.maximum(both, 1.0) * counts.n_docs / np.maximum(word * label, 1.0)),
            -np.inf,
        )


def normalised_pointwise(counts: Counts, options: NoOptions) -> Floats:
    """Pointwise mutual information / −ln p(l,w), in [−1, 1]: 1 if each comes only with the other,
    −1 if they never meet.

    Where both are in every document, so that neither tells anything, it is 0.
    """
    both, _, _ = _floats(counts)
    surprise = -np.log(np.maximum(both, 1.0) / counts.n_docs)
    shares = np.divide(
        pointwise(counts, options), surprise, out=np.zeros(surprise.shape), where=surprise > 0
    )
    return np.where(both > 0, shares, -1.0)


def chi_square(counts: Counts, options: NoOptions) -> Floats:
    """χ² of the two-by-two table: N (n_lw N − n_l n_w)² / (n_l n_w (N − n_l)(N − n_w)); 0 where
    a margin is empty.
    """
    total = counts.n_docs
    both, word, label = _floats(counts)
    margins = label * word * (total - label) * (total - word)
    return np.divide(
        total * (both * total - label * word) ** 2,
        margins,
        out=np.zeros(margins.shape),
        where=margins > 0,
    )


def term_frequency(counts: Counts, options: NoOptions) -> Floats:
    """Σ over the label's documents of occurrences of the word / Σ of all their words, in [0, 1]."""
    if counts.occurrences is None or counts.words_with_label is None:
        raise ValueError("term frequency needs Counts.occurrences and Counts.words_with_label")
    occurrences, words = np.broadcast_arrays(
        counts.occurrences.astype(np.float64), counts.words_with_label.astype(np.float64)
    )
    shares: Floats = np.divide(occurrences, words, out=np.zeros(words.shape), where=words > 0)
    return shares


def random(counts: Counts, options: RandomOptions) -> Floats:
    """1 / u for u uniform in (0, 1], drawn from a hash of the pair and the seed.

    The r-th largest of m such values is about m / r: they fall off with the rank much as
    informative signals do, so that a run with this control differs from a real one in which words
    are relevant, not in how relevance is spread.
    """
    if counts.pairs is None:
        raise ValueError("the random control needs Counts.pairs")
    mixed = _mix(counts.pairs.astype(np.uint64) + _mix(np.asarray([options.seed], dtype=np.uint64)))
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
    values: Floats = 1.0 / uniform
    return values


def _floats(counts: Counts) -> tuple[Floats, Floats, Floats]:
    """Documents with both, with the word and with the label, as float64 of one shape."""
    arrays = (counts.docs_with_both, counts.docs_with_word, counts.docs_with_label)
    both, word, label = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays))
    return both, word, label


def _mix(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea and Flood 2014): every bit of the result depends on every bit of
    the number.
    """
    state = numbers + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: npt.NDArray[np.uint64] = state ^ (state >> np.uint64(31))
    return mixed
