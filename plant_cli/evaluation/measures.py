"""Metrics of one system, by bins of labels, by parts of the model, by label and by document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api import Metric, MetricInput, MetricValue, Reporter, WeightedMetric
from plant_cli.data.files import replacing
from plant_cli.data.labels import LABEL_RANGES, Bounds
from plant_cli.data.parquet import write_parquet
from plant_cli.data.tables import guard_cells
from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.bootstrap import (
    Advance,
    averages_labels,
    bound_proportion,
    count_measured,
    interval,
    jackknife,
    leave_out,
    measure_and_resample,
)
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.counters import (
    Families,
    Floats,
    average_present_f1,
    choose,
    compute_families,
    compute_value,
    count_assignments,
    divide,
    find_hits,
    find_missing,
    ratio_of_sums,
    score_f1,
)
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.results import Bound
from plant_cli.evaluation.systems import System
from plant_cli.scoring.predictions import list_parts

TABLE_CUT_OFFS = (10, 50)
OF_PARTS = (
    "P@1",
    "P@3",
    "P@5",
    "nDCG@5",
    "PSP@1",
    "PSP@5",
    "R@10",
    "R@50",
    "R@10[1-5]",
    "R@50[1-5]",
)


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Labels of one range of training frequency."""

    # the range, such as `1-5`; `0` holds the labels of the split that no training document has
    name: str
    counts: dict[str, int]
    """How many `labels` are in it, how many of them some document of the split has (`present`),
    gold `assignments` of them, and how many of its labels no document was assigned, right or
    wrong (`never_assigned`).
    """
    metrics: tuple[MetricValue, ...]
    """Named with the range, such as `R@10[1-5]`: pooled recall over its assignments, macro-F1
    over its labels present.
    """


def measure_bins(data: MetricInput, bounds: Bounds = LABEL_RANGES) -> list[Bin]:
    """The bins that hold any label; `bounds` has the name, least and most training documents of
    each (both included).
    """
    counters = count_assignments(data)
    width = data.gold.shape[1]
    top = data.top[:, : max(TABLE_CUT_OFFS)]
    hits = find_hits(top, data.gold)
    assigned = np.asarray(counters[:, width : 2 * width].sum(axis=0)) > 0
    bins = []
    for name, least, most in bounds:
        inside = (data.train_counts >= least) & (data.train_counts <= most)
        if not inside.any():
            continue
        gold = (data.gold @ inside.astype(np.int64)).astype(np.float64)
        right = hits & inside[top]
        columns = np.flatnonzero(inside)
        recalls = [
            ratio_of_sums(f"R@{k}[{name}]", right[:, :k].sum(axis=1).astype(np.float64), gold)
            for k in TABLE_CUT_OFFS
        ]
        f1 = MetricValue(
            name=f"macro-F1-present[{name}]",
            contributions=counters[
                :, np.concatenate([columns, columns + width, columns + 2 * width])
            ],
            combine=average_present_f1,
        )
        counts = {
            "labels": int(inside.sum()),
            "present": int((data.gold.sum(axis=0)[inside] > 0).sum()),
            "assignments": int(gold.sum()),
            "never_assigned": int((inside & ~assigned).sum()),
        }
        bins.append(Bin(name=name, counts=counts, metrics=(*recalls, f1)))
    return bins


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Every metric of one system on one split."""

    scores: dict[str, Bound]  # by name, those of bins too (`R@10[1-5]`), in the order to show
    spreads: dict[
        str, float
    ]  # standard deviations of the resamples, by name, where they define the metric
    overall: Sequence[Metric]  # the values behind the scores that are not of one bin
    bins: Sequence[Bin] = field(default=())
    labels_averaged: dict[str, int] = field(
        default_factory=dict
    )  # how many labels each average over labels averages
    labels_never: dict[str, int] = field(default_factory=dict)
    """How many labels of train there are (`counted`), and how many of them were never
    `assigned`, and never `listed`.
    """
    missing: Mapping[str, str] = field(
        default_factory=dict
    )  # what to do to have metrics of scores that were not kept, by name
    remarks: Sequence[str] = field(default=())  # what a reader of the values should know
    chosen: bool = False  # whether only some metrics were asked for


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Under what conditions a system was evaluated."""

    convention: Convention
    gold: Gold
    data: MetricInput
    system: System
    unknown: int  # predicted labels that the corpus has nowhere
    replicates: int  # resamples behind the intervals, 0 for none
    level: float  # their coverage
    seed: int  # of the resamples
    metric_options: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # those that are not as usual, by family
    removed: int = 0  # pairs of document and label that were to be taken out of the predictions


