"""Metrics of one system, by bins of labels, by parts of the model and by document."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api.context import Cell, Column, Reporter, Table
from plant_cli.api.metrics import Metric, MetricInput, MetricValue, WeightedMetric
from plant_cli.data.files import replacing
from plant_cli.data.labels import LABEL_RANGES, Bounds
from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.bootstrap import (
    averages_labels,
    bound_proportion,
    count_documents,
    interval,
    jackknife,
    leave_out,
    resample,
    weigh,
)
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.counters import (
    Families,
    Floats,
    Missing,
    average_present_f1,
    choose,
    compute_families,
    compute_value,
    count_assignments,
    count_gold,
    divide,
    find_assigned,
    find_hits,
    find_missing,
    labels_counted,
    ratio_of_sums,
    score_f1,
    split_counters,
)
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.scoring.predictions import WHOLE, list_parts

CUT_OFFS = (10, 50)


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Labels of one range of training frequency.

    Args:
        name: the range, such as `1-5`; `0` holds the labels of the split that no training document has.
        labels: how many labels are in it.
        present: how many of them some document of the split has.
        assignments: (document, label) pairs of gold in it.
        never_assigned: how many of its labels no document was assigned, right or wrong.
        metrics: named with the range, such as `R@10[1-5]`: pooled recall over its assignments, macro-F1 over its labels present.
    """

    name: str
    labels: int
    present: int
    assignments: int
    never_assigned: int
    metrics: tuple[MetricValue, ...]


def measure_bins(data: MetricInput, bounds: Bounds = LABEL_RANGES) -> list[Bin]:
    """The bins that hold any label.

    Args:
        data: predictions beside gold.
        bounds: name of each bin, least and most training documents of its labels (both included).
    """
    counters = count_assignments(data)
    width = data.gold.shape[1]
    top = data.top[:, : max(CUT_OFFS)]
    hits = find_hits(top, data.gold)
    assigned = np.asarray(counters[:, width : 2 * width].sum(axis=0)) > 0
    bins = []
    for name, least, most in bounds:
        inside = (data.train_counts >= least) & (data.train_counts <= most)
        if not inside.any():
            continue
        gold = (data.gold @ inside.astype(np.int64)).astype(np.float64)
        found = hits & inside[top]
        columns = np.flatnonzero(inside)
        recalls = [ratio_of_sums(f"R@{k}[{name}]", found[:, :k].sum(axis=1).astype(np.float64), gold) for k in CUT_OFFS]
        f1 = MetricValue(
            name=f"macro-F1-present[{name}]",
            contributions=counters[:, np.concatenate([columns, columns + width, columns + 2 * width])],
            combine=average_present_f1,
        )
        present = int((data.gold.sum(axis=0)[inside] > 0).sum())
        counts = {"labels": int(inside.sum()), "present": present, "assignments": int(gold.sum())}
        bins.append(Bin(name=name, **counts, never_assigned=int((inside & ~assigned).sum()), metrics=(*recalls, f1)))
    return bins


@dataclass(frozen=True, kw_only=True)
class Score:
    """A metric, a fraction, with its interval when the documents were resampled; None where it is undefined."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    spread: float | None = None


def none_if_undefined(value: float) -> float | None:
    """NaN as None, which tables and JSON can hold."""
    return None if np.isnan(value) else value


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Every metric of one system on one split.

    Args:
        scores: by name, those of bins too (`R@10[1-5]`), in the order to show.
        overall: the values behind the scores that are not of one bin.
        bins: the bins of training frequency.
        labels_averaged: how many labels each average over labels averages.
        labels_never: how many labels of train there are (`counted`), how many of them were never `assigned`, and never `listed`.
        missing: metrics that need scores which were not kept, by name.
        remarks: what a reader of the values should know.
    """

    scores: dict[str, Score]
    overall: Sequence[Metric]
    bins: Sequence[Bin] = field(default=())
    labels_averaged: dict[str, int] = field(default_factory=dict)
    labels_never: dict[str, int] = field(default_factory=dict)
    missing: Mapping[str, Missing] = field(default_factory=dict)
    remarks: Sequence[str] = field(default=())


