"""An evaluation as metrics.json, intervals.json and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from plant_cli.api.context import Cell, Column, Table
from plant_cli.evaluation.counters import NOT_KEPT
from plant_cli.evaluation.gold import describe_gold
from plant_cli.evaluation.measures import Conditions, Evaluation
from plant_cli.evaluation.results import Bound, MarkedWords
from plant_cli.evaluation.systems import CUT_FIELDS, EVIDENCE_CUT
from plant_cli.scoring.cuts import CutEvidence
from plant_cli.scoring.predictions import ALL_PARTS

PART_METRICS = ("P@1", "P@5", "PSP@5", "R@10[1-5]")  # of each part of a model
IN_BINS = ("R@10", "R@50", "macro-F1-present")


def record_metrics(evaluation: Evaluation, conditions: Conditions) -> dict[str, Any]:
    """The content of metrics.json: fractions from 0 to 1."""
    gold, cut, scores = conditions.gold, conditions.system.cut, evaluation.scores
    in_bins = {m.name for b in evaluation.bins for m in b.metrics}
    return {
        "convention": conditions.convention.name,
        "assumptions": list(conditions.convention.assumptions),
        "system": conditions.system.name,
        "split": gold.split,
        "documents": len(conditions.data.top),
        "documents_without_gold": int((gold.sizes == 0).sum()),
        **{name: cut.get(name) for name in CUT_FIELDS},
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
        "metrics": {
            name: score.model_dump() for name, score in scores.items() if name not in in_bins
        },
        "not_available": {
            name: f"{NOT_KEPT}; {remedy}" for name, remedy in evaluation.missing.items()
        },
        "remarks": list(evaluation.remarks),
        "bins": {
            b.name: {
                **b.counts,
                **{
                    m.name.removesuffix(f"[{b.name}]"): scores[m.name].model_dump()
                    for m in b.metrics
                    if m.name in scores
                },
            }
            for b in evaluation.bins
        },
    }


def record_intervals(evaluation: Evaluation, conditions: Conditions) -> dict[str, Any]:
    """The content of intervals.json: how the intervals were made, and the spread of the
    resamples.
    """
    return {
        "method": "percentiles over documents drawn with replacement; averages over labels moved "
        "back by the resamples' bias",
        "level": conditions.level,
        "replicates": conditions.replicates,
        "seed": conditions.seed,
        "intervals": {
            name: {
                "low": evaluation.scores[name].low,
                "high": evaluation.scores[name].high,
                "standard_error": spread,
            }
            for name, spread in evaluation.spreads.items()
        },
    }


def make_metric_tables(
    evaluation: Evaluation,
    conditions: Conditions,
    remarks: Sequence[str] = (),
    parts: Mapping[str, Mapping[str, Bound]] | None = None,
) -> list[Table]:
    """The metrics, the bins of training frequency when any metric of them was chosen, and the parts
    of the model where they were measured.

    `remarks`: further notes under the metrics.
    """
    scores, summary = evaluation.scores, describe_conditions(conditions)
    in_bins = {m.name for b in evaluation.bins for m in b.metrics}
    overall: list[list[Cell]] = [
        [name, s.value, s.low, s.high] for name, s in scores.items() if name not in in_bins
    ]
    tables = []
    if overall:
        columns = [
            Column(name="metric"),
            *(Column(name=name, kind="points") for name in ("value", "low", "high")),
        ]
        notes = [*_notes(evaluation, conditions), *(() if evaluation.chosen else remarks)]
        tables.append(
            Table(
                title=f"Metrics on {conditions.gold.split}",
                columns=columns,
                rows=overall,
                notes=notes,
            )
        )
    if in_bins & set(scores):
        kinds = [
            kind for kind in IN_BINS if any(f"{kind}[{b.name}]" in scores for b in evaluation.bins)
        ]
        counts = [
            Column(name=name, kind="count")
            for name in ("labels", "present", "assignments", "never assigned")
        ]
        columns = [Column(name="training documents"), *counts, *bound_columns(kinds)]
        rows = [
            [
                b.name,
                *b.counts.values(),
                *bound_cells({kind: scores.get(f"{kind}[{b.name}]") for kind in kinds}),
            ]
            for b in evaluation.bins
        ]
        notes = [
            "recall is pooled over the assignments of a bin; bin 0 holds labels that no training "
            "document has",
            summary,
        ]
        tables.append(
            Table(
                title="By training documents of the label", columns=columns, rows=rows, notes=notes
            )
        )
    if parts:
        rows = [
            [name, *bound_cells({kind: one.get(kind) for kind in PART_METRICS})]
            for name, one in {**parts, ALL_PARTS: scores}.items()
        ]
        notes = [
            "each part with weights of its own; compare them pairwise with `plant significance "
            "finetune FOLDER/parts/NAME.parquet`",
            summary,
        ]
        tables.append(
            Table(
                title="Each part alone",
                columns=[Column(name="part"), *bound_columns(PART_METRICS)],
                rows=rows,
                notes=notes,
            )
        )
    return tables


def tabulate_marks(of: str, marks: MarkedWords, notes: Sequence[str]) -> Table:
    """The words that explain labels, by how they were chosen: what scores lose, where it was
    measured, and agreement with gold spans.
    """
    measured = any(one.without.value is not None for one in marks.figures.values())
    columns = [
        Column(name=name, kind="exact")
        for name in ("lost without them", "lost with them alone")
        if measured
    ]
    columns += [Column(name=name, kind="points") for name in ("precision", "recall", "F1")]
    network = (
        "network: what the score loses without each word, or else attention; gradient: its "
        "length; relevance: that of `plant mig`"
    )
    rows: list[list[Cell]] = []
    for words, one in marks.figures.items():
        lost = [
            None if bound.value is None else round(bound.value, 2)
            for bound in (one.without, one.alone)
            if measured
        ]
        interval = (
            ""
            if one.f1.low is None or one.f1.high is None
            else f"[{100 * one.f1.low:.1f}, {100 * one.f1.high:.1f}]"
        )
        rows.append([words, *lost, one.precision.value, one.recall.value, one.f1.value, interval])
    return Table(
        title=f"Marked words of {of}: {marks.pairs:,} gold labels of {marks.documents:,} documents",
        columns=[Column(name="words"), *columns, Column(name="interval of F1")],
        rows=rows,
        notes=[
            *notes,
            "precision, recall and F1: of words, against gold spans; the mean over labels; 95% "
            "interval over documents",
            "marked words: those that an explanation marks; by …: those of most weight by that "
            "part of the model",
            *([network] if any(words.endswith(" by network") for words in marks.figures) else []),
        ],
    )


def bound_columns(names: Sequence[str]) -> list[Column]:
    """Columns of metrics, each with its interval."""
    return [
        Column(name=f"{name}{bound}", kind="points")
        for name in names
        for bound in ("", " low", " high")
    ]


def bound_cells(scores: Mapping[str, Bound | None]) -> list[Cell]:
    """The cells of these columns."""
    return [
        value for score in scores.values() for value in ((score or Bound()).model_dump().values())
    ]


def describe_conditions(conditions: Conditions) -> str:
    """Documents, labels, convention, resamples and seed in one line, for a table beside that of
    the metrics.
    """
    resamples = (
        f"{conditions.replicates} resamples of the documents, " if conditions.replicates else ""
    )
    drawn = f"{100 * conditions.level:g}% intervals from {resamples}" if resamples else ""
    return f"{describe_gold(conditions.gold, conditions.convention)}; {drawn}seed {conditions.seed}"


def _concerns(assumption: str, names: Iterable[str]) -> bool:
    """Whether an assumption of a convention is about one of these metrics."""
    subject = assumption.split(" ")[0]
    starts = {
        "P@k": ("P@",),
        "R@k": ("R@",),
        "F1@k": ("F1@",),
        "ideals": ("nDCG", "PSP"),
        "macro-F1": ("macro-F1",),
        "PSP": ("PSP",),
    }.get(subject, ("",))
    return any(name.startswith(starts) for name in names)


def _notes(evaluation: Evaluation, conditions: Conditions) -> list[str]:
    data, gold, never = conditions.data, conditions.gold, evaluation.labels_never
    without = int((gold.sizes == 0).sum())
    of_labels = {
        name: count
        for name, count in evaluation.labels_averaged.items()
        if name in evaluation.scores
    }
    averaged = "".join(f"{name} over {count} labels; " for name, count in of_labels.items())
    outside = int(gold.matrix[:, np.flatnonzero(gold.train_counts == 0)].nnz)
    assumed = [
        text
        for text in conditions.convention.assumptions
        if not evaluation.chosen or _concerns(text, evaluation.scores)
    ]
    notes = [
        f"convention {conditions.convention.name}: {'; '.join(assumed)}",
        f"{describe_gold(gold, conditions.convention)}; {averaged}{conditions.system.origin}",
        *evaluation.remarks,
    ]
    if not evaluation.chosen:
        notes[1:1] = [
            f"{len(data.top)} documents, {without} without gold; {gold.matrix.nnz} gold "
            f"assignments, {outside} of labels unseen in train"
        ]
        notes += [
            f"of {never['counted']} labels of train {never['assigned']} are never assigned, "
            f"{never['listed']} are in no list",
            *(
                f"not available: {name} ({NOT_KEPT}; {remedy})"
                for name, remedy in evaluation.missing.items()
            ),
        ]
    if conditions.replicates:
        drawn = f"{conditions.replicates} resamples of the documents, seed {conditions.seed}"
        notes.append(f"{100 * conditions.level:g}% intervals from {drawn}")
    else:
        notes.append(f"no intervals (--bootstrap 0); seed {conditions.seed}")
    notes += [
        f"options of {family}: {', '.join(f'{name} {value}' for name, value in options.items())}"
        for family, options in conditions.metric_options.items()
    ]
    cut = conditions.system.cut
    documents, tokens = (cut.get(name, 0.0) for name in CUT_FIELDS)
    if documents:
        lost = f"; {CutEvidence(**cut[EVIDENCE_CUT])}" if EVIDENCE_CUT in cut else ""
        notes.append(
            f"{documents:.1%} of the documents are longer than the model's limit: {tokens:.1%} of "
            f"all tokens were not read{lost}"
        )
    if conditions.removed:
        notes.append(
            f"{conditions.removed} pairs of document and label do not count: they were taken out "
            "of the predictions"
        )
    if conditions.system.leaks:
        notes.append(
            "LEAKAGE: validation and test documents were seen in training (plant mig "
            "--allow-leakage); these figures are too good"
        )
    if conditions.unknown:
        notes.append(
            f"{conditions.unknown} predicted labels are unknown to the corpus: each keeps its "
            "rank and counts as wrong"
        )
    return notes


def show_bound(bound: Bound | None, undefined: str = "–") -> str:
    """A value with its interval in brackets, in points."""
    if bound is None or bound.value is None:
        return undefined
    value = f"{100 * bound.value:.1f}"
    return (
        value
        if bound.low is None or bound.high is None
        else f"{value} [{100 * bound.low:.1f}, {100 * bound.high:.1f}]"
    )
