"""Scores from which labels are assigned so that a target is reached on validation.

A label with enough validation documents has a cut of its own; the others share one with labels that are about as frequent in train.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.errors import DataError
from plant_cli.evaluation.bins import BOUNDS
from plant_cli.evaluation.targets import Target
from plant_cli.evaluation.thresholds import Listed, find_midpoints, list_predicted
from plant_cli.kit.metrics import Booleans, Floats, Integers, divide

ENOUGH = 20  # validation documents of a label, or of labels together, from which there is a cut of their own
NEVER = np.inf
DOUBT = 10.0  # documents' worth of calibrated probabilities beside what validation says of a label
OWN = "own"


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Labels that share a cut.

    Args:
        of: the group of each label of train [L].
        names: of the groups: training documents of their labels, such as `1-5`, or `own` for a label by itself [G].
    """

    of: Integers
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Cuts:
    """Cuts and where they hold.

    Args:
        values: the score from which each label of train is assigned [L]; infinite: never.
        groups: the labels that share one.
        reached: whether the target can be reached on validation, by group [G].
    """

    values: Floats
    groups: Groups
    reached: Booleans


def group_labels(positives: Integers, train_counts: Integers, enough: int = ENOUGH) -> Groups:
    """A group for each label with enough documents, and groups of labels about as frequent for the others.

    Ranges of training frequency are joined, from rare to frequent, until each has enough; what is left at the end joins the last one.

    Args:
        positives: validation documents of each label of train [L].
        train_counts: training documents of each [L].
        enough: documents.
    """
    own = np.flatnonzero(positives >= enough)
    of = np.full(len(positives), -1, dtype=np.int64)
    of[own] = np.arange(len(own))
    ranges: list[tuple[float, float]] = []
    left, least = of < 0, 1.0
    for _, _, most in BOUNDS[1:]:
        inside = left & (train_counts >= least) & (train_counts <= most)
        if positives[inside].sum() >= enough:
            ranges.append((least, most))
            least = most + 1
    if (left & (train_counts >= least)).any():
        ranges[-1:] = [(ranges[-1][0] if ranges else 1.0, np.inf)]
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
        train_counts: training documents of each label of train [L].
        target: what is to be reached. The highest recall under a precision, the highest precision under a recall.
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
    if target.measure == "macro-f1":
        return _choose_macro(listed, positives)
    groups = group_labels(positives, train_counts, enough)
    known = (listed.labels >= 0) & (listed.labels < labels)
    order = np.flatnonzero(known)[np.argsort(groups.of[listed.labels[known]], kind="stable")]  # by group, then falling score
    starts = np.searchsorted(groups.of[listed.labels[order]], np.arange(len(groups.names) + 1))
    totals = np.bincount(groups.of, positives, minlength=len(groups.names))
    cuts, reached = np.full(len(groups.names), NEVER), np.zeros(len(groups.names), dtype=bool)
    for group, total in enumerate(totals):
        own = order[starts[group] : starts[group + 1]]
        cuts[group], reached[group] = _cut(listed.scores[own], np.cumsum(listed.hits[own]), float(total), target)
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
    enough = np.flatnonzero(found >= least * (assigned + 1))
    return (int(enough[-1]), True) if len(enough) else (-1, False)


def _by_recall(found: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    """The first cut whose recall is enough, else the last."""
    enough = np.flatnonzero(found >= least * positives)
    return (int(enough[0]), True) if len(enough) else (len(found) - 1, False)


def _by_f1(found: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    f1 = divide(2 * found, assigned + positives)
    best = int(np.argmax(f1))
    return (best, True) if f1[best] > 0 else (-1, False)


RULES: dict[str, Callable[[Floats, Floats, float, float], tuple[int, bool]]] = {
    "precision": _by_precision,
    "recall": _by_recall,
    "f1": _by_f1,
}


def _choose_macro(listed: Listed, positives: Integers, doubt: float = DOUBT) -> Cuts:
    """The cut of each label with the best F1 in expectation: of what validation says, mixed with calibrated probabilities.

    A label of n validation documents weighs its own right and wrong predictions by n / (n + doubt), the probabilities by the rest: a label
    without any document there is cut by probabilities alone. Macro-F1 is a mean over labels, so the best cut of each is the best of all.

    Source: Lipton, Elkan and Naryanaswamy 2014, Optimal thresholding of classifiers to maximize F1 measure, for the expectation.
    """
    labels = len(positives)
    known = (listed.labels >= 0) & (listed.labels < labels)
    order = np.flatnonzero(known)[np.argsort(listed.labels[known], kind="stable")]  # by label, then falling score
    label, scores, hits = listed.labels[order], listed.scores[order], listed.hits[order]
    values, reached = np.full(labels, NEVER), np.zeros(labels, dtype=bool)
    groups = Groups(of=np.arange(labels), names=(OWN,) * labels)
    if not len(order):
        return Cuts(values=values, groups=groups, reached=reached)
    chances = np.clip(scores, 0.0, 1.0)
    expected = np.bincount(label, chances, minlength=labels)
    weight = doubt / (doubt + np.maximum(positives, expected))
    right = (1 - weight[label]) * hits + weight[label] * chances
    total = (1 - weight) * positives + weight * expected
    starts = np.searchsorted(label, label)
    sums = np.concatenate([[0.0], np.cumsum(right)])
    f1 = divide(2 * (sums[1:] - sums[starts]), np.arange(len(label)) - starts + 1 + total[label])
    last = np.append(label[1:] != label[:-1], True)
    ends = np.flatnonzero(last | np.append(scores[1:] < scores[:-1], True))
    cuts = np.where(last, scores, find_midpoints(scores))[ends]
    ranked = np.lexsort((-cuts, -f1[ends], label[ends]))
    tuned, firsts = np.unique(label[ends][ranked], return_index=True)
    values[tuned], reached[tuned] = cuts[ranked[firsts]], f1[ends][ranked[firsts]] > 0
    return Cuts(values=values, groups=groups, reached=reached)