def evaluate(
    data: MetricInput,
    families: Families,
    *,
    wanted: Sequence[str] = (),
    required: Sequence[str] = (),
    replicates: int = 0,
    level: float = 0.95,
    generator: np.random.Generator,
    advance: Callable[[float], None] | None = None,
    remedy: str = "plant predict --auc --force",
) -> Evaluation:
    """Compute all metrics (or the wanted ones), and intervals from `replicates` resamples of the documents (0: none).

    Args:
        data: predictions beside gold.
        families: the metric families with their options.
        wanted: names to compute (`P@7`, `R@10[1-5]`); none: all.
        required: names to compute in any case.
        replicates: resamples of the documents.
        level: coverage of the intervals.
        generator: the source of randomness.
        advance: called with how many resamples were done.
        remedy: what to do to have the metrics that need every score.

    Raises:
        UsageError: a wanted or required metric does not exist.
        PluginError: a metric plugin failed.
    """
    overall = compute_families(families, data, [*wanted, *required])
    bins = measure_bins(data)
    missing = find_missing(families, data, remedy)
    everything = [*overall, *(m for b in bins for m in b.metrics)]
    named = choose(everything, [*wanted, *required], missing)
    chosen = named if wanted else everything
    counted = labels_counted(data)
    names = {m.name for m in chosen}
    return Evaluation(
        scores=_score(chosen, replicates, level, generator, advance),
        overall=[m for m in overall if m.name in names],
        bins=bins,
        labels_averaged={
            "macro-F1": int(counted.sum()),
            "macro-F1-present": int((counted & (data.gold.sum(axis=0) > 0)).sum()),
            **{m.name: m.labels for m in chosen if isinstance(m, WeightedMetric) and m.labels is not None},
        },
        labels_never=_count_never(data),
        missing=missing,
        remarks=[m.remark for m in chosen if isinstance(m, WeightedMetric) and m.remark],
    )


def _count_never(data: MetricInput) -> dict[str, int]:
    known = data.train_counts > 0
    chosen = find_assigned(data) & (data.top >= 0)
    never = {
        name: np.setdiff1d(np.flatnonzero(known), data.top[where]) for name, where in (("assigned", chosen), ("listed", data.top >= 0))
    }
    return {"counted": int(known.sum()), **{name: int(labels.size) for name, labels in never.items()}}


def _score(
    metrics: Sequence[Metric],
    replicates: int,
    level: float,
    generator: np.random.Generator,
    advance: Callable[[float], None] | None,
) -> dict[str, Score]:
    if replicates == 0:
        return {m.name: Score(name=m.name, value=none_if_undefined(compute_value(m))) for m in metrics}
    sums = [m for m in metrics if isinstance(m, MetricValue)]
    found = {m.name: weigh(m, replicates, deepcopy(generator)) for m in metrics if isinstance(m, WeightedMetric)}
    if sums:
        drawn_sums = resample(sums, replicates, generator, advance)
        found |= {m.name: (compute_value(m), drawn) for m, drawn in zip(sums, drawn_sums, strict=True)}
    averages = [m for m in metrics if averages_labels(m)]
    errors = {m.name: jackknife(values) for m, values in zip(averages, leave_out(averages), strict=True)}
    scores = {}
    for metric in metrics:
        value, drawn = found[metric.name]
        low, high = interval(value, drawn, level, error=errors.get(metric.name), documents=count_documents(metric), within=(0.0, 1.0))
        spread = float(np.std(drawn[~np.isnan(drawn)])) if not np.isnan(low) else np.nan
        figures = [none_if_undefined(figure) for figure in (value, low, high, spread)]
        scores[metric.name] = Score(name=metric.name, value=figures[0], low=figures[1], high=figures[2], spread=figures[3])
    return scores


