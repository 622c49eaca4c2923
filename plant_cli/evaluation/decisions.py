"""What thresholds for a target lead to, as tables for a person and as decisions.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from plant_cli.api.output import Cell, Column, Table
from plant_cli.artefacts.thresholds import ASSIGN, REVIEW
from plant_cli.evaluation.bands import Decision, Figure, Outcome
from plant_cli.evaluation.conventions import CONVENTIONS, ConventionName
from plant_cli.evaluation.cuts import ENOUGH, OWN
from plant_cli.evaluation.gold import Gold, describe_gold
from plant_cli.evaluation.targets import Aim, parse_targets

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
