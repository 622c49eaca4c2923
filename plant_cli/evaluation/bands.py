"""Thresholds that assign, ask or leave out: chosen, judged and described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.errors import DataError
from plant_cli.api.metrics import MetricValue
from plant_cli.evaluation.aligned import Predictions
from plant_cli.evaluation.bootstrap import count_documents, interval, resample
from plant_cli.evaluation.conventions import CONVENTIONS, ConventionName
from plant_cli.evaluation.counters import Booleans, Floats, Integers, compute_value, find_hits, ratio_of_sums
from plant_cli.evaluation.gold import Gold, describe_gold
from plant_cli.evaluation.measures import none_if_undefined
from plant_cli.evaluation.targets import Aim, Target, parse_targets
from plant_cli.evaluation.threshold_search import ENOUGH, NEVER, OWN, Cuts, choose_cuts
from plant_cli.scoring.decisions import ASSIGN, REJECT, REVIEW

FOLDS = 5
AUTOMATIC = "automatic"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """From which scores labels are assigned, and shown to a person.

    Args:
        assign: cuts of the labels that are assigned without a person.
        review: the score from which a label that is not assigned is reviewed [L]; infinite: never.
    """

    assign: Cuts
    review: Floats


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A share (or labels per document), with its interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Band:
    """What is in one band.

    Args:
        labels: per document.
        precision: the share of them that is right.
        recall: the share of all gold labels that is in it; the gold labels that no list holds are rejected.
        expected_precision, expected_recall: the same if the scores were probabilities of listed labels; None where they are not.
    """

    labels: Figure
    precision: Figure
    recall: Figure
    expected_precision: float | None
    expected_recall: float | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What decisions lead to on one split.

    Args:
        bands: assign, review and reject.
        automatic: the share of the assigned and reviewed labels that is assigned without a person.
        untouched: the share of documents with nothing to review.
    """

    bands: Mapping[str, Band]
    automatic: Figure
    untouched: Figure


def decide(predictions: Predictions, gold: Gold, aim: Aim, review: float | None) -> Decision:
    """Choose both cuts on documents with known labels.

    Args:
        predictions: of validation.
        gold: of the same documents.
        aim: what is to be reached.
        review: where no recall is asked for, the probability from which a label is reviewed; None: no label is.

    Raises:
        DataError: no document has a label of train, or the target cannot be reached.
    """
    top, scores, counts = predictions.top, predictions.scores, _known_counts(gold)
    assign = choose_cuts(top, scores, gold.matrix, counts, aim.assign)
    if aim.review is not None:
        return Decision(assign=assign, review=choose_cuts(top, scores, gold.matrix, counts, aim.review).values)
    return Decision(assign=assign, review=np.full(len(counts), NEVER if review is None else review))


def refuse_unreachable(predictions: Predictions, gold: Gold, aim: Aim, where: str) -> None:
    """Refuse a target that no group of labels can reach, and say what can be.

    Args:
        predictions: of validation.
        gold: of the same documents.
        aim: what is asked for.
        where: the file of the predictions, for the message.

    Raises:
        DataError: with the best that can be reached.
    """
    listed = ~np.isneginf(predictions.scores)
    hits = find_hits(predictions.top, gold.matrix)
    counts = _known_counts(gold)
    for target in (aim.assign, aim.review):
        if target is None or target.least is None:
            continue
        if target.measure == "recall":
            possible = int(gold.matrix[:, : len(counts)].sum())
            best = int(hits.sum()) / max(1, possible)
            if best >= target.least:
                continue
            said = f"{int(hits.sum())} of the {possible} gold labels that train has are in the lists of predictions: a recall of {best:.3f}"
            raise _unreachable(target, said, where, ", or predict longer lists")
        if not choose_cuts(predictions.top, predictions.scores, gold.matrix, counts, target).reached.any():
            raise _unreachable(
                target,
                _best_precision(predictions.scores[listed], hits[listed]),
                where,
                ", or have a person review what is shown: --target f1",
            )


def _best_precision(scores: Floats, hits: Booleans) -> str:
    order = np.argsort(-scores, kind="stable")
    right = np.cumsum(hits[order])
    ends = np.flatnonzero(np.append(np.diff(scores[order]) < 0, True))
    shares = right[ends] / (ends + 2.0)  # as if the next label were wrong, as the cuts count
    place = int(np.argmax(shares))
    best = int(ends[place])
    share = f"{right[best] / (best + 1):.3f}, or {shares[place]:.3f} if the next one is wrong"
    return f"the best cut on validation assigns {best + 1} labels of which {right[best]} are right ({share})"


