"""Thresholds: the scores from which labels are assigned or reviewed, chosen on documents with known
labels, and what they lead to.

`tune_threshold` and `tune_per_label` maximise F1. `choose_on_validation` reaches a target with two
thresholds of each label: from the first a label is assigned without a person, from the second a
person reviews it. Labels with few documents share thresholds with labels about as frequent. All of
them look at the same cuts: behind each run of equal scores in the falling scores of one group of
labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import Column, DataError, MetricValue, Table
from plant_cli.api.context import Cell
from plant_cli.data.labels import LABEL_RANGES
from plant_cli.evaluation.aligned import Predictions
from plant_cli.evaluation.bootstrap import bound_proportion, count_measured, interval, resample
from plant_cli.evaluation.conventions import CONVENTIONS, ConventionName
from plant_cli.evaluation.counters import (
    ROUNDING,
    Booleans,
    Floats,
    Integers,
    compute_value,
    divide,
    find_hits,
    not_a_number,
    ratio_of_sums,
    round_figures,
)
from plant_cli.evaluation.gold import Gold, describe_gold
from plant_cli.evaluation.results import Bound
from plant_cli.evaluation.targets import Target, TargetMeasure, Targets, parse_targets
from plant_cli.scoring.decisions import ASSIGN, REJECT, REVIEW, VALIDATION

Objective = Literal["micro-F1", "macro-F1"]
WITHOUT_PREDICTIONS = 0.5
# validation documents that a label, or a group of labels, needs for a separate threshold; and for
# one that promises a precision
DOCUMENTS_FOR_A_THRESHOLD, DOCUMENTS_FOR_A_PROMISE = 20, 100
# of Wilson's interval of a precision, whose lower end must reach the target: with one of 95%
# small corpora assigned nothing, and without one too many labels were wrong on other documents
CERTAINTY = 0.68
NEVER = np.inf
OWN_GROUP = "own"  # the name of a group of one label
FOLDS = 5
DECISIONS = "decisions.json"
CONVENTION: ConventionName = (
    "xmlrepo"  # every document counts, and also gold labels unseen in train
)
Decided = tuple[
    Mapping[str, Booleans], Predictions, Gold
]  # which predictions are assigned, reviewed and rejected [N, K], of which split


@dataclass(frozen=True, kw_only=True)
class ScoredGold:
    """Predictions beside the gold labels of their documents; see `find_cuts`."""

    top: Integers  # [N, K]
    scores: Floats  # [N, K]
    gold: csr_array  # [N, L + U]
    train_counts: Integers  # training documents of each label of the index [L]

    @classmethod
    def of(cls, predictions: Predictions, gold: Gold) -> ScoredGold:
        """Those of a split."""
        return cls(
            top=predictions.top,
            scores=predictions.scores,
            gold=gold.matrix,
            train_counts=gold.train_counts[: gold.indexed],
        )

    def take(self, rows: Integers) -> ScoredGold:
        """Those of some documents."""
        return replace(self, top=self.top[rows], scores=self.scores[rows], gold=self.gold[rows])


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A threshold and the objective it reaches (a fraction) on the documents it was tuned on."""

    value: float
    score: float


@dataclass(frozen=True)
class Cuts:
    """Where a group's labels can be cut: behind each run of equal scores [c], by group, then by
    falling score.
    """

    groups: Integers
    # the threshold: half-way to the group's next lower score, so that rounding changes nothing; or
    # the last score
    values: Floats
    assigned: Floats  # pairs of document and label in the group with at least that score
    right: Floats  # of these gold
    macro: Floats  # the sum of the labels' F1 when these are assigned

    def choose(self, quality: Floats) -> Integers:
        """The best cut of each group, as indices; of equally good ones the highest."""
        order = np.lexsort((-quality, self.groups))
        return order[np.unique(self.groups[order], return_index=True)[1]]


