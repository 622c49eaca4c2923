"""The tables of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.metrics import MetricInput
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.gold import Gold, describe_gold
from plant_cli.evaluation.measures import Evaluation, Score
from plant_cli.evaluation.systems import CUT, EVIDENCE_CUT, System
from plant_cli.network.cuts import CutEvidence


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Under what conditions a system was evaluated.

    Args:
        unknown: predicted labels that the corpus has nowhere.
        replicates: resamples behind the intervals, 0 for none.
        level: their coverage.
        seed: of the resamples.
        metric_options: options of metric families that are not as usual, by family.
        removed: pairs of document and label that were to be taken out of the predictions.
    """

    convention: Convention
    gold: Gold
    data: MetricInput
    system: System
    unknown: int
    replicates: int
    level: float
    seed: int
    metric_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    removed: int = 0


def as_json(evaluation: Evaluation, conditions: Conditions) -> dict[str, Any]:
    """The content of metrics.json: fractions from 0 to 1."""
    data, gold, cut = conditions.data, conditions.gold, conditions.system.cut
    scores = evaluation.scores
    in_bins = {m.name for b in evaluation.bins for m in b.metrics}
    return {
        "convention": conditions.convention.name,
        "assumptions": list(conditions.convention.assumptions),
        "system": conditions.system.name,
        "split": gold.split,
        "documents": len(data.top),
        "documents_without_gold": int((gold.sizes == 0).sum()),
        **{name: cut.get(name) for name in CUT},
        **({EVIDENCE_CUT: cut[EVIDENCE_CUT]} if EVIDENCE_CUT in cut else {}),
        "gold": gold.hash,
        "threshold": conditions.system.origin,
        **({"leakage": True} if conditions.system.leaks else {}),
        **({"metric_options": conditions.metric_options} if conditions.metric_options else {}),
        **({"removed_pairs": conditions.removed} if conditions.removed else {}),
        "labels_averaged": evaluation.labels_averaged,
        "labels_never": evaluation.labels_never,
        "seed": conditions.seed,
        "level": conditions.level,
        "metrics": {name: _bounds(score) for name, score in scores.items() if name not in in_bins},
        "not_available": {name: str(missing) for name, missing in evaluation.missing.items()},
        "remarks": list(evaluation.remarks),
        "bins": {
            b.name: {
                "labels": b.labels,
                "present": b.present,
                "assignments": b.assignments,
                "never_assigned": b.never_assigned,
                **{m.name.removesuffix(f"[{b.name}]"): _bounds(scores[m.name]) for m in b.metrics if m.name in scores},
            }
            for b in evaluation.bins
        },
    }


def intervals_as_json(evaluation: Evaluation, conditions: Conditions) -> dict[str, Any]:
    """The content of intervals.json: how the intervals were made, and the spread of the resamples."""
    return {
        "method": "percentiles over documents drawn with replacement; averages over labels moved back by the resamples' bias",
        "level": conditions.level,
        "replicates": conditions.replicates,
        "seed": conditions.seed,
        "intervals": {
            s.name: {"low": s.low, "high": s.high, "standard_error": s.spread} for s in evaluation.scores.values() if s.low is not None
        },
    }


def _bounds(score: Score) -> dict[str, float | None]:
    return {"value": score.value, "low": score.low, "high": score.high}


def make_tables(evaluation: Evaluation, conditions: Conditions, remarks: Sequence[str] = ()) -> list[Table]:
    """The metrics, and the bins of training frequency when any metric of them was chosen.

    Args:
        evaluation: what was computed.
        conditions: under what conditions.
        remarks: further notes under the metrics.
    """
    in_bins = {m.name for b in evaluation.bins for m in b.metrics}
    overall = [s for s in evaluation.scores.values() if s.name not in in_bins]
    columns = [Column(name="metric"), *(Column(name=name, kind="points") for name in ("value", "low", "high"))]
    tables = []
    if overall:
        rows = [[s.name, s.value, s.low, s.high] for s in overall]
        tables.append(
            Table(
                title=f"Metrics on {conditions.gold.split}", columns=columns, rows=rows, notes=[*_notes(evaluation, conditions), *remarks]
            )
        )
    if in_bins & set(evaluation.scores):
        tables.append(_bin_table(evaluation, describe_conditions(conditions)))
    return tables