def _unreachable(target: Target, said: str, where: str, todo: str) -> DataError:
    return DataError(
        f"the target {target} cannot be reached: {said}",
        where=where,
        expected="a target that predictions of validation can reach",
        todo=f"ask for less than {target}{todo}",
    )


def _known_counts(gold: Gold) -> Integers:
    """Training documents of the labels of the index [L]."""
    return gold.train_counts[: gold.indexed]


def find_bands(predictions: Predictions, decision: Decision) -> tuple[Booleans, Booleans]:
    """Which predictions are assigned, and which are reviewed [N, K].

    Args:
        predictions: of any split.
        decision: where the cuts are.
    """
    top, scores = predictions.top, predictions.scores
    known = (top >= 0) & (top < len(decision.review))
    inside = np.where(known, top, 0)
    assigned = known & (scores >= decision.assign.values[inside])
    return assigned, known & (scores >= decision.review[inside]) & ~assigned


def _take(predictions: Predictions, rows: Integers) -> Predictions:
    return replace(predictions, top=predictions.top[rows], scores=predictions.scores[rows])


def decide_left_out(predictions: Predictions, gold: Gold, aim: Aim, review: float | None, seed: int) -> tuple[Booleans, Booleans]:
    """The bands of validation [N, K], each document by cuts that were chosen without its fifth of the documents.

    Args:
        predictions: of validation.
        gold: of the same documents.
        aim: what is to be reached.
        review: see `decide`.
        seed: of how documents are dealt.
    """
    documents, counts = len(predictions.top), _known_counts(gold)
    folds = np.random.default_rng(seed).permutation(documents) % min(FOLDS, documents)
    assigned, reviewed = np.zeros(predictions.top.shape, dtype=bool), np.zeros(predictions.top.shape, dtype=bool)
    for fold in range(min(FOLDS, documents)):
        rest, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        known = replace(gold, matrix=gold.matrix[rest])
        if not known.matrix[:, : len(counts)].nnz:  # nothing to choose by: nothing is decided without a person
            continue
        decision = decide(_take(predictions, rest), known, aim, review)
        assigned[own], reviewed[own] = find_bands(_take(predictions, own), decision)
    return assigned, reviewed


def measure_bands(
    bands: tuple[Booleans, Booleans], predictions: Predictions, gold: Gold, *, replicates: int, level: float, seed: int
) -> Outcome:
    """How often each band is right, what share of the gold labels it holds, and its labels per document.

    Args:
        bands: which predictions are assigned and reviewed [N, K].
        predictions: of a split.
        gold: of the same documents; labels unseen in train count as rejected.
        replicates: resamples of the documents behind the intervals; 0: none.
        level: their coverage.
        seed: of the resamples.
    """
    masks = _split_bands(bands, predictions)
    hits = find_hits(predictions.top, gold.matrix)
    labels = {name: mask.sum(axis=1).astype(np.float64) for name, mask in masks.items()}
    right = {name: (mask & hits).sum(axis=1).astype(np.float64) for name, mask in masks.items()}
    sizes = gold.sizes.astype(np.float64)
    held = {**right, REJECT: sizes - right[ASSIGN] - right[REVIEW]}
    ones = np.ones(len(sizes))
    metrics = [ratio_of_sums(f"{name} {what}", *parts) for name in masks for what, parts in (
        ("labels", (labels[name], ones)), ("precision", (right[name], labels[name])), ("recall", (held[name], sizes))
    )]  # fmt: skip
    metrics.append(ratio_of_sums(AUTOMATIC, labels[ASSIGN], labels[ASSIGN] + labels[REVIEW]))
    metrics.append(ratio_of_sums("untouched", (labels[REVIEW] == 0).astype(np.float64), ones))
    drawn = resample(metrics, replicates, np.random.default_rng(seed)) if replicates else np.zeros((len(metrics), 0))
    figures = [_bound(m, values, level, share=not m.name.endswith("labels")) for m, values in zip(metrics, drawn, strict=True)]
    expected = _expect(masks, predictions)
    found = {
        name: Band(labels=figures[3 * i], precision=figures[3 * i + 1], recall=figures[3 * i + 2], **expected[name])
        for i, name in enumerate(masks)
    }
    return Outcome(bands=found, automatic=figures[-2], untouched=figures[-1])


def _split_bands(bands: tuple[Booleans, Booleans], predictions: Predictions) -> dict[str, Booleans]:
    assigned, reviewed = bands
    return {ASSIGN: assigned, REVIEW: reviewed, REJECT: ~np.isneginf(predictions.scores) & ~assigned & ~reviewed}