def find_cuts(
    top: Integers, scores: Floats, gold: csr_array, labels: int, groups: Integers | None = None
) -> Cuts:
    """The cuts of predictions [N, K] (columns of gold, or −1; their scores) beside gold [N, L + U].

    Args:
        labels: L, those of train; the F1 of the others does not count in `Cuts.macro`.
        groups: the group of each label of train [L], and all other pairs are left out; None: all
            pairs are one group.
    """
    real = (top >= 0) | ~np.isneginf(scores)
    if np.isnan(scores[real]).any():
        row = int(np.flatnonzero((np.isnan(scores) & real).any(axis=1))[0])
        raise not_a_number(row, len(top), "prediction")
    if groups is not None:
        real &= (top >= 0) & (top < labels)
    columns, values, hits = top[real], scores[real], find_hits(top, gold)[real]
    group = np.zeros_like(columns) if groups is None else groups[columns]
    order = np.argsort(-values, kind="stable")
    order = order if groups is None else order[np.argsort(group[order], kind="stable")]
    columns, values, hits, group = columns[order], values[order], hits[order], group[order]
    last = _is_last(group)
    ends = np.flatnonzero(last | _is_last(values))
    following = np.append(values[1:], values[-1:])
    middle = values + (following - values) / 2
    thresholds = np.where(~last & (middle > following) & np.isfinite(middle), middle, values)
    starts = np.searchsorted(group, group[ends])
    sums = np.concatenate([[0], np.cumsum(hits)])
    changes = np.split(_change_f1(columns, hits, gold, labels), np.flatnonzero(last)[:-1] + 1)
    return Cuts(
        groups=group[ends],
        values=thresholds[ends],
        assigned=(ends + 1 - starts).astype(np.float64),
        right=(sums[ends + 1] - sums[starts]).astype(np.float64),
        macro=np.concatenate([np.cumsum(part) for part in changes])[ends],
    )


def _is_last(sorted_values: np.ndarray[Any, Any]) -> Booleans:
    last = np.ones(sorted_values.size, dtype=bool)
    last[:-1] = sorted_values[1:] != sorted_values[:-1]
    return last


def _change_f1(columns: Integers, hits: Booleans, gold: csr_array, labels: int) -> Floats:
    """By how much each pair changes the F1 of its label when pairs are assigned in order [n]; 0
    for labels that train does not have.
    """
    known = np.flatnonzero((columns >= 0) & (columns < labels))
    order = known[np.argsort(columns[known], kind="stable")]
    ordered, right = columns[order], hits[order]
    positives = _count_positives(gold)[ordered]
    starts = np.searchsorted(ordered, ordered)
    assigned = np.arange(ordered.size) - starts
    sums = np.concatenate([[0], np.cumsum(right)])
    tp = sums[:-1] - sums[starts]
    changes = np.zeros(columns.size)
    changes[order] = divide(2.0 * (tp + right), assigned + 1 + positives) - divide(
        2.0 * tp, assigned + positives
    )
    return changes


def tune_threshold(
    top: Integers, scores: Floats, gold: csr_array, labels: int, objective: Objective = "micro-F1"
) -> Tuned:
    """The one threshold for all labels under which assigning `score >= threshold` has the highest
    F1; for the arguments see `find_cuts`.

    Gold of labels that no training document has counts as missed in micro-F1. The same threshold is
    best for macro-F1 over all labels of train and over those present.
    """
    cuts = find_cuts(top, scores, gold, labels)
    if not cuts.values.size:
        return Tuned(value=WITHOUT_PREDICTIONS, score=0.0)
    curve = (
        2.0 * cuts.right / (cuts.assigned + gold.nnz)
        if objective == "micro-F1"
        else cuts.macro / max(labels, 1)
    )
    best = np.argmax(curve)
    return Tuned(value=float(cuts.values[best]), score=float(curve[best]))


def tune_per_label(
    top: Integers, scores: Floats, gold: csr_array, labels: int, fallback: float
) -> Floats:
    """One threshold per label of train [L], each the best for that label's F1; for the arguments
    see `find_cuts`.

    `fallback`: the threshold of labels that no predicted document has as gold.
    """
    cuts = find_cuts(top, scores, gold, labels, np.arange(labels))
    f1, useful = rate_cuts(
        "f1", cuts.right, cuts.assigned, _count_positives(gold)[cuts.groups], 0.0
    )
    best = cuts.choose(f1)
    thresholds = np.full(labels, fallback, dtype=np.float64)
    thresholds[cuts.groups[best]] = np.where(useful[best], cuts.values[best], fallback)
    return thresholds


def _count_positives(gold: csr_array) -> Integers:
    return np.bincount(gold.nonzero()[1], minlength=gold.shape[1])


