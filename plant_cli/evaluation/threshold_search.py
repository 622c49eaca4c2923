"""Which thresholds meet a target on validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.errors import DataError
from plant_cli.data.labels import LABEL_RANGES
from plant_cli.evaluation.counters import ROUNDING, Booleans, Floats, Integers, divide, find_hits
from plant_cli.evaluation.targets import Target

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


ENOUGH = 20  # validation documents of a label, or of labels together, from which there is a cut of their own
NEVER = np.inf
OWN = "own"


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Labels that share a cut.

    Args:
        of: the group of each label of the index [L].
        names: of the groups: training documents of their labels, such as `1-5`, or `own` for a label by itself [G].
    """

    of: Integers
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Cuts and where they hold.

    Args:
        values: the score from which each label of the index is assigned [L]; infinite: never.
        groups: the labels that share one.
        reached: whether the target can be reached on validation, by group [G].
    """

    values: Floats
    groups: Groups
    reached: Booleans


def group_labels(positives: Integers, train_counts: Integers, enough: int = ENOUGH) -> Groups:
    """A group for each label with enough documents, and groups of labels about as frequent for the others.

    Ranges of training frequency are joined, from rare to frequent, until each has enough; what is left at the end joins the last one.
    Labels without training documents (`zero_shot`) are the rarest.

    Args:
        positives: validation documents of each label of the index [L].
        train_counts: training documents of each [L].
        enough: documents.
    """
    own = np.flatnonzero(positives >= enough)
    of = np.full(len(positives), -1, dtype=np.int64)
    of[own] = np.arange(len(own))
    ranges: list[tuple[float, float]] = []
    rarest = float(min(1, train_counts.min(initial=1)))
    left, least = of < 0, rarest
    for _, _, most in LABEL_RANGES[1:]:
        inside = left & (train_counts >= least) & (train_counts <= most)
        if positives[inside].sum() >= enough:
            ranges.append((least, most))
            least = most + 1
    if (left & (train_counts >= least)).any():
        ranges[-1:] = [(ranges[-1][0] if ranges else rarest, np.inf)]
    for number, (low, high) in enumerate(ranges, start=len(own)):
        of[left & (train_counts >= low) & (train_counts <= high)] = number
    names = tuple(f"{low:g}-{high:g}" if np.isfinite(high) else f"≥{low:g}" for low, high in ranges)
    return Groups(of=of, names=(OWN,) * len(own) + names)


def choose_cuts(top: Integers, scores: Floats, gold: csr_array, train_counts: Integers, target: Target, enough: int = ENOUGH) -> Cuts:
    """The cuts that reach a target on documents with known labels.

    Args:
        top: columns of gold [N, K], or −1.
        scores: their scores [N, K].
        gold: csr [N, L + U] of 0/1.
        train_counts: training documents of each label of the index [L].
        target: what is to be reached. The highest recall under a precision, the highest precision under a recall. Macro-F1 is a mean over
            labels: the best cut of each group is the best of all.
        enough: see `group_labels`.

    Raises:
        DataError: a score is not a number, or no document has a label of train.
    """
    labels = len(train_counts)
    listed = list_predicted(top, scores, gold)
    positives = np.bincount(gold.nonzero()[1], minlength=gold.shape[1])[:labels]
    if not positives.any():
        raise DataError(
            "no document has a label of train: there is nothing to choose thresholds by",
            where=f"{gold.shape[0]} validation documents",
            expected="gold labels that training documents have, too",
            todo="look at the labels of the validation split: plant data check",
        )
    groups = group_labels(positives, train_counts, enough)
    known = (listed.labels >= 0) & (listed.labels < labels)
    order = np.flatnonzero(known)[np.argsort(groups.of[listed.labels[known]], kind="stable")]  # by group, then falling score
    starts = np.searchsorted(groups.of[listed.labels[order]], np.arange(len(groups.names) + 1))
    totals = np.bincount(groups.of, positives, minlength=len(groups.names))
    cuts, reached = np.full(len(groups.names), NEVER), np.zeros(len(groups.names), dtype=bool)
    for group, total in enumerate(totals):
        own = listed.take(order[starts[group] : starts[group + 1]])
        if target.measure == "macro-f1" and groups.names[group] != OWN:
            cuts[group], reached[group] = _cut_macro(own, gold, labels)
        else:
            cuts[group], reached[group] = _cut(own.scores, np.cumsum(own.hits), float(total), target)
    return Cuts(values=cuts[groups.of], groups=groups, reached=reached)


def _cut(scores: Floats, found: Integers, positives: float, target: Target) -> tuple[float, bool]:
    """The cut through falling scores [n] of which so many are right up to each [n], and whether it reaches the target."""
    if not len(scores):
        return NEVER, False
    ends = np.flatnonzero(np.append(np.diff(scores) < 0, True))  # equal scores are assigned together
    place, reached = RULES[target.measure](found[ends].astype(np.float64), (ends + 1).astype(np.float64), positives, target.least or 0.0)
    return (float(find_midpoints(scores)[ends[place]]), reached) if place >= 0 else (NEVER, False)


def _by_precision(found: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    """The last cut whose precision is enough even if the next label assigned were wrong: few documents prove little."""
    enough = np.flatnonzero(found >= least * (1 - ROUNDING) * (assigned + 1))
    return (int(enough[-1]), True) if len(enough) else (-1, False)


def _by_recall(found: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    """The first cut whose recall is enough, else the last."""
    enough = np.flatnonzero(found >= least * (1 - ROUNDING) * positives)
    return (int(enough[0]), True) if len(enough) else (len(found) - 1, False)


def _by_f1(found: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    f1 = divide(2 * found, assigned + positives)
    best = int(np.argmax(f1))
    return (best, True) if f1[best] > 0 else (-1, False)


def _cut_macro(listed: Listed, gold: csr_array, labels: int) -> tuple[float, bool]:
    """The cut under which the mean F1 of these labels is highest, whether it finds any of them."""
    if not len(listed.scores):
        return NEVER, False
    curve = sweep_macro(listed, gold, labels)
    ends = np.flatnonzero(np.append(np.diff(listed.scores) < 0, True))
    best = ends[np.argmax(curve[ends])]
    return (float(find_midpoints(listed.scores)[best]), True) if curve[best] > 0 else (NEVER, False)


RULES: dict[str, Callable[[Floats, Floats, float, float], tuple[int, bool]]] = {
    "precision": _by_precision,
    "recall": _by_recall,
    "f1": _by_f1,
    "macro-f1": _by_f1,  # of one label
}