def _bound(metric: MetricValue, drawn: Floats, level: float, *, share: bool) -> Figure:
    value = compute_value(metric)
    if not drawn.size:
        return Figure(value=none_if_undefined(value))
    within, documents = ((0.0, 1.0), count_documents(metric)) if share else ((0.0, np.inf), None)
    low, high = interval(value, drawn, level, documents=documents, within=within)
    return Figure(value=none_if_undefined(value), low=none_if_undefined(low), high=none_if_undefined(high))


def _expect(masks: Mapping[str, Booleans], predictions: Predictions) -> dict[str, dict[str, float | None]]:
    """What the scores say as probabilities of each band."""
    if not are_probabilities(predictions):
        return {name: {"expected_precision": None, "expected_recall": None} for name in masks}
    total = float(predictions.scores[~np.isneginf(predictions.scores)].sum())
    return {
        name: {
            "expected_precision": float(predictions.scores[mask].mean()) if mask.any() else None,
            "expected_recall": float(predictions.scores[mask].sum()) / total if total else None,
        }
        for name, mask in masks.items()
    }


def are_probabilities(predictions: Predictions) -> bool:
    """Whether all scores lie between 0 and 1."""
    scores = predictions.scores[~np.isneginf(predictions.scores)]
    return bool(len(scores) and scores.min() >= 0 and scores.max() <= 1)