def rate_cuts(
    measure: TargetMeasure,
    right: Floats,
    assigned: Floats,
    positives: Floats | Integers | float,
    least: float,
) -> tuple[Floats, Booleans]:
    """How good each cut is for a target, and whether it reaches the share wanted, from right,
    assigned and gold labels [c].

    precision: the most labels of which enough are right by the lower end of their interval, since
    few labels prove little. recall: the fewest labels that hold enough of gold, else as many as
    there are.
    """
    share = least * (1 - ROUNDING)
    if measure == "precision":
        enough = bound_proportion(right, assigned, CERTAINTY)[0] >= share
        return np.where(enough, assigned, 0.0), enough
    if measure == "recall":
        enough = right >= share * positives
        return np.where(enough, 2.0 * assigned.max(initial=0.0) + 1 - assigned, assigned), enough
    recall_counts = 4.0 if measure == "f2" else 1.0  # the square of how often it counts
    quality = divide((1 + recall_counts) * right, assigned + recall_counts * positives)
    return quality, quality > 0


@dataclass(frozen=True, kw_only=True)
class ChosenThresholds:
    """Thresholds of the labels of the index, which share them in groups."""

    assign: Floats  # the score from which each label is assigned [L]; infinite: never
    review: (
        Floats  # the score from which a label that is not assigned is reviewed [L]; infinite: never
    )
    groups: Integers  # the group of each label [L]
    names: tuple[
        str, ...
    ]  # of the groups: training documents of their labels, such as `1-5`, or `own` [G]
    reached: Booleans  # whether the target can be reached on validation, by group [G]


