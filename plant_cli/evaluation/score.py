"""From predictions beside gold to every metric with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from plant_cli.api.metrics import Metric, MetricInput, MetricValue, WeightedMetric
from plant_cli.evaluation.bins import Bin, measure_bins
from plant_cli.evaluation.bootstrap import averages_labels, count_documents, interval, jackknife, leave_out, resample, weigh
from plant_cli.evaluation.families import Families, Missing, choose, compute_families, find_missing
from plant_cli.kit.metrics import compute_value, find_assigned, labels_counted


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