def describe_conditions(conditions: Conditions) -> str:
    """Documents, labels, convention, resamples and seed in one line, for a table beside that of the metrics."""
    resamples = f"{conditions.replicates} resamples of the documents, " if conditions.replicates else ""
    drawn = f"{100 * conditions.level:g}% intervals from {resamples}" if resamples else ""
    return f"{describe_gold(conditions.gold, conditions.convention)}; {drawn}seed {conditions.seed}"


def _bin_table(evaluation: Evaluation, said: str) -> Table:
    scores = evaluation.scores
    kinds = [k for k in ("R@10", "R@50", "macro-F1-present") if any(f"{k}[{b.name}]" in scores for b in evaluation.bins)]
    columns = [
        Column(name="training documents"),
        *(Column(name=n, kind="count") for n in ("labels", "present", "assignments", "never assigned")),
    ]
    columns += [Column(name=f"{kind}{part}", kind="points") for kind in kinds for part in ("", " low", " high")]
    rows: list[list[Cell]] = []
    for b in evaluation.bins:
        row: list[Cell] = [b.name, b.labels, b.present, b.assignments, b.never_assigned]
        for kind in kinds:
            score = scores.get(f"{kind}[{b.name}]")
            row += [score.value, score.low, score.high] if score else [None, None, None]
        rows.append(row)
    notes = ["recall is pooled over the assignments of a bin; bin 0 holds labels that no training document has", said]
    return Table(title="By training documents of the label", columns=columns, rows=rows, notes=notes)


def _notes(evaluation: Evaluation, conditions: Conditions) -> list[str]:
    data, gold = conditions.data, conditions.gold
    without = int((gold.sizes == 0).sum())
    averaged = ", ".join(f"{name} over {count} labels" for name, count in evaluation.labels_averaged.items())
    outside = int(gold.matrix[:, np.flatnonzero(gold.train_counts == 0)].nnz)
    never = evaluation.labels_never
    notes = [
        f"convention {conditions.convention.name}: {'; '.join(conditions.convention.assumptions)}",
        f"{len(data.top)} documents, {without} without gold; {gold.matrix.nnz} gold assignments, {outside} of labels unseen in train",
        f"{describe_gold(gold, conditions.convention)}: {averaged}; {conditions.system.origin}",
        f"of {never['counted']} labels of train {never['assigned']} are never assigned, {never['listed']} are in no list of predictions",
        *evaluation.remarks,
        *(f"not available: {name} ({missing})" for name, missing in evaluation.missing.items()),
    ]
    if conditions.replicates:
        drawn = f"{conditions.replicates} resamples of the documents, seed {conditions.seed}"
        notes.append(f"{100 * conditions.level:g}% intervals from {drawn}")
    else:
        notes.append(f"no intervals (--bootstrap 0); seed {conditions.seed}")
    notes += [f"options of {family}: {show_options(given)}" for family, given in conditions.metric_options.items()]
    cut = conditions.system.cut
    documents, tokens = (cut.get(name, 0.0) for name in CUT)
    if documents:
        lost = f"; {CutEvidence(**cut[EVIDENCE_CUT])}" if EVIDENCE_CUT in cut else ""
        notes.append(f"{documents:.1%} of the documents are longer than the model's limit: {tokens:.1%} of all tokens were not read{lost}")
    if conditions.removed:
        notes.append(f"{conditions.removed} pairs of document and label do not count: they were taken out of the predictions")
    if conditions.system.leaks:
        notes.append("LEAKAGE: validation and test documents were seen in training (plant mig --allow-leakage); these figures are too good")
    if conditions.unknown:
        notes.append(f"{conditions.unknown} predicted labels are unknown to the corpus: each keeps its rank and counts as wrong")
    return notes


def show_options(options: Mapping[str, Any]) -> str:
    """Options of a family of metrics in words: `a 0.5, b 0.4`."""
    return ", ".join(f"{name} {value}" for name, value in options.items())