def group_by_frequency(
    positives: Integers, train_counts: Integers, enough: int
) -> tuple[Integers, tuple[str, ...]]:
    """A group for each label with enough documents, and groups of labels about as frequent for the
    others: group [L], and names [G].

    Ranges of training frequency are joined, from rare to frequent, until each has enough; what is
    left at the end joins the last one. Labels without training documents (`zero_shot`) are the
    rarest.

    Args:
        positives: validation documents of each label of the index [L].
        train_counts: training documents of each [L].
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
    return groups, (OWN_GROUP,) * len(alone) + names


def choose_thresholds(
    judged: ScoredGold, target: Target, enough: int | None = None
) -> ChosenThresholds:
    """The thresholds that reach a target on documents with known labels; nothing is reviewed.

    Args:
        judged: the documents; those without a label of the index tell nothing, and where none has
            one no label is assigned.
        target: the highest recall under a precision, the highest precision under a recall, or the
            highest F1. Macro-F1 is a mean over labels: the best threshold of each group is the best
            of all.
        enough: see `group_by_frequency`; None: as many as the target needs.
    """
    train_counts, labels = judged.train_counts, len(judged.train_counts)
    if enough is None:
        promises = target.measure == "precision"
        enough = DOCUMENTS_FOR_A_PROMISE if promises else DOCUMENTS_FOR_A_THRESHOLD
    positives = _count_positives(judged.gold)[:labels]
    groups, names = group_by_frequency(positives, train_counts, enough)
    cuts = find_cuts(judged.top, judged.scores, judged.gold, labels, groups)
    totals = np.bincount(groups, positives, minlength=len(names))[cuts.groups]
    quality, useful = rate_cuts(
        target.measure, cuts.right, cuts.assigned, totals, target.least or 0.0
    )
    if target.measure == "macro-f1":
        quality = np.where(
            np.array(names, dtype=object)[cuts.groups] == OWN_GROUP,
            quality,
            cuts.macro / max(labels, 1),
        )
        useful = quality > 0
    best = cuts.choose(quality)
    values, reached = np.full(len(names), NEVER), np.zeros(len(names), dtype=bool)
    reached[cuts.groups[best]] = useful[best]
    values[cuts.groups[best]] = np.where(
        useful[best] | (target.measure == "recall"), cuts.values[best], NEVER
    )
    return ChosenThresholds(
        assign=values[groups],
        review=np.full(labels, NEVER),
        groups=groups,
        names=names,
        reached=reached,
    )


def choose_bands(judged: ScoredGold, targets: Targets) -> ChosenThresholds:
    """Choose both thresholds of each label on documents with known labels. Under a precision, a
    label that lowers F1 is not assigned, however right the others are.
    """
    chosen, reviewed = (choose_thresholds(judged, one) for one in (targets.assign, targets.review))
    assign = chosen.assign
    if targets.assign.measure == "precision":
        best = choose_thresholds(judged, Target(measure="f1"), DOCUMENTS_FOR_A_PROMISE)
        assign = np.maximum(assign, best.assign)
    return replace(chosen, assign=assign, review=reviewed.assign)


def refuse_unreachable(predictions: Predictions, gold: Gold, targets: Targets, where: str) -> None:
    """Refuse a target that no group of labels can reach on validation; the `DataError` says
    what can be reached.
    """
    top, scores, matrix = predictions.top, predictions.scores, gold.matrix
    if not matrix[:, : gold.indexed].nnz:
        raise DataError(
            "no document has a label of train: there is nothing to choose thresholds by",
            where=where,
            expected="gold labels that also training documents have",
            todo="look at the labels of the validation split: plant data check",
        )
    for target in (targets.assign, targets.review):
        if target.least is None:
            continue
        if target.measure == "recall":
            possible, right = (
                int(matrix[:, : gold.indexed].sum()),
                int(find_hits(top, matrix).sum()),
            )
            best = right / max(1, possible)
            reached, todo = best >= target.least, "or predict longer lists"
            what = (
                f"{right} of the {possible} gold labels that train has are in the lists of "
                f"predictions: a recall of {best:.3f}"
            )
        else:
            reached = bool(
                choose_thresholds(ScoredGold.of(predictions, gold), target).reached.any()
            )
            what, todo = (
                _best_precision(find_cuts(top, scores, matrix, gold.indexed)),
                "or let a person review labels: --target f1",
            )
        if not reached:
            expected, todo = (
                "a target that predictions of validation can reach",
                f"ask for less than {target}, {todo}",
            )
            raise DataError(
                f"the target {target} cannot be reached: {what}",
                where=where,
                expected=expected,
                todo=todo,
            )


def _best_precision(cuts: Cuts) -> str:
    shares = bound_proportion(cuts.right, cuts.assigned, CERTAINTY)[0]
    best = np.argmax(shares)
    right, assigned = int(cuts.right[best]), int(cuts.assigned[best])
    share = f"{right / assigned:.3f}, with a {100 * CERTAINTY:g}% interval from {shares.max():.3f}"
    return (
        f"the best threshold on validation assigns {assigned} labels of which {right} are "
        f"right ({share})"
    )


def find_decisions(judged: ScoredGold, chosen: ChosenThresholds) -> dict[str, Booleans]:
    """Which predictions [N, K] are assigned, reviewed and rejected."""
    known = (judged.top >= 0) & (judged.top < len(chosen.review))
    labels = np.where(known, judged.top, 0)
    assigned = known & (judged.scores >= chosen.assign[labels])
    reviewed = known & (judged.scores >= chosen.review[labels]) & ~assigned
    return {
        ASSIGN: assigned,
        REVIEW: reviewed,
        REJECT: ~np.isneginf(judged.scores) & ~assigned & ~reviewed,
    }


def decide_left_out(judged: ScoredGold, targets: Targets, seed: int) -> dict[str, Booleans]:
    """The decisions on validation, for each document by thresholds that were chosen without its
    fifth of the documents.
    """
    documents = len(judged.top)
    folds = np.random.default_rng(seed).permutation(documents) % min(FOLDS, documents)
    shape = judged.top.shape
    decisions = {name: np.zeros(shape, dtype=bool) for name in (ASSIGN, REVIEW, REJECT)}
    for fold in range(min(FOLDS, documents)):
        chosen = choose_bands(judged.take(np.flatnonzero(folds != fold)), targets)
        these = np.flatnonzero(folds == fold)
        for name, mask in find_decisions(judged.take(these), chosen).items():
            decisions[name][these] = mask
    return decisions


def are_probabilities(predictions: Predictions) -> bool:
    """Whether all scores lie between 0 and 1."""
    scores = predictions.scores[~np.isneginf(predictions.scores)]
    return bool(len(scores) and scores.min() >= 0 and scores.max() <= 1)


def record_decisions(
    decided: Mapping[str, Decided], chosen: ChosenThresholds, conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of decisions.json: fractions from 0 to 1, labels per document; null where
    undefined.

    Args:
        decided: by split, validation first.
        chosen: the thresholds.
        conditions: `system`, `target`, `calibrated` (whether scores are probabilities),
            `replicates` (resamples behind the intervals, 0 for none), `level` and `seed`.
    """
    drawn = {name: conditions[name] for name in ("replicates", "level", "seed")}
    return {
        **conditions,
        "splits": {name: measure_decisions(*inputs, **drawn) for name, inputs in decided.items()},
        "thresholds": _summarise_groups(chosen, decided[VALIDATION][2]),
    }


