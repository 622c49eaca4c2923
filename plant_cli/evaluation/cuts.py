"""Scores from which labels are assigned so that a target is reached on validation.

A label with enough validation documents has a cut of its own; the others share one with labels that are about as frequent in train.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.errors import DataError
from plant_cli.corpus.statistics import LABEL_RANGES
from plant_cli.evaluation.targets import Target
from plant_cli.evaluation.thresholds import Listed, find_midpoints, list_predicted, sweep_macro
from plant_cli.kit.metrics import ROUNDING, Booleans, Floats, Integers, divide

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