def evaluate(
    data: MetricInput,
    families: Families,
    *,
    wanted: Sequence[str] = (),
    required: Sequence[str] = (),
    replicates: int = 0,
    level: float = 0.95,
    generator: np.random.Generator,
    advance: Advance | None = None,
    remedy: str = "plant predict --auc --force",
    warn: Callable[[str], None] | None = None,
) -> Evaluation:
    """Compute all metrics, and intervals from `replicates` resamples of the documents (0: none).

    Args:
        wanted: names to compute (`P@7`, `R@10[1-5]`); none: all.
        required: names to compute in any case.
        remedy: what to do to have the metrics that need every score.
        warn: receives a line about each family that fails and is passed over (None: it is an
            error).
    """
    overall = compute_families(families, data, [*wanted, *required], warn)
    bins = measure_bins(data)
    missing = find_missing(families, data, remedy)
    everything = [*overall, *(m for b in bins for m in b.metrics)]
    named = choose(everything, [*wanted, *required], missing)
    chosen = named if wanted else everything
    counted, trained = data.counted, data.train_counts > 0
    listed = data.top >= 0
    never = {
        name: np.setdiff1d(np.flatnonzero(trained), data.top[which])
        for name, which in (("assigned", data.assigned & listed), ("listed", listed))
    }
    scores, spreads = score_metrics(chosen, replicates, level, generator, advance)
    return Evaluation(
        scores=scores,
        spreads=spreads,
        overall=[m for m in overall if m.name in {m.name for m in chosen}],
        bins=bins,
        labels_averaged={
            "macro-F1": int(counted.sum()),
            "macro-F1-present": int((counted & (data.gold.sum(axis=0) > 0)).sum()),
            **{
                m.name: m.labels
                for m in chosen
                if isinstance(m, WeightedMetric) and m.labels is not None
            },
        },
        labels_never={
            "counted": int(trained.sum()),
            **{name: int(labels.size) for name, labels in never.items()},
        },
        missing=missing,
        remarks=[m.remark for m in chosen if isinstance(m, WeightedMetric) and m.remark],
        chosen=bool(wanted),
    )


def score_metrics(
    metrics: Sequence[Metric],
    replicates: int,
    level: float,
    generator: np.random.Generator,
    advance: Advance | None = None,
) -> tuple[dict[str, Bound], dict[str, float]]:
    """The value and interval of each metric, and the standard deviation of its resamples, by
    name.
    """
    if replicates == 0:
        return {m.name: Bound.of(compute_value(m)) for m in metrics}, {}
    averages = [m for m in metrics if averages_labels(m)]
    errors = {
        m.name: jackknife(values) for m, values in zip(averages, leave_out(averages), strict=True)
    }
    scores, spreads = {}, {}
    for metric, value, drawn in zip(
        metrics, *measure_and_resample(metrics, replicates, generator, advance), strict=True
    ):
        low, high = interval(
            value,
            drawn,
            level,
            error=errors.get(metric.name),
            documents=count_measured(metric),
            within=(0.0, 1.0),
        )
        scores[metric.name] = Bound.of(float(value), low, high)
        if not np.isnan(low):
            spreads[metric.name] = float(np.std(drawn[~np.isnan(drawn)]))
    return scores, spreads