def measure_decisions(
    masks: Mapping[str, Booleans],
    predictions: Predictions,
    gold: Gold,
    *,
    replicates: int,
    level: float,
    seed: int,
) -> dict[str, Any]:
    """What decisions lead to on one split, as decisions.json holds it: each with its interval from
    resamples of the documents.

    `labels`: per document; `precision`: the share of them that is right; `recall`: the share of all
    gold labels that is among them, where gold labels that are not predicted or unseen in train are
    rejected. `expected_…`: what these would be if the scores were probabilities. `automatic`: the
    share of the assigned and reviewed labels that is assigned without a person.
    """
    bounds = measure_bands(masks, ScoredGold.of(predictions, gold), replicates, level, seed)
    total = (
        float(predictions.scores[~np.isneginf(predictions.scores)].sum())
        if are_probabilities(predictions)
        else None
    )
    return {
        "documents": len(gold.doc_ids),
        "gold": gold.hash,
        "gold_labels": int(gold.matrix.nnz),
        "gold_labels_unseen": int(gold.matrix[:, np.flatnonzero(gold.train_counts == 0)].nnz),
        "automatic": bounds["automatic"],
        "documents_without_review": bounds["untouched"],
        **{
            name: {
                **{
                    figure: bounds[f"{name} {figure}"]
                    for figure in ("labels", "precision", "recall")
                },
                "expected_precision": None
                if total is None or not mask.any()
                else float(predictions.scores[mask].mean()),
                "expected_recall": float(predictions.scores[mask].sum()) / total if total else None,
            }
            for name, mask in masks.items()
        },
    }


def measure_bands(
    masks: Mapping[str, Booleans], judged: ScoredGold, replicates: int, level: float, seed: int
) -> dict[str, dict[str, float | None]]:
    """For each decision `… labels`, `… precision` and `… recall`, then `automatic`, `untouched`
    (documents without a label to review) and `shown` (the recall of what is not rejected); see
    `measure_decisions`.
    """
    hits = find_hits(judged.top, judged.gold)
    sizes = np.diff(judged.gold.indptr).astype(np.float64)
    ones = np.ones(len(sizes))
    labels = {name: mask.sum(axis=1).astype(np.float64) for name, mask in masks.items()}
    right = {name: (mask & hits).sum(axis=1).astype(np.float64) for name, mask in masks.items()}
    shown = right[ASSIGN] + right[REVIEW]
    held = {**right, REJECT: sizes - shown}
    metrics = []
    for name in masks:
        metrics.append(ratio_of_sums(f"{name} labels", labels[name], ones))
        metrics.append(ratio_of_sums(f"{name} precision", right[name], labels[name]))
        metrics.append(ratio_of_sums(f"{name} recall", held[name], sizes))
    metrics.append(ratio_of_sums("automatic", labels[ASSIGN], labels[ASSIGN] + labels[REVIEW]))
    metrics.append(ratio_of_sums("untouched", (labels[REVIEW] == 0).astype(np.float64), ones))
    metrics.append(ratio_of_sums("shown", shown, sizes))
    drawn = (
        resample(metrics, replicates, np.random.default_rng(seed))
        if replicates
        else np.zeros((len(metrics), 0))
    )
    return {m.name: _bound(m, values, level) for m, values in zip(metrics, drawn, strict=True)}


def _bound(metric: MetricValue, drawn: Floats, level: float) -> dict[str, float | None]:
    value, ends = compute_value(metric), (np.nan, np.nan)
    if drawn.size:
        within, documents = (
            ((0.0, np.inf), None)
            if metric.name.endswith("labels")
            else ((0.0, 1.0), count_measured(metric))
        )
        ends = interval(value, drawn, level, documents=documents, within=within)
    return Bound.of(value, *ends).model_dump()


def _summarise_groups(chosen: ChosenThresholds, validation: Gold) -> list[dict[str, Any]]:
    """By range of training frequency: labels, their validation documents, lowest and highest
    threshold, and labels never assigned.
    """
    counts = np.asarray(validation.matrix[:, : len(chosen.assign)].sum(axis=0))
    names, rows = np.array(chosen.names)[chosen.groups], []
    for name in dict.fromkeys(chosen.names):
        inside = names == name
        values = chosen.assign[inside]
        real = values[np.isfinite(values)]
        low, high = (float(real.min()), float(real.max())) if real.size else (None, None)
        row = {
            "training_documents": name,
            "labels": int(inside.sum()),
            "validation_documents": int(counts[inside].sum()),
        }
        rows.append(
            {**row, "lowest": low, "highest": high, "never_assigned": int(values.size - real.size)}
        )
    return rows


