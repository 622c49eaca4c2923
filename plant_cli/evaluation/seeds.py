"""Systems trained with several seeds: how far the seeds lie apart, and the two levels of comparing them, documents and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.sparse import csr_array, hstack

from plant_cli.api.metrics import Metric, MetricValue, WeightedMetric
from plant_cli.api.output import Cell, Column, Table
from plant_cli.kit.metrics import Floats, compute_value

Measured = Sequence[Sequence[Metric]]  # of each seed, the same metrics in the same order


@dataclass(frozen=True, kw_only=True)
class Spread:
    """One metric of one system over its seeds.

    Args:
        values: one a seed.
        spread: sample standard deviation (divided by seeds - 1).
    """

    metric: str
    system: str
    values: tuple[float, ...]
    mean: float
    spread: float
    lowest: float
    highest: float


@dataclass(frozen=True, kw_only=True)
class SeedDifference:
    """One metric of system A beside system B, seed by seed.

    Args:
        differences: A - B, one a seed.
        difference: their mean.
        spread: their sample standard deviation.
        low, high: t interval of the mean, with seeds - 1 degrees of freedom.
    """

    metric: str
    a: str
    b: str
    differences: tuple[float, ...]
    difference: float
    spread: float
    low: float
    high: float


def average(measured: Measured) -> list[Metric]:
    """Metrics whose value, on any choice of documents, is the mean of the seeds' values: what is swapped or drawn are documents.

    For means over documents this is the metric of the per-document values averaged over seeds; it holds for F1 as well.
    """
    stacks: dict[tuple[int, ...], Any] = {}  # metrics that share contributions go on sharing them
    return [_average_metric(values, stacks) for values in zip(*measured, strict=True)]


def _average_metric(values: Sequence[Metric], stacks: dict[tuple[int, ...], Any]) -> Metric:
    sums = [value for value in values if isinstance(value, MetricValue)]
    return _average_sums(sums, stacks) if sums else _average_weighted([value for value in values if isinstance(value, WeightedMetric)])


def _average_weighted(values: Sequence[WeightedMetric]) -> WeightedMetric:
    def compute(weights: Floats) -> Floats:
        mean: Floats = np.mean([value.compute(weights) for value in values], axis=0)
        return mean

    return replace(values[0], compute=compute)


def _average_sums(values: Sequence[MetricValue], stacks: dict[tuple[int, ...], Any]) -> MetricValue:
    key = tuple(id(value.contributions) for value in values)
    if key not in stacks:
        stacks[key] = _stack([value.contributions for value in values])

    def combine(sums: Floats) -> Floats:
        parts = np.split(sums, len(values), axis=1)
        mean: Floats = np.mean([value.combine(part) for value, part in zip(values, parts, strict=True)], axis=0)
        return mean

    documents = [value.per_document for value in values if value.per_document is not None]
    mean = np.mean(documents, axis=0) if len(documents) == len(values) else None
    return MetricValue(name=values[0].name, contributions=stacks[key], combine=combine, per_document=mean)


def _stack(contributions: Sequence[Any]) -> Any:
    if isinstance(contributions[0], csr_array):
        return csr_array(hstack(contributions, format="csr"))
    return np.hstack(contributions)


def summarise(systems: Sequence[tuple[str, Measured]]) -> list[Spread]:
    """The spread of every defined metric of every system, metric by metric."""
    spreads = []
    for number, metric in enumerate(systems[0][1][0]):
        for name, measured in systems:
            values = np.array([compute_value(seed[number]) for seed in measured])
            if not np.isnan(values).any():
                spreads.append(_describe(metric.name, name, values))
    return spreads


def _describe(metric: str, system: str, values: Floats) -> Spread:
    return Spread(
        metric=metric,
        system=system,
        values=tuple(values.tolist()),
        mean=float(values.mean()),
        spread=float(values.std(ddof=1)),
        lowest=float(values.min()),
        highest=float(values.max()),
    )


def compare_seeds(spreads: Sequence[Spread], level: float) -> list[SeedDifference]:
    """The first system of each metric beside the others, paired by seed.

    Args:
        spreads: from `summarise`.
        level: coverage of the t intervals, which hold if differences are normal.
    """
    firsts: dict[str, Spread] = {}
    found = []
    for other in spreads:
        first = firsts.setdefault(other.metric, other)
        if first is not other:
            found.append(_compare_pair(first, other, level))
    return found


def _compare_pair(a: Spread, b: Spread, level: float) -> SeedDifference:
    differences = np.array(a.values) - np.array(b.values)
    mean, spread, seeds = float(differences.mean()), float(differences.std(ddof=1)), differences.size
    reach = float(stats.t.ppf((1 + level) / 2, seeds - 1)) * spread / float(np.sqrt(seeds))
    return SeedDifference(
        metric=a.metric,
        a=a.system,
        b=b.system,
        differences=tuple(differences.tolist()),
        difference=mean,
        spread=spread,
        low=mean - reach,
        high=mean + reach,
    )


def as_json(values: Sequence[Spread] | Sequence[SeedDifference]) -> list[dict[str, Any]]:
    """Spreads or differences for significance.json: fractions."""
    return [{key: list(item) if isinstance(item, tuple) else item for key, item in asdict(value).items()} for value in values]


def make_spread_table(spreads: Sequence[Spread], seeds: Sequence[int], conditions: str) -> Table:
    """Mean, spread, lowest and highest of every metric and system.

    Args:
        spreads: from `summarise`.
        seeds: the seeds, for the note under the table.
        conditions: which documents and labels count, and by which convention.
    """
    names = ("mean", "spread", "lowest", "highest")
    rows: list[list[Cell]] = [[s.metric, s.system, s.mean, s.spread, s.lowest, s.highest] for s in spreads]
    return Table(
        title=f"Over {len(seeds)} seeds",
        columns=[Column(name="metric"), Column(name="system"), *(Column(name=name, kind="points") for name in names)],
        rows=rows,
        notes=[f"seeds {', '.join(map(str, seeds))}; spread: sample standard deviation", conditions],
    )


def make_difference_table(differences: Sequence[SeedDifference], level: float, conditions: str) -> Table:
    """One table of the differences of two systems, seed by seed.

    Args:
        differences: of one pair of systems.
        level: coverage of their intervals, for the note under the table.
        conditions: which documents and labels count, and by which convention.
    """
    first = differences[0]
    seeds = len(first.differences)
    names = ("A - B", "spread", "low", "high")
    rows: list[list[Cell]] = []
    for d in differences:
        better = sum(difference > 0 for difference in d.differences)
        rows.append([d.metric, d.difference, d.spread, d.low, d.high, f"{better} of {seeds}"])
    return Table(
        title=f"{first.a} against {first.b}, seed by seed",
        columns=[Column(name="metric"), *(Column(name=name, kind="points") for name in names), Column(name="A is better in")],
        rows=rows,
        notes=[
            f"{100 * level:g}% t interval of the mean difference over {seeds} seeds ({seeds - 1} degrees of freedom), paired by seed: "
            "what training at random may change, on these documents",
            conditions,
        ],
    )