def measure_parts(
    folder: Path,
    conditions: Conditions,
    families: Families,
    numbering: Numbering,
    known: Collection[str],
    reporter: Reporter,
) -> dict[str, dict[str, Bound]]:
    """Metrics of each part of a model alone, by its name, on the same resamples; empty if `plant
    predict` kept none.

    Args:
        folder: of the predictions.
        known: names of the metrics of all parts together; a bin without labels has none.
    """
    parts, wanted = {}, [name for name in OF_PARTS if name in known]
    for name, path in list_parts(folder).items():
        predictions = read_predictions(path, conditions.gold, reporter, numbering)
        data = build_input(predictions, conditions.gold, np.inf, conditions.convention)
        parts[name] = evaluate(
            data,
            families,
            wanted=wanted,
            replicates=conditions.replicates,
            level=conditions.level,
            generator=np.random.default_rng(conditions.seed),
            warn=lambda _: None,
        ).scores
    return parts


def bound_f1(tp: Floats, assigned: Floats, gold: Floats, level: float) -> tuple[Floats, Floats]:
    """An interval of F1 from true positives, assigned and gold documents of labels [n]; NaN where a
    label has neither of these.

    F1 = 2 J / (1 + J), where J is the share of true positives among the documents that have the
    label as gold, assigned or both. J is a proportion, whose Wilson interval holds for few
    documents, too: drawing documents again would call a label with one hit certain.
    """
    low, high = bound_proportion(tp, assigned + gold - tp, level)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def write_label_table(path: Path, data: MetricInput, gold: Gold, level: float) -> None:
    """A row for each label as tab-separated text: counts, precision, recall, F1 and its
    interval.
    """
    sums = np.asarray(count_assignments(data).sum(axis=0), dtype=np.float64).reshape(1, -1)
    tp, assigned, positives = (part[0] for part in np.split(sums, 3, axis=1))
    low, high = bound_f1(tp, assigned, positives, level)
    frame = pl.DataFrame(
        {
            "label": gold.labels,
            "title": pl.Series(gold.titles, dtype=pl.String),
            "train_count": gold.train_counts,
            "test_count": positives.astype(np.int64),
            "tp": tp.astype(np.int64),
            "fp": (assigned - tp).astype(np.int64),
            "fn": (positives - tp).astype(np.int64),
            "precision": divide(tp, assigned),
            "recall": divide(tp, positives),
            "F1": score_f1(tp, assigned, positives),
            "F1_low": pl.Series(low).fill_nan(None),
            "F1_high": pl.Series(high).fill_nan(None),
        }
    )
    with replacing(path) as temporary:
        guard_cells(frame).write_csv(temporary, separator="\t", float_precision=6)


def write_document_table(
    path: Path,
    data: MetricInput,
    metrics: Sequence[Metric],
    doc_ids: Sequence[str],
    conditions: str = "",
) -> None:
    """Counts, precision, recall and F1 of each document as Parquet, and the metrics of documents,
    null where undefined.

    `conditions`: which documents and labels count, by which convention and with which seed; kept in
    the metadata of the file.
    """
    assigned = data.assigned
    tp, chosen, gold = (
        (assigned & find_hits(data.top, data.gold)).sum(axis=1),
        assigned.sum(axis=1),
        data.gold.sum(axis=1),
    )
    counts = {"gold": gold, "assigned": chosen, "tp": tp}
    shares = {
        "precision": divide(tp, chosen),
        "recall": divide(tp, gold),
        "F1": divide(2 * tp, chosen + gold),
    }
    values = {
        m.name: m.per_document
        for m in metrics
        if isinstance(m, MetricValue) and m.per_document is not None
    }
    columns = {name: pl.Series(documents).fill_nan(None) for name, documents in values.items()}
    frame = pl.DataFrame({"doc_id": list(doc_ids), **counts, **shares, **columns})
    write_parquet(frame, path, {"conditions": conditions})