def make_decision_tables(content: Mapping[str, Any], golds: Mapping[str, Gold]) -> list[Table]:
    """The decisions on each split, and the thresholds by training frequency, from
    decisions.json and the gold labels of its splits.
    """
    columns = [
        Column(name="training documents"),
        *(Column(name=name, kind="count") for name in ("labels", "validation documents")),
    ]
    columns += [
        *(Column(name=name, kind="exact") for name in ("assigned from", "to")),
        Column(name="never assigned", kind="count"),
    ]
    notes = [
        f"{OWN_GROUP}: a threshold for each label with {DOCUMENTS_FOR_A_THRESHOLD} validation "
        f"documents or more ({DOCUMENTS_FOR_A_PROMISE} for a precision); "
        "the others share one with labels about as frequent",
        "never assigned: labels for which no threshold reaches the target on validation",
        f"target {content['target']}; chosen on "
        f"{describe_gold(golds[VALIDATION], CONVENTIONS[CONVENTION])}; nothing is random, no seed",
    ]
    rows: list[list[Cell]] = [
        [round_figures(value, 3) if isinstance(value, float) else value for value in row.values()]
        for row in content["thresholds"]
    ]
    shown = [_tabulate_split(split, content, gold) for split, gold in golds.items()]
    return [*shown, Table(title="Thresholds", columns=columns, rows=rows, notes=notes)]


def _tabulate_split(split: str, content: Mapping[str, Any], gold: Gold) -> Table:
    figures, level, seed = content["splits"][split], f"{100 * content['level']:g}%", content["seed"]
    columns = [Column(name="decision"), Column(name="labels per document", kind="exact")]
    for name in ("precision", "recall"):
        columns += [
            Column(name=f"{name}{part}", kind="points")
            for part in (" expected", "", " low", " high")
        ]
    rows: list[list[Cell]] = []
    for name in (ASSIGN, REVIEW, REJECT):
        one = figures[name]
        row: list[Cell] = [name, round_figures(one["labels"]["value"], 3)]
        for figure in ("precision", "recall"):
            row += [one[f"expected_{figure}"], *one[figure].values()]
        rows.append(row)
    chosen = (
        "without each document's fifth of validation"
        if split == VALIDATION
        else "on validation only"
    )
    by_scores = "by the scores as probabilities; the recall, of the labels that are predicted"
    shares = (figures[name]["value"] for name in ("automatic", "documents_without_review"))
    automatic, untouched = ("none" if share is None else f"{100 * share:.0f}%" for share in shares)
    resamples = (
        f"{level} intervals from {content['replicates']} resamples of the documents, seed {seed}"
    )
    notes = [
        *_describe_missed(parse_targets(content["target"].split()), figures, level),
        f"{automatic} of the labels shown are assigned without a person; "
        f"{figures[REVIEW]['labels']['value'] or 0.0:.3g} labels of a "
        f"document are to be reviewed, and {untouched} of the documents have none",
        "assign: without a person; review: a person looks; reject: predicted, but not shown",
        "precision: the share that is right; recall: the share of gold labels; those not "
        "predicted or unseen in train count as rejected",
        f"by thresholds chosen {chosen}",
        f"expected: {by_scores}"
        if content["calibrated"]
        else "no expected values: the scores are not probabilities",
        f"{describe_gold(gold, CONVENTIONS[CONVENTION])}; {figures['gold_labels']} gold "
        f"assignments, {figures['gold_labels_unseen']} of "
        "labels unseen in train; pooled over documents (micro)",
        resamples if content["replicates"] else f"no intervals (--bootstrap 0); seed {seed}",
    ]
    return Table(
        title=f"Decisions on {split}: {content['target']}", columns=columns, rows=rows, notes=notes
    )


def _describe_missed(targets: Targets, figures: Mapping[str, Any], level: str) -> list[str]:
    """The targets that are not reached on this split, and what is reached."""
    assign, review = figures[ASSIGN], figures[REVIEW]
    shown = {
        "value": (assign["recall"]["value"] or 0.0) + (review["recall"]["value"] or 0.0),
        "high": None,
    }  # intervals do not add up
    missed = []
    for target, bound in (
        (targets.assign, assign.get(targets.assign.measure)),
        (targets.review, shown),
    ):
        if target is None or target.least is None or bound is None:
            continue
        if bound["value"] is None:
            missed.append(f"NOT REACHED: {target}; no label is assigned")
        elif bound["value"] < target.least:
            inside = bound["high"] is not None and bound["high"] >= target.least
            within = (
                f"; {100 * target.least:g}% is still inside the {level} interval" if inside else ""
            )
            missed.append(f"NOT REACHED: {target}; measured {100 * bound['value']:.1f}%{within}")
    return missed