def measure_labels(data: MetricInput, gold: Gold, level: float) -> pl.DataFrame:
    """A row for each label: counts, precision, recall, F1 and its interval.

    Args:
        data: predictions beside gold.
        gold: of the same split, for ids and titles of the labels [L + U].
        level: coverage of the intervals.
    """
    sums = np.asarray(count_assignments(data).sum(axis=0), dtype=np.float64).reshape(1, -1)
    tp, assigned, positives = (part[0] for part in split_counters(sums))
    low, high = bound_f1(tp, assigned, positives, level)
    return pl.DataFrame(
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


def bound_f1(tp: Floats, assigned: Floats, gold: Floats, level: float) -> tuple[Floats, Floats]:
    """An interval of F1 from counts [n], NaN where a label has neither gold nor assignments.

    F1 = 2 J / (1 + J), where J is the share of true positives among the documents that have the label as gold, assigned or both. J is a
    proportion, whose Wilson interval holds for few documents, too: drawing documents again would call a label with one hit certain.

    Args:
        tp: true positives.
        assigned: documents that were assigned the label.
        gold: documents that have it.
        level: coverage, for example 0.95.
    """
    low, high = bound_proportion(tp, assigned + gold - tp, level)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def write_labels(path: Path, data: MetricInput, gold: Gold, level: float) -> None:
    """`measure_labels` as tab-separated text.

    Args:
        path: the TSV file.
        data: predictions beside gold.
        gold: of the same split.
        level: coverage of the intervals.
    """
    with replacing(path) as temporary:
        measure_labels(data, gold, level).write_csv(temporary, separator="\t", float_precision=6)


def write_documents(path: Path, data: MetricInput, metrics: Sequence[Metric], doc_ids: Sequence[str], conditions: str = "") -> None:
    """Counts, precision, recall and F1 of each document, and each metric's value, null where undefined; pooled metrics have none.

    Args:
        path: the Parquet file.
        data: predictions beside gold.
        metrics: of N documents.
        doc_ids: their ids, N of them.
        conditions: which documents and labels count, by which convention and with which seed; stands in the metadata of the file.
    """
    assigned = find_assigned(data)
    tp, chosen, gold = (assigned & find_hits(data.top, data.gold)).sum(axis=1), assigned.sum(axis=1), count_gold(data)
    counts = {
        "gold": gold,
        "assigned": chosen,
        "tp": tp,
        "precision": divide(tp, chosen),
        "recall": divide(tp, gold),
        "F1": divide(2 * tp, chosen + gold),
    }
    columns = {
        m.name: pl.Series(m.per_document).fill_nan(None) for m in metrics if isinstance(m, MetricValue) and m.per_document is not None
    }
    with replacing(path) as temporary:
        pl.DataFrame({"doc_id": list(doc_ids), **counts, **columns}).write_parquet(
            temporary, compression="zstd", metadata={"conditions": conditions}
        )


SHOWN = ("P@1", "P@5", "PSP@5", "R@10[1-5]")
MEASURED = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@10", "R@50", "R@10[1-5]", "R@50[1-5]")


def measure_parts(
    folder: Path,
    gold: Gold,
    convention: Convention,
    families: Families,
    numbering: Numbering,
    *,
    known: Collection[str],
    replicates: int,
    level: float,
    seed: int,
    reporter: Reporter,
) -> dict[str, dict[str, Score]]:
    """Metrics of each part alone, by its name; empty if `plant predict` kept none.

    Args:
        folder: of the predictions.
        gold: of the split.
        convention: which documents count, and how.
        families: metric families with their options.
        numbering: which pairs do not count, as for the whole.
        known: names of the metrics of the whole; a bin without labels has none.
        replicates: resamples behind the intervals, 0 for none; the same ones for every part.
        level: their coverage.
        seed: of the resamples.
        reporter: where a warning goes.
    """
    found, wanted = {}, [name for name in MEASURED if name in known]
    for name, path in list_parts(folder).items():
        data = build_input(read_predictions(path, gold, reporter, numbering), gold, np.inf, convention)
        evaluation = evaluate(data, families, wanted=wanted, replicates=replicates, level=level, generator=np.random.default_rng(seed))
        found[name] = evaluation.scores
    return found


def make_parts_table(parts: Mapping[str, Mapping[str, Score]], whole: Mapping[str, Score], conditions: str) -> Table:
    """The parts and the whole, a row each.

    Args:
        parts: metrics of each part.
        whole: metrics of all parts together.
        conditions: of which documents and labels, by which convention and with which seed.
    """
    columns = [Column(name="part")]
    columns += [Column(name=f"{metric}{bound}", kind="points") for metric in SHOWN for bound in ("", " low", " high")]
    rows: list[list[Cell]] = []
    for name, scores in {**parts, WHOLE: whole}.items():
        row: list[Cell] = [name]
        for metric in SHOWN:
            score = scores.get(metric)
            row += [score.value, score.low, score.high] if score else [None, None, None]
        rows.append(row)
    notes = [
        "each part with weights of its own; compare them pairwise with `plant significance finetune FOLDER/parts/NAME.parquet`",
        conditions,
    ]
    return Table(title="Each part alone", columns=columns, rows=rows, notes=notes)


def parts_as_json(parts: Mapping[str, Mapping[str, Score]]) -> dict[str, Any]:
    """The parts in metrics.json: fractions from 0 to 1."""
    return {
        name: {metric: {"value": score.value, "low": score.low, "high": score.high} for metric, score in scores.items()}
        for name, scores in parts.items()
    }
