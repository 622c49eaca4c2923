"""Thresholds: the scores from which labels are assigned or reviewed, chosen on documents with known labels, and what they lead to.

`tune_threshold` and `tune_per_label` maximise F1. `decide` reaches a target with two thresholds of each label: from the first a label is
assigned without a person, from the second a person reviews it. Labels with few documents share thresholds with labels about as frequent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.errors import DataError
from plant_cli.api.metrics import MetricValue
from plant_cli.data.labels import LABEL_RANGES
from plant_cli.evaluation.aligned import Predictions
from plant_cli.evaluation.bootstrap import count_documents, interval, resample
from plant_cli.evaluation.conventions import CONVENTIONS, ConventionName
from plant_cli.evaluation.counters import ROUNDING, Booleans, Floats, Integers, compute_value, divide, find_hits, ratio_of_sums
from plant_cli.evaluation.gold import Gold, describe_gold
from plant_cli.evaluation.measures import none_if_undefined
from plant_cli.evaluation.results import Bound
from plant_cli.evaluation.targets import Target, Targets, parse_targets
from plant_cli.scoring.decisions import ASSIGN, REJECT, REVIEW

Objective = Literal["micro-F1", "macro-F1"]
WITHOUT_PREDICTIONS = 0.5
ENOUGH = 20  # validation documents of a label, or of a group of labels, from which it has a threshold of its own
NEVER = np.inf
OWN = "own"  # the name of the group of a label by itself
FOLDS = 5
VALIDATION = "validation"
CONVENTION: ConventionName = "xmlrepo"  # every document counts, and also gold labels unseen in train


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A threshold and the objective it reaches (a fraction) on the documents it was tuned on."""

    value: float
    score: float


@dataclass(frozen=True)
class Listed:
    """All predicted pairs of document and label by falling score [n]."""

    labels: Integers  # columns of gold; −1: none
    scores: Floats
    hits: Booleans  # whether the pair is gold

    def take(self, kept: Integers) -> Listed:
        """Some of the pairs."""
        return Listed(self.labels[kept], self.scores[kept], self.hits[kept])


def list_predicted(top: Integers, scores: Floats, gold: csr_array) -> Listed:
    """All predicted pairs by falling score.

    Args:
        top: columns of gold [N, K], or −1; see `MetricInput.top`.
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


def tune_threshold(top: Integers, scores: Floats, gold: csr_array, labels: int, objective: Objective = "micro-F1") -> Tuned:
    """The one threshold for all labels under which assigning `score >= threshold` has the highest F1.

    Args:
        top: columns of gold [N, K], or −1.
        scores: their scores [N, K].
        gold: csr [N, L + U] of 0/1; gold of the U labels that no training document has counts as missed in micro-F1.
        labels: L, the labels of train.
        objective: micro-F1, or macro-F1 over the L labels (the same threshold is best for macro-F1 over the labels present).

    Raises:
        DataError: a score is not a number.
    """
    pairs = list_predicted(top, scores, gold)
    if pairs.scores.size == 0:
        return Tuned(value=WITHOUT_PREDICTIONS, score=0.0)
    assigned = np.arange(1, pairs.scores.size + 1)
    curve = 2.0 * np.cumsum(pairs.hits) / (assigned + gold.nnz) if objective == "micro-F1" else _sweep_macro(pairs, gold, labels)
    ends = _find_ends(pairs.scores)
    best = ends[np.argmax(curve[ends])]
    return Tuned(value=float(_find_midpoints(pairs.scores)[best]), score=float(curve[best]))


def tune_per_label(top: Integers, scores: Floats, gold: csr_array, labels: int, fallback: float) -> Floats:
    """One threshold per label of train [L], each the best for that label's F1.

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
    candidates = np.where(last, values, _find_midpoints(values))[ends]
    ranked = np.lexsort((-candidates, -f1[ends], found[ends]))
    tuned, firsts = np.unique(found[ends][ranked], return_index=True)
    best = ranked[firsts]
    useful = f1[ends][best] > 0
    thresholds[tuned[useful]] = candidates[best[useful]]
    return thresholds


def _sweep_macro(pairs: Listed, gold: csr_array, labels: int) -> Floats:
    """Macro-F1 [n] when the first pairs are assigned: each changes the F1 of its own label only, so changes are summed in order."""
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
    sums = np.concatenate([[0], np.cumsum(hits)])
    tp = sums[:-1] - sums[starts]
    return divide(2.0 * tp, assigned + positives), divide(2.0 * (tp + hits), assigned + 1 + positives)