VALIDATION = "validation"
BOUNDS = ("", " low", " high")
CONVENTION: ConventionName = "xmlrepo"  # every document counts, and gold labels unseen in train, too


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What the figures are of.

    Args:
        system: whose predictions, as the user wrote it.
        target: what is to be reached.
        calibrated: whether the scores are probabilities.
        replicates: resamples behind the intervals, 0 for none.
        level: their coverage.
        seed: of the resamples, and of how validation documents are dealt.
    """

    system: str
    target: str
    calibrated: bool
    replicates: int
    level: float
    seed: int


def as_json(
    outcomes: Mapping[str, Outcome], golds: Mapping[str, Gold], decision: Decision, given: Circumstances, positives: Sequence[int]
) -> dict[str, Any]:
    """The content of decisions.json: fractions from 0 to 1, labels per document; null where undefined.

    Args:
        outcomes: by split, validation first.
        golds: the gold labels of these splits.
        decision: the cuts.
        given: what the figures are of.
        positives: validation documents of each label of train [L].
    """
    return {
        **asdict(given),
        "splits": {
            name: {
                "documents": len(golds[name].doc_ids),
                "gold": golds[name].hash,
                "gold_labels": int(golds[name].matrix.nnz),
                "gold_labels_unseen": _count_unseen(golds[name]),
                "automatic": asdict(outcome.automatic),
                "documents_without_review": asdict(outcome.untouched),
                **{band: asdict(found) for band, found in outcome.bands.items()},
            }
            for name, outcome in outcomes.items()
        },
        "thresholds": [
            {"training_documents": name, "labels": labels, "validation_documents": documents, "lowest": low, "highest": high}
            | {"never_assigned": never}
            for name, labels, documents, low, high, never in _summarise_groups(decision, positives)
        ],
    }


def make_tables(
    outcomes: Mapping[str, Outcome], golds: Mapping[str, Gold], decision: Decision, given: Circumstances, positives: Sequence[int]
) -> list[Table]:
    """The bands on each split, and the thresholds by training frequency; for the arguments see `as_json`."""
    return [
        *(_show(name, outcome, golds[name], given) for name, outcome in outcomes.items()),
        _list_groups(decision, positives, given, golds[VALIDATION]),
    ]


def _show(split: str, outcome: Outcome, gold: Gold, given: Circumstances) -> Table:
    columns = [Column(name="band"), Column(name="labels per document", kind="exact")]
    for name in ("precision", "recall"):
        columns += [Column(name=f"{name} expected", kind="points"), *(Column(name=f"{name}{bound}", kind="points") for bound in BOUNDS)]
    rows: list[list[Cell]] = [
        [
            name,
            _round(band.labels.value),
            band.expected_precision,
            *_cells(band.precision),
            band.expected_recall,
            *_cells(band.recall),
        ]
        for name, band in outcome.bands.items()
    ]
    return Table(title=f"Decisions on {split}: {given.target}", columns=columns, rows=rows, notes=_notes(split, outcome, gold, given))


def _notes(split: str, outcome: Outcome, gold: Gold, given: Circumstances) -> list[str]:
    aim = parse_targets(given.target.split())
    shown, load = _percent(outcome.automatic), outcome.bands[REVIEW].labels.value or 0.0
    return [
        *_describe_missed(aim, outcome, given),
        f"{shown} of the labels shown are assigned without a person; {load:.3g} labels of a document are to be reviewed, and "
        f"{_percent(outcome.untouched)} of the documents have none",
        "assign: without a person; review: a person looks; reject: listed, but not shown",
        "precision: the share that is right; recall: the share of gold labels, those of no list and those unseen in train being rejected",
        "by thresholds chosen without each document's fifth of validation"
        if split == VALIDATION
        else "by thresholds chosen on validation alone",
        "expected: by the scores as probabilities; the recall, of the labels that are listed"
        if given.calibrated
        else "nothing is expected: the scores are no probabilities",
        f"{describe_gold(gold, CONVENTIONS[CONVENTION])}; {gold.matrix.nnz} gold assignments, {_count_unseen(gold)} of labels unseen in "
        "train; pooled over documents (micro)",
        f"{100 * given.level:g}% intervals from {given.replicates} resamples of the documents, seed {given.seed}"
        if given.replicates
        else f"no intervals (--bootstrap 0); seed {given.seed}",
    ]


def _describe_missed(aim: Aim, outcome: Outcome, given: Circumstances) -> list[str]:
    """The targets that are not reached on this split, and what is reached; nothing is said of an interval that was not drawn."""
    assign, review = outcome.bands[ASSIGN], outcome.bands[REVIEW]
    reached = {"precision": assign.precision, "recall": assign.recall}
    missed = []
    for target, figure in ((aim.assign, reached.get(aim.assign.measure)), (aim.review, _add(assign.recall, review.recall))):
        if target is None or target.least is None or figure is None:
            continue
        if figure.value is None:
            missed.append(f"NOT REACHED: {target}; no label is assigned")
        elif figure.value < target.least:
            inside = figure.high is not None and figure.high >= target.least
            within = f", though the {100 * given.level:g}% interval holds it" if inside else ""
            missed.append(f"NOT REACHED: {target}; here it is {100 * figure.value:.1f}%{within}")
    return missed


def _add(assigned: Figure, reviewed: Figure) -> Figure:
    """The recall of all that is shown, without an interval: those of the parts do not add up."""
    return Figure(value=(assigned.value or 0.0) + (reviewed.value or 0.0))


def _list_groups(decision: Decision, positives: Sequence[int], given: Circumstances, validation: Gold) -> Table:
    columns = [
        Column(name="training documents"),
        *(Column(name=name, kind="count") for name in ("labels", "validation documents")),
        *(Column(name=name, kind="exact") for name in ("assigned from", "to")),
        Column(name="never assigned", kind="count"),
    ]
    rows: list[list[Cell]] = [[name, labels, documents, *map(_round, cuts), never] for name, labels, documents, *cuts, never in (
        _summarise_groups(decision, positives)
    )]  # fmt: skip
    notes = [
        f"{OWN}: a threshold for each label with {ENOUGH} validation documents or more; the others share one with labels about as frequent",
        "never assigned: labels of which no cut reaches the target on validation",
        f"target {given.target}; chosen on {describe_gold(validation, CONVENTIONS[CONVENTION])}; nothing is drawn at random, no seed",
    ]
    return Table(title="Thresholds", columns=columns, rows=rows, notes=notes)


def _summarise_groups(decision: Decision, positives: Sequence[int]) -> list[tuple[str, int, int, float | None, float | None, int]]:
    """By range of training frequency: labels, their validation documents, lowest and highest cut, and labels that are never assigned."""
    cuts, counts = decision.assign, np.asarray(positives)
    names = np.array(cuts.groups.names)[cuts.groups.of]
    rows = []
    for name in dict.fromkeys(cuts.groups.names):
        inside = names == name
        values = cuts.values[inside]
        real = values[np.isfinite(values)]
        low, high = (float(real.min()), float(real.max())) if real.size else (None, None)
        rows.append((name, int(inside.sum()), int(counts[inside].sum()), low, high, int(values.size - real.size)))
    return rows


def _cells(figure: Figure) -> tuple[float | None, float | None, float | None]:
    return figure.value, figure.low, figure.high


def _percent(figure: Figure) -> str:
    return "none" if figure.value is None else f"{100 * figure.value:.0f}%"


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def _count_unseen(gold: Gold) -> int:
    return int(gold.matrix[:, np.flatnonzero(gold.train_counts == 0)].nnz)
