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
class _Cells:
    """All predictions as one list by falling score: label, score, whether it is gold [n]."""

    labels: Integers
    scores: Floats
    hits: Booleans


def tune_threshold(top: Integers, scores: Floats, gold: csr_array, unseen: Integers, objective: Objective = "micro-F1") -> Tuned:
    """The one threshold for all labels under which assigning `score >= threshold` has the highest F1.

    Args:
        top: label indices [N, K]; −1 where fewer were predicted, −2 for a label unknown to the corpus.
        scores: their scores [N, K].
        gold: csr [N, L] of 0/1.
        unseen: gold labels outside the label index, per document [N]; they count as missed in micro-F1.
        objective: micro-F1, or macro-F1 over all L labels (the same cut is best for macro-F1 over the labels present).

    Raises:
        DataError: a score is not a number.
    """
    cells = _list_cells(top, scores, gold)
    if cells.scores.size == 0:
        return Tuned(value=WITHOUT_PREDICTIONS, score=0.0)
    curve = _sweep_micro(cells, gold.nnz + int(unseen.sum())) if objective == "micro-F1" else _sweep_macro(cells, gold)
    ends = np.flatnonzero(np.append(np.diff(cells.scores) < 0, True))  # equal scores are assigned together
    best = ends[np.argmax(curve[ends])]
    return Tuned(value=float(_midpoints(cells.scores)[best]), score=float(curve[best]))


def tune_per_label(top: Integers, scores: Floats, gold: csr_array, fallback: float) -> Floats:
    """One threshold per label [L], each the best for that label's F1; `fallback` where no cut finds a gold document."""
    cells = _list_cells(top, scores, gold)
    known = cells.labels >= 0
    order = np.flatnonzero(known)[np.argsort(cells.labels[known], kind="stable")]  # by label, then falling score
    labels, values = cells.labels[order], cells.scores[order]
    thresholds = np.full(gold.shape[1], fallback, dtype=np.float64)
    if order.size == 0:
        return thresholds
    f1 = _running_f1(labels, cells.hits[order], gold)[1]
    last = np.append(labels[1:] != labels[:-1], True)
    ends = np.flatnonzero(last | np.append(values[1:] < values[:-1], True))
    cuts = np.where(last, values, _midpoints(values))[ends]
    ranked = np.lexsort((-cuts, -f1[ends], labels[ends]))
    found, firsts = np.unique(labels[ends][ranked], return_index=True)
    best = ranked[firsts]
    useful = f1[ends][best] > 0
    thresholds[found[useful]] = cuts[best[useful]]
    return thresholds


def _list_cells(top: Integers, scores: Floats, gold: csr_array) -> _Cells:
    real = top != -1
    if np.isnan(scores[real]).any():
        row = int(np.flatnonzero((np.isnan(scores) & real).any(axis=1))[0])
        raise DataError(
            "a score is not a number",
            where=f"document {row} (counted from 0) of {len(top)}",
            expected="a finite score for every prediction",
            todo="look for NaN in the training loss (history.jsonl); `--precision fp32` and a lower rate are the usual remedies",
        )
    order = np.argsort(-scores[real], kind="stable")
    return _Cells(top[real][order], scores[real][order], find_hits(top, gold)[real][order])


def _sweep_micro(cells: _Cells, positives: int) -> Floats:
    assigned = np.arange(1, cells.scores.size + 1)
    return 2.0 * np.cumsum(cells.hits) / (assigned + positives)


def _sweep_macro(cells: _Cells, gold: csr_array) -> Floats:
    """Each cell moves the F1 of one label only: sum the moves in the order of scores."""
    moves = np.zeros(cells.scores.size)
    known = np.flatnonzero(cells.labels >= 0)
    order = known[np.argsort(cells.labels[known], kind="stable")]
    before, after = _running_f1(cells.labels[order], cells.hits[order], gold)
    moves[order] = after - before
    return np.cumsum(moves) / max(gold.shape[1], 1)


def _running_f1(labels: Integers, hits: Booleans, gold: csr_array) -> tuple[Floats, Floats]:
    """F1 of the cell's label before and after it is assigned [n]; cells by label, then falling score."""
    positives = np.bincount(gold.nonzero()[1], minlength=gold.shape[1])[labels]
    starts = np.searchsorted(labels, labels)
    assigned = np.arange(labels.size) - starts
    found = np.concatenate([[0], np.cumsum(hits)])
    tp = found[:-1] - found[starts]
    before = divide(2.0 * tp, assigned + positives)
    return before, divide(2.0 * (tp + hits), assigned + 1 + positives)


def _midpoints(scores: Floats) -> Floats:
    """Cuts half-way to the next lower score, so that rounding of a score cannot move it across; the last is the score itself."""
    following = np.append(scores[1:], scores[-1])
    middle = scores + (following - scores) / 2
    return np.where((middle > following) & np.isfinite(middle), middle, scores)