def _find_ends(scores: Floats) -> Integers:
    """The last of each run of equal scores, which are assigned together."""
    ends: Integers = np.flatnonzero(np.append(np.diff(scores) < 0, True))
    return ends


def _find_midpoints(scores: Floats) -> Floats:
    """Thresholds half-way to the next lower score, so that rounding of a score cannot move it across; the last is the score itself."""
    following = np.append(scores[1:], scores[-1])
    middle = scores + (following - scores) / 2
    return np.where((middle > following) & np.isfinite(middle), middle, scores)


@dataclass(frozen=True, kw_only=True)
class ChosenThresholds:
    """Thresholds of the labels of the index, which share them in groups."""

    assign: Floats  # the score from which each label is assigned [L]; infinite: never
    review: Floats  # the score from which a label that is not assigned is reviewed [L]; infinite: never
    groups: Integers  # the group of each label [L]
    names: tuple[str, ...]  # of the groups: training documents of their labels, such as `1-5`, or `own` [G]
    reached: Booleans  # whether the target can be reached on validation, by group [G]


def group_labels(positives: Integers, train_counts: Integers, enough: int = ENOUGH) -> tuple[Integers, tuple[str, ...]]:
    """A group for each label with enough documents, and groups of labels about as frequent for the others: group [L], and names [G].

    Ranges of training frequency are joined, from rare to frequent, until each has enough; what is left at the end joins the last one.
    Labels without training documents (`zero_shot`) are the rarest.

    Args:
        positives: validation documents of each label of the index [L].
        train_counts: training documents of each [L].
        enough: documents.
    """
    alone = np.flatnonzero(positives >= enough)
    groups = np.full(len(positives), -1, dtype=np.int64)
    groups[alone] = np.arange(len(alone))
    ranges: list[tuple[float, float]] = []
    rarest = float(min(1, train_counts.min(initial=1)))
    left, least = groups < 0, rarest
    for _, _, most in LABEL_RANGES[1:]:
        inside = left & (train_counts >= least) & (train_counts <= most)
        if positives[inside].sum() >= enough:
            ranges.append((least, most))
            least = most + 1
    if (left & (train_counts >= least)).any():
        ranges[-1:] = [(ranges[-1][0] if ranges else rarest, np.inf)]
    for number, (low, high) in enumerate(ranges, start=len(alone)):
        groups[left & (train_counts >= low) & (train_counts <= high)] = number
    names = tuple(f"{low:g}-{high:g}" if np.isfinite(high) else f"≥{low:g}" for low, high in ranges)
    return groups, (OWN,) * len(alone) + names


