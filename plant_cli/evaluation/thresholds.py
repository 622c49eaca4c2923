"""Decision thresholds that maximise F1 on a validation split, exact over all cut points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.errors import DataError
from plant_cli.kit.metrics import Booleans, Floats, Integers, divide, find_hits

Objective = Literal["micro-F1", "macro-F1"]
WITHOUT_PREDICTIONS = 0.5


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A threshold and the objective it reaches (a fraction) on the documents it was tuned on."""

    value: float
    score: float


@dataclass(frozen=True)
class Listed:
    """All predicted pairs of document and label by falling score: label (−1: no column of gold), score, whether it is gold [n]."""

    labels: Integers
    scores: Floats
    hits: Booleans

    def take(self, kept: Integers) -> Listed:
        """Some of the pairs, by their places."""
        return Listed(self.labels[kept], self.scores[kept], self.hits[kept])


def tune_threshold(top: Integers, scores: Floats, gold: csr_array, labels: int, objective: Objective = "micro-F1") -> Tuned:
    """The one threshold for all labels under which assigning `score >= threshold` has the highest F1.

    Args:
        top: columns of gold [N, K], or −1; see `MetricInput.top`.
        scores: their scores [N, K].
        gold: csr [N, L + U] of 0/1; gold of the U labels that no training document has counts as missed in micro-F1.
        labels: L, the labels of train.
        objective: micro-F1, or macro-F1 over the L labels (the same cut is best for macro-F1 over the labels present).

    Raises:
        DataError: a score is not a number.
    """
    pairs = list_predicted(top, scores, gold)
    if pairs.scores.size == 0:
        return Tuned(value=WITHOUT_PREDICTIONS, score=0.0)
    curve = _sweep_micro(pairs, gold.nnz) if objective == "micro-F1" else sweep_macro(pairs, gold, labels)
    ends = np.flatnonzero(np.append(np.diff(pairs.scores) < 0, True))  # equal scores are assigned together
    best = ends[np.argmax(curve[ends])]
    return Tuned(value=float(find_midpoints(pairs.scores)[best]), score=float(curve[best]))


def tune_per_label(top: Integers, scores: Floats, gold: csr_array, labels: int, fallback: float) -> Floats:
    """One threshold per label of train [L], each the best for that label's F1; `fallback` where no cut finds a gold document.

    Args:
        top: columns of gold [N, K], or −1.
        scores: their scores [N, K].
        gold: csr [N, L + U] of 0/1.
        labels: L, the labels of train.
        fallback: the threshold of labels that no predicted document has as gold.

    Raises:
        DataError: a score is not a number.
    """
    pairs = list_predicted(top, scores, gold)
    known = (pairs.labels >= 0) & (pairs.labels < labels)
    order = np.flatnonzero(known)[np.argsort(pairs.labels[known], kind="stable")]  # by label, then falling score
    found, values = pairs.labels[order], pairs.scores[order]
    thresholds = np.full(labels, fallback, dtype=np.float64)
    if order.size == 0:
        return thresholds
    f1 = _running_f1(found, pairs.hits[order], gold)[1]
    last = np.append(found[1:] != found[:-1], True)
    ends = np.flatnonzero(last | np.append(values[1:] < values[:-1], True))
    cuts = np.where(last, values, find_midpoints(values))[ends]
    ranked = np.lexsort((-cuts, -f1[ends], found[ends]))
    tuned, firsts = np.unique(found[ends][ranked], return_index=True)
    best = ranked[firsts]
    useful = f1[ends][best] > 0
    thresholds[tuned[useful]] = cuts[best[useful]]
    return thresholds


def list_predicted(top: Integers, scores: Floats, gold: csr_array) -> Listed:
    """All predicted pairs by falling score.

    Args:
        top: columns of gold [N, K], or −1.
        scores: their scores [N, K].
        gold: csr [N, L + U] of 0/1.

    Raises:
        DataError: a score is not a number.
    """
    real = (top >= 0) | ~np.isneginf(scores)
    if np.isnan(scores[real]).any():
        row = int(np.flatnonzero((np.isnan(scores) & real).any(axis=1))[0])
        raise DataError(
            "a score is not a number",
            where=f"document {row} (counted from 0) of {len(top)}",
            expected="a finite score for every prediction",
            todo="look for NaN in the training loss (history.jsonl); `--precision fp32` and a lower rate are the usual remedies",
        )
    order = np.argsort(-scores[real], kind="stable")
    return Listed(top[real][order], scores[real][order], find_hits(top, gold)[real][order])


def _sweep_micro(pairs: Listed, positives: int) -> Floats:
    assigned = np.arange(1, pairs.scores.size + 1)
    return 2.0 * np.cumsum(pairs.hits) / (assigned + positives)


def sweep_macro(pairs: Listed, gold: csr_array, labels: int) -> Floats:
    """Macro-F1 [n] when the first pairs are assigned: each changes the F1 of its own label only, so changes are summed in order.

    Args:
        pairs: by falling score.
        gold: csr [N, L + U] of 0/1.
        labels: L, the labels of train; F1 of labels without a pair counts as 0.
    """
    changes = np.zeros(pairs.scores.size)
    known = np.flatnonzero((pairs.labels >= 0) & (pairs.labels < labels))
    order = known[np.argsort(pairs.labels[known], kind="stable")]
    before, after = _running_f1(pairs.labels[order], pairs.hits[order], gold)
    changes[order] = after - before
    return np.cumsum(changes) / max(labels, 1)


def _running_f1(labels: Integers, hits: Booleans, gold: csr_array) -> tuple[Floats, Floats]:
    """F1 of the pair's label before and after it is assigned [n]; pairs by label, then falling score."""
    positives = np.bincount(gold.nonzero()[1], minlength=gold.shape[1])[labels]
    starts = np.searchsorted(labels, labels)
    assigned = np.arange(labels.size) - starts
    found = np.concatenate([[0], np.cumsum(hits)])
    tp = found[:-1] - found[starts]
    before = divide(2.0 * tp, assigned + positives)
    return before, divide(2.0 * (tp + hits), assigned + 1 + positives)


def find_midpoints(scores: Floats) -> Floats:
    """Cuts half-way to the next lower score, so that rounding of a score cannot move it across; the last is the score itself."""
    following = np.append(scores[1:], scores[-1])
    middle = scores + (following - scores) / 2
    return np.where((middle > following) & np.isfinite(middle), middle, scores)
