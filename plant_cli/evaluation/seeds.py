"""Runs over several seeds: joined, and compared as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.sparse import csr_array, hstack, vstack

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.metrics import AllScores, Metric, MetricInput, MetricValue, WeightedMetric
from plant_cli.evaluation.counters import Families, Floats, compute_families, compute_value

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


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The metrics of one system, trained with one seed, and what they were computed from."""

    metrics: Sequence[Metric]
    data: MetricInput


Systems = Sequence[tuple[str, Sequence[Measurement]]]  # name, and a measurement for each seed


def keep_shared(systems: Systems) -> Systems:
    """The metrics that all systems have: AUC only where every one kept every score."""
    shared = set.intersection(*({metric.name for metric in one.metrics} for _, found in systems for one in found))
    return [(name, [replace(one, metrics=[m for m in one.metrics if m.name in shared]) for one in found]) for name, found in systems]


def join_metrics(systems: Systems, families: Families) -> dict[tuple[str, str], WeightedMetric]:
    """Each metric that no sums over documents give, by system and name, on the documents of the first system followed by those of another.

    Args:
        systems: at least two, from `keep_shared`; of several seeds the mean.
        families: the metric families with their options.
    """
    (_, firsts), others = systems[0], systems[1:]
    wanted = {metric.name for metric in firsts[0].metrics if isinstance(metric, WeightedMetric)}
    if not wanted:
        return {}
    needed = [(spec, options) for spec, options in families if spec.needs_all_scores]
    joined: dict[tuple[str, str], WeightedMetric] = {}
    for name, found in others:
        repeated = [compute_families(needed, join(a.data, b.data)) for a, b in zip(firsts, found, strict=True)]
        metrics = average(repeated) if len(repeated) > 1 else repeated[0]
        joined |= {(name, m.name): m for m in metrics if isinstance(m, WeightedMetric) and m.name in wanted}
    return joined


@dataclass(frozen=True)
class JoinedScores:
    """Every score of two systems as one table of 2 N documents; see `plant_cli.api.AllScores`.

    Scores of a system are first brought to mean 0 and standard deviation 1: no AUC changes by that, and systems that write
    scores on other scales can be swapped.
    """

    parts: tuple[AllScores, AllScores]

    @property
    def shape(self) -> tuple[int, int]:
        """See `AllScores.shape`."""
        documents, labels = self.parts[0].shape
        return 2 * documents, labels

    @property
    def memory(self) -> int:
        """See `AllScores.memory`."""
        return self.parts[0].memory

    @cached_property
    def _scales(self) -> list[tuple[float, float]]:
        return [_find_scale(part) for part in self.parts]

    def read(self, documents: slice, labels: slice) -> npt.NDArray[np.float32]:
        """See `AllScores.read`."""
        half = self.parts[0].shape[0]
        start, stop, _ = documents.indices(2 * half)
        rows = (slice(min(start, half), min(stop, half)), slice(max(start, half) - half, max(stop, half) - half))
        blocks = [
            (part.read(row, labels) - mean) / spread for part, row, (mean, spread) in zip(self.parts, rows, self._scales, strict=True)
        ]
        return np.concatenate(blocks).astype(np.float32)


def _find_scale(scores: AllScores) -> tuple[float, float]:
    documents, labels = scores.shape
    step = max(1, scores.memory // (16 * max(labels, 1)))
    sums = np.zeros(2)
    for start in range(0, documents, step):
        block = scores.read(slice(start, min(start + step, documents)), slice(None)).astype(np.float64)
        sums += block.sum(), (block**2).sum()
    mean, square = sums / max(1, documents * labels)
    return float(mean), float(np.sqrt(max(square - mean**2, 0.0))) or 1.0


def join(a: MetricInput, b: MetricInput) -> MetricInput:
    """The documents of one system followed by those of another: 2 N documents, with all that metrics of every score read.

    Args:
        a: of one system, with every score; its threshold stands for both.
        b: of the other, of the same documents.
    """
    assert a.all_scores is not None, "only metrics of every score need documents joined"
    assert b.all_scores is not None, "only metrics of every score need documents joined"
    width = max(a.top.shape[1], b.top.shape[1])
    pad = [((0, 0), (0, width - data.top.shape[1])) for data in (a, b)]
    top = np.concatenate([np.pad(data.top, p, constant_values=-1) for data, p in zip((a, b), pad, strict=True)])
    scores: Floats = np.concatenate([np.pad(data.scores, p, constant_values=-np.inf) for data, p in zip((a, b), pad, strict=True)])
    gold = csr_array(vstack([a.gold, b.gold], format="csr"))
    return replace(a, top=top, scores=scores, gold=gold, all_scores=JoinedScores((a.all_scores, b.all_scores)))