def choose_thresholds(
    top: Integers, scores: Floats, gold: csr_array, train_counts: Integers, target: Target, enough: int = ENOUGH
) -> ChosenThresholds:
    """The thresholds that reach a target on documents with known labels; nothing is reviewed.

    Args:
        top: columns of gold [N, K], or −1.
        scores: their scores [N, K].
        gold: csr [N, L + U] of 0/1.
        train_counts: training documents of each label of the index [L].
        target: the highest recall under a precision, the highest precision under a recall, or the highest F1. Macro-F1 is a mean over
            labels: the best threshold of each group is the best of all.
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
            expected="gold labels that also training documents have",
            todo="look at the labels of the validation split: plant data check",
        )
    groups, names = group_labels(positives, train_counts, enough)
    known = (listed.labels >= 0) & (listed.labels < labels)
    order = np.flatnonzero(known)[np.argsort(groups[listed.labels[known]], kind="stable")]  # by group, then falling score
    starts = np.searchsorted(groups[listed.labels[order]], np.arange(len(names) + 1))
    totals = np.bincount(groups, positives, minlength=len(names))
    values, reached = np.full(len(names), NEVER), np.zeros(len(names), dtype=bool)
    for group, total in enumerate(totals):
        pairs = listed.take(order[starts[group] : starts[group + 1]])
        if not len(pairs.scores):
            continue
        ends = _find_ends(pairs.scores)
        if target.measure == "macro-f1" and names[group] != OWN:
            curve = _sweep_macro(pairs, gold, labels)[ends]
            best = int(np.argmax(curve))
            best, reached[group] = (best, True) if curve[best] > 0 else (-1, False)
        else:
            right = np.cumsum(pairs.hits)[ends].astype(np.float64)
            best, reached[group] = RULES[target.measure](right, (ends + 1).astype(np.float64), float(total), target.least or 0.0)
        if best >= 0:
            values[group] = _find_midpoints(pairs.scores)[ends[best]]
    return ChosenThresholds(assign=values[groups], review=np.full(labels, NEVER), groups=groups, names=names, reached=reached)


def _by_precision(right: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    """The last threshold whose precision is enough even if the next label assigned were wrong: few documents prove little."""
    enough = np.flatnonzero(right >= least * (1 - ROUNDING) * (assigned + 1))
    return (int(enough[-1]), True) if len(enough) else (-1, False)


def _by_recall(right: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    """The first threshold whose recall is enough, else the last."""
    enough = np.flatnonzero(right >= least * (1 - ROUNDING) * positives)
    return (int(enough[0]), True) if len(enough) else (len(right) - 1, False)


def _by_f1(right: Floats, assigned: Floats, positives: float, least: float) -> tuple[int, bool]:
    f1 = divide(2 * right, assigned + positives)
    best = int(np.argmax(f1))
    return (best, True) if f1[best] > 0 else (-1, False)


RULES: dict[str, Callable[[Floats, Floats, float, float], tuple[int, bool]]] = {
    "precision": _by_precision,
    "recall": _by_recall,
    "f1": _by_f1,
    "macro-f1": _by_f1,
}
"""Which threshold, and whether it reaches the target: from right and assigned labels at each, gold labels and the share wanted."""


def decide(predictions: Predictions, gold: Gold, targets: Targets, review: float | None) -> ChosenThresholds:
    """Choose both thresholds on documents with known labels.

    Args:
        predictions: of validation.
        gold: of the same documents.
        targets: what is to be reached.
        review: the probability from which a label is reviewed, if no recall is asked for; None: no label is.

    Raises:
        DataError: no document has a label of train.
    """
    top, scores, counts = predictions.top, predictions.scores, gold.train_counts[: gold.indexed]
    chosen = choose_thresholds(top, scores, gold.matrix, counts, targets.assign)
    if targets.review is not None:
        return replace(chosen, review=choose_thresholds(top, scores, gold.matrix, counts, targets.review).assign)
    return chosen if review is None else replace(chosen, review=np.full(len(counts), review))


def refuse_unreachable(predictions: Predictions, gold: Gold, targets: Targets, where: str) -> None:
    """Refuse a target that no group of labels can reach; the `DataError` says what can be reached.

    Args:
        predictions: of validation.
        gold: of the same documents.
        targets: what is asked for.
        where: the file of the predictions, for the message.
    """
    listed, hits = ~np.isneginf(predictions.scores), find_hits(predictions.top, gold.matrix)
    counts = gold.train_counts[: gold.indexed]
    for target in (targets.assign, targets.review):
        if target is None or target.least is None:
            continue
        if target.measure == "recall":
            possible, right = int(gold.matrix[:, : len(counts)].sum()), int(hits.sum())
            best = right / max(1, possible)
            reached, todo = best >= target.least, "or predict longer lists"
            what = f"{right} of the {possible} gold labels that train has are in the lists of predictions: a recall of {best:.3f}"
        else:
            reached = bool(choose_thresholds(predictions.top, predictions.scores, gold.matrix, counts, target).reached.any())
            what, todo = _best_precision(predictions.scores[listed], hits[listed]), "or let a person review labels: --target f1"
        if not reached:
            raise DataError(
                f"the target {target} cannot be reached: {what}",
                where=where,
                expected="a target that predictions of validation can reach",
                todo=f"ask for less than {target}, {todo}",
            )


def _best_precision(scores: Floats, hits: Booleans) -> str:
    order = np.argsort(-scores, kind="stable")
    right, ends = np.cumsum(hits[order]), _find_ends(scores[order])
    shares = right[ends] / (ends + 2.0)  # as if the next label were wrong, as `_by_precision` counts
    best = int(ends[np.argmax(shares)])
    share = f"{right[best] / (best + 1):.3f}, or {shares.max():.3f} if the next one is wrong"
    return f"the best threshold on validation assigns {best + 1} labels of which {right[best]} are right ({share})"


def find_decisions(predictions: Predictions, chosen: ChosenThresholds) -> dict[str, Booleans]:
    """Which predictions [N, K] are assigned, reviewed and rejected."""
    known = (predictions.top >= 0) & (predictions.top < len(chosen.review))
    labels = np.where(known, predictions.top, 0)
    assigned = known & (predictions.scores >= chosen.assign[labels])
    reviewed = known & (predictions.scores >= chosen.review[labels]) & ~assigned
    return {ASSIGN: assigned, REVIEW: reviewed, REJECT: ~np.isneginf(predictions.scores) & ~assigned & ~reviewed}


def decide_left_out(predictions: Predictions, gold: Gold, targets: Targets, review: float | None, seed: int) -> dict[str, Booleans]:
    """The decisions on validation, for each document by thresholds that were chosen without its fifth of the documents.

    Args:
        predictions: of validation.
        gold: of the same documents.
        targets: what is to be reached.
        review: see `decide`.
        seed: of how documents are divided.
    """
    documents = len(predictions.top)
    folds = np.random.default_rng(seed).permutation(documents) % min(FOLDS, documents)
    rejected = ~np.isneginf(predictions.scores)
    found = {ASSIGN: np.zeros_like(rejected), REVIEW: np.zeros_like(rejected), REJECT: rejected}
    for fold in range(min(FOLDS, documents)):
        parts = [
            replace(predictions, top=predictions.top[rows], scores=predictions.scores[rows]) for rows in (folds != fold, folds == fold)
        ]
        known = replace(gold, matrix=gold.matrix[np.flatnonzero(folds != fold)])
        if not known.matrix[:, : gold.indexed].nnz:  # nothing to choose by: nothing is decided without a person
            continue
        for name, mask in find_decisions(parts[1], decide(parts[0], known, targets, review)).items():
            found[name][folds == fold] = mask
    return found


def are_probabilities(predictions: Predictions) -> bool:
    """Whether all scores lie between 0 and 1."""
    scores = predictions.scores[~np.isneginf(predictions.scores)]
    return bool(len(scores) and scores.min() >= 0 and scores.max() <= 1)


@dataclass(frozen=True, kw_only=True)
class DecisionFigures:
    """The labels of one decision: assign, review or reject."""

    labels: Bound  # per document
    precision: Bound  # the share of them that is right
    recall: Bound  # the share of all gold labels that is among them; gold labels that are not predicted are rejected
    expected_precision: float | None  # if the scores were probabilities of predicted labels; None where they are not
    expected_recall: float | None


@dataclass(frozen=True, kw_only=True)
class SplitFigures:
    """What thresholds lead to on one split."""

    decisions: Mapping[str, DecisionFigures]
    automatic: Bound  # the share of the assigned and reviewed labels that is assigned without a person
    untouched: Bound  # the share of documents with nothing to review


def measure_decisions(
    masks: Mapping[str, Booleans], predictions: Predictions, gold: Gold, *, replicates: int, level: float, seed: int
) -> SplitFigures:
    """How often each decision is right, what share of the gold labels it holds, and its labels per document.

    Args:
        masks: which predictions are assigned, reviewed and rejected [N, K].
        predictions: of a split.
        gold: of the same documents; labels unseen in train count as rejected.
        replicates: resamples of the documents behind the intervals; 0: none.
        level: their coverage.
        seed: of the resamples.
    """
    hits = find_hits(predictions.top, gold.matrix)
    labels = {name: mask.sum(axis=1).astype(np.float64) for name, mask in masks.items()}
    right = {name: (mask & hits).sum(axis=1).astype(np.float64) for name, mask in masks.items()}
    sizes, ones = gold.sizes.astype(np.float64), np.ones(len(gold.sizes))
    held = {**right, REJECT: sizes - right[ASSIGN] - right[REVIEW]}
    metrics = []
    for name in masks:
        metrics.append(ratio_of_sums(f"{name} labels", labels[name], ones))
        metrics.append(ratio_of_sums(f"{name} precision", right[name], labels[name]))
        metrics.append(ratio_of_sums(f"{name} recall", held[name], sizes))
    metrics.append(ratio_of_sums("automatic", labels[ASSIGN], labels[ASSIGN] + labels[REVIEW]))
    metrics.append(ratio_of_sums("untouched", (labels[REVIEW] == 0).astype(np.float64), ones))
    drawn = resample(metrics, replicates, np.random.default_rng(seed)) if replicates else np.zeros((len(metrics), 0))
    bounds = {m.name: _bound(m, values, level) for m, values in zip(metrics, drawn, strict=True)}
    expected = _expect(masks, predictions)
    figures = {
        name: DecisionFigures(
            labels=bounds[f"{name} labels"], precision=bounds[f"{name} precision"], recall=bounds[f"{name} recall"], **expected[name]
        )
        for name in masks
    }
    return SplitFigures(decisions=figures, automatic=bounds["automatic"], untouched=bounds["untouched"])


def _bound(metric: MetricValue, drawn: Floats, level: float) -> Bound:
    value = compute_value(metric)
    if not drawn.size:
        return Bound(value=none_if_undefined(value))
    within, documents = ((0.0, np.inf), None) if metric.name.endswith("labels") else ((0.0, 1.0), count_documents(metric))
    low, high = interval(value, drawn, level, documents=documents, within=within)
    return Bound(value=none_if_undefined(value), low=none_if_undefined(low), high=none_if_undefined(high))


def _expect(masks: Mapping[str, Booleans], predictions: Predictions) -> dict[str, dict[str, Any]]:
    """The precision and recall of each decision if the scores are probabilities."""
    total = float(predictions.scores[~np.isneginf(predictions.scores)].sum()) if are_probabilities(predictions) else None
    return {
        name: {
            "expected_precision": None if total is None or not mask.any() else float(predictions.scores[mask].mean()),
            "expected_recall": float(predictions.scores[mask].sum()) / total if total else None,
        }
        for name, mask in masks.items()
    }


@dataclass(frozen=True, kw_only=True)
class ThresholdConditions:
    """Under what conditions thresholds were chosen and measured."""

    system: str  # whose predictions, as the user wrote it
    target: str
    calibrated: bool  # whether the scores are probabilities
    replicates: int  # resamples behind the intervals, 0 for none
    level: float  # their coverage
    seed: int  # of the resamples, and of how validation documents are divided


def as_json(
    figures: Mapping[str, SplitFigures], golds: Mapping[str, Gold], chosen: ChosenThresholds, given: ThresholdConditions
) -> dict[str, Any]:
    """The content of decisions.json: fractions from 0 to 1, labels per document; null where undefined.

    Args:
        figures: by split, validation first.
        golds: the gold labels of these splits.
        chosen: the thresholds.
        given: the conditions.
    """
    return {
        **asdict(given),
        "splits": {
            name: {
                "documents": len(golds[name].doc_ids),
                "gold": golds[name].hash,
                "gold_labels": int(golds[name].matrix.nnz),
                "gold_labels_unseen": _count_unseen(golds[name]),
                "automatic": found.automatic.model_dump(),
                "documents_without_review": found.untouched.model_dump(),
                **{
                    decision: {key: value.model_dump() if isinstance(value, Bound) else value for key, value in vars(one).items()}
                    for decision, one in found.decisions.items()
                },
            }
            for name, found in figures.items()
        },
        "thresholds": [
            dict(zip(("training_documents", "labels", "validation_documents", "lowest", "highest", "never_assigned"), row, strict=True))
            for row in _summarise_groups(chosen, golds[VALIDATION])
        ],
    }


def make_tables(
    figures: Mapping[str, SplitFigures], golds: Mapping[str, Gold], chosen: ChosenThresholds, given: ThresholdConditions
) -> list[Table]:
    """The decisions on each split, and the thresholds by training frequency; for the arguments see `as_json`."""
    groups = [Column(name="training documents"), *(Column(name=name, kind="count") for name in ("labels", "validation documents"))]
    groups += [*(Column(name=name, kind="exact") for name in ("assigned from", "to")), Column(name="never assigned", kind="count")]
    notes = [
        f"{OWN}: a threshold for each label with {ENOUGH} validation documents or more; the others share one with labels about as frequent",
        "never assigned: labels for which no threshold reaches the target on validation",
        f"target {given.target}; chosen on {describe_gold(golds[VALIDATION], CONVENTIONS[CONVENTION])}; nothing is random, no seed",
    ]
    rows: list[list[Cell]] = [
        [name, labels, documents, _round(low), _round(high), never]
        for name, labels, documents, low, high, never in _summarise_groups(chosen, golds[VALIDATION])
    ]
    shown = [_tabulate_split(split, found, golds[split], given) for split, found in figures.items()]
    return [*shown, Table(title="Thresholds", columns=groups, rows=rows, notes=notes)]


def _tabulate_split(split: str, found: SplitFigures, gold: Gold, given: ThresholdConditions) -> Table:
    columns = [Column(name="decision"), Column(name="labels per document", kind="exact")]
    for name in ("precision", "recall"):
        columns += [Column(name=f"{name}{part}", kind="points") for part in (" expected", "", " low", " high")]
    rows: list[list[Cell]] = []
    for name, one in found.decisions.items():
        row: list[Cell] = [name, _round(one.labels.value)]
        for expected, bound in ((one.expected_precision, one.precision), (one.expected_recall, one.recall)):
            row += [expected, bound.value, bound.low, bound.high]
        rows.append(row)
    resamples = f"{100 * given.level:g}% intervals from {given.replicates} resamples of the documents, seed {given.seed}"
    chosen = "without each document's fifth of validation" if split == VALIDATION else "on validation only"
    by_scores = "by the scores as probabilities; the recall, of the labels that are predicted"
    notes = [
        *_describe_missed(parse_targets(given.target.split()), found, given),
        f"{_percent(found.automatic)} of the labels shown are assigned without a person; {found.decisions[REVIEW].labels.value or 0.0:.3g} "
        f"labels of a document are to be reviewed, and {_percent(found.untouched)} of the documents have none",
        "assign: without a person; review: a person looks; reject: predicted, but not shown",
        "precision: the share that is right; recall: the share of gold labels; those not predicted or unseen in train count as rejected",
        f"by thresholds chosen {chosen}",
        f"expected: {by_scores}" if given.calibrated else "no expected values: the scores are not probabilities",
        f"{describe_gold(gold, CONVENTIONS[CONVENTION])}; {gold.matrix.nnz} gold assignments, {_count_unseen(gold)} of labels unseen in "
        "train; pooled over documents (micro)",
        resamples if given.replicates else f"no intervals (--bootstrap 0); seed {given.seed}",
    ]
    return Table(title=f"Decisions on {split}: {given.target}", columns=columns, rows=rows, notes=notes)


def _describe_missed(targets: Targets, found: SplitFigures, given: ThresholdConditions) -> list[str]:
    """The targets that are not reached on this split, and what is reached."""
    assign, review = found.decisions[ASSIGN], found.decisions[REVIEW]
    shown = Bound(value=(assign.recall.value or 0.0) + (review.recall.value or 0.0))  # intervals of the parts do not add up
    measured = {"precision": assign.precision, "recall": assign.recall}.get(targets.assign.measure)
    missed = []
    for target, bound in ((targets.assign, measured), (targets.review, shown)):
        if target is None or target.least is None or bound is None:
            continue
        if bound.value is None:
            missed.append(f"NOT REACHED: {target}; no label is assigned")
        elif bound.value < target.least:
            inside = bound.high is not None and bound.high >= target.least
            within = f"; {100 * target.least:g}% is still inside the {100 * given.level:g}% interval" if inside else ""
            missed.append(f"NOT REACHED: {target}; measured {100 * bound.value:.1f}%{within}")
    return missed


def _summarise_groups(chosen: ChosenThresholds, validation: Gold) -> list[tuple[str, int, int, float | None, float | None, int]]:
    """By range of training frequency: labels, their validation documents, lowest and highest threshold, and labels never assigned."""
    counts = np.asarray(validation.matrix[:, : len(chosen.assign)].sum(axis=0))
    names, rows = np.array(chosen.names)[chosen.groups], []
    for name in dict.fromkeys(chosen.names):
        inside = names == name
        values = chosen.assign[inside]
        real = values[np.isfinite(values)]
        low, high = (float(real.min()), float(real.max())) if real.size else (None, None)
        rows.append((name, int(inside.sum()), int(counts[inside].sum()), low, high, int(values.size - real.size)))
    return rows


def _percent(bound: Bound) -> str:
    return "none" if bound.value is None else f"{100 * bound.value:.0f}%"


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def _count_unseen(gold: Gold) -> int:
    return int(gold.matrix[:, np.flatnonzero(gold.train_counts == 0)].nnz)
