"""From predictions beside gold to every metric with its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from plant_cli.api.metrics import MetricInput, MetricValue
from plant_cli.api.specs import MetricSpec
from plant_cli.evaluation.bins import Bin, measure_bins
from plant_cli.evaluation.bootstrap import averages_labels, interval, resample
from plant_cli.evaluation.families import choose, compute_families
from plant_cli.kit.metrics import compute_value, labels_counted


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
        labels_averaged: how many labels macro-F1 and macro-F1-present average.
    """

    scores: dict[str, Score]
    overall: Sequence[MetricValue]
    bins: Sequence[Bin] = field(default=())
    labels_averaged: dict[str, int] = field(default_factory=dict)


def evaluate(
    data: MetricInput,
    specs: Sequence[MetricSpec],
    *,
    wanted: Sequence[str] = (),
    required: Sequence[str] = (),
    replicates: int = 0,
    level: float = 0.95,
    generator: np.random.Generator,
    advance: Callable[[float], None] | None = None,
) -> Evaluation:
    """Compute all metrics (or the wanted ones), and intervals from `replicates` resamples of the documents (0: none).

    Args:
        data: predictions beside gold.
        specs: the metric families.
        wanted: names to compute (`P@7`, `R@10[1-5]`); none: all.
        required: names to compute in any case.
        replicates: resamples of the documents.
        level: coverage of the intervals.
        generator: the source of randomness.
        advance: told how many resamples were done.

    Raises:
        UsageError: a wanted or required metric does not exist.
        PluginError: a metric plugin failed.
    """
    overall = compute_families(specs, data, [*wanted, *required])
    bins = measure_bins(data)
    everything = [*overall, *(m for b in bins for m in b.metrics)]
    named = choose(everything, [*wanted, *required])
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
        },
    )


def _score(
    metrics: Sequence[MetricValue],
    replicates: int,
    level: float,
    generator: np.random.Generator,
    advance: Callable[[float], None] | None,
) -> dict[str, Score]:
    values = {m.name: compute_value(m) for m in metrics}
    if replicates == 0:
        return {name: Score(name=name, value=none_if_undefined(value)) for name, value in values.items()}
    scores = {}
    for metric, drawn in zip(metrics, resample(metrics, replicates, generator, advance), strict=True):
        value = values[metric.name]
        low, high = interval(value, drawn, level, per_label=averages_labels(metric))
        spread = float(np.std(drawn[~np.isnan(drawn)])) if not np.isnan(low) else np.nan
        figures = [none_if_undefined(figure) for figure in (value, low, high, spread)]
        scores[metric.name] = Score(name=metric.name, value=figures[0], low=figures[1], high=figures[2], spread=figures[3])
    return scores
