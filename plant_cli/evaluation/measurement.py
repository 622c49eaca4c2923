"""Systems as they are measured for a comparison: the same metrics of each seed, means over
seeds, two systems joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from plant_cli.api import (
    AllScores,
    Hierarchy,
    Metric,
    MetricInput,
    MetricValue,
    Reporter,
    WeightedMetric,
)
from plant_cli.evaluation.aligned import UNNUMBERED, build_input, read_predictions
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.counters import Families, Floats, choose, compute_families, find_missing
from plant_cli.evaluation.foreign import Numbering
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.measures import measure_bins
from plant_cli.evaluation.results import DEFAULT_METRICS
from plant_cli.evaluation.systems import System, read_scores


@dataclass(frozen=True, kw_only=True)
class Measure:
    """How every system is measured."""

    families: Families
    convention: Convention
    wanted: Sequence[str]  # names of metrics; none: those of `DEFAULT_METRICS` that there are
    memory: int  # bytes that a metric may hold of every score at a time
    numbering: Numbering = UNNUMBERED
    hierarchy: Hierarchy | None = None


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The metrics of one system, trained with one seed, and what they were computed from."""

    metrics: Sequence[Metric]
    data: MetricInput


Systems = Sequence[tuple[str, Sequence[Measurement]]]  # name, and a measurement for each seed


def measure_system(system: System, gold: Gold, measure: Measure, reporter: Reporter) -> Measurement:
    """The wanted metrics of a system."""
    predictions = read_predictions(system.predictions, gold, reporter, measure.numbering)
    scores = read_scores(system, gold, measure.memory)
    data = build_input(
        predictions, gold, system.threshold, measure.convention, scores, measure.hierarchy
    )
    values = [
        *compute_families(measure.families, data, measure.wanted, reporter.warn),
        *(metric for b in measure_bins(data) for metric in b.metrics),
    ]
    missing = find_missing(
        measure.families, data, f"'{system.name}' needs all its scores: `plant predict --auc`"
    )
    known = {value.name for value in values}
    wanted = measure.wanted or [metric for metric in DEFAULT_METRICS if metric in known]
    return Measurement(metrics=choose(values, wanted, missing), data=data)


def keep_shared(systems: Systems) -> Systems:
    """The metrics that all systems have: AUC only where every one kept every score."""
    shared = set.intersection(
        *({metric.name for metric in one.metrics} for _, seeds in systems for one in seeds)
    )
    return [
        (
            name,
            [replace(one, metrics=[m for m in one.metrics if m.name in shared]) for one in seeds],
        )
        for name, seeds in systems
    ]


def average_seeds(measured: Sequence[Sequence[Metric]]) -> list[Metric]:
    """Metrics whose value, on any choice of documents, is the mean of the seeds' values: documents
    are drawn and swapped, not seeds.

    For means over documents this is the metric of the per-document values averaged over seeds; it
    holds for F1 as well. `measured` has the metrics of each seed, the same in the same order.
    """
    stacks: dict[tuple[int, ...], Any] = {}  # metrics that share contributions go on sharing them
    return [_average_metric(values, stacks) for values in zip(*measured, strict=True)]


def _average_metric(values: Sequence[Metric], stacks: dict[tuple[int, ...], Any]) -> Metric:
    weighted = [value for value in values if isinstance(value, WeightedMetric)]
    if weighted:
        return replace(
            weighted[0],
            compute=lambda weights: np.mean([value.compute(weights) for value in weighted], axis=0),
        )
    sums = [value for value in values if isinstance(value, MetricValue)]
    key = tuple(id(value.contributions) for value in sums)
    if key not in stacks:
        parts = [value.contributions for value in sums]
        stacks[key] = (
            csr_array(hstack(parts, format="csr"))
            if isinstance(parts[0], csr_array)
            else np.hstack(parts)
        )

    def combine(summed: Floats) -> Floats:
        parts = np.split(summed, len(sums), axis=1)
        mean: Floats = np.mean(
            [value.combine(part) for value, part in zip(sums, parts, strict=True)], axis=0
        )
        return mean

    documents = [value.per_document for value in sums if value.per_document is not None]
    mean = np.mean(documents, axis=0) if len(documents) == len(sums) else None
    return replace(sums[0], contributions=stacks[key], combine=combine, per_document=mean)


def join_metrics(systems: Systems, families: Families) -> dict[tuple[str, str], WeightedMetric]:
    """Metrics of pairs, such as AUC, on the documents of the first system followed by those of
    another; of several seeds the mean.

    By the name of the other system and of the metric. The systems come from `keep_shared`.
    """
    (_, firsts), others = systems[0], systems[1:]
    wanted = {metric.name for metric in firsts[0].metrics if isinstance(metric, WeightedMetric)}
    if not wanted:
        return {}
    needed = [(spec, options) for spec, options in families if spec.needs_all_scores]
    joined: dict[tuple[str, str], WeightedMetric] = {}
    for name, seeds in others:
        repeated = [
            compute_families(needed, join_inputs(a.data, b.data))
            for a, b in zip(firsts, seeds, strict=True)
        ]
        metrics = average_seeds(repeated) if len(repeated) > 1 else repeated[0]
        joined |= {
            (name, m.name): m for m in metrics if isinstance(m, WeightedMetric) and m.name in wanted
        }
    return joined


@dataclass(frozen=True)
class JoinedScores:
    """Every score of two systems as one table of 2 N documents; see `plant_cli.api.AllScores`.

    Scores of a system are first brought to mean 0 and standard deviation 1: no AUC changes by that,
    and systems that write scores on other scales can be swapped.
    """

    parts: tuple[AllScores, AllScores]

    @property
    def shape(self) -> tuple[int, int]:
        """Twice the documents, and the labels."""
        documents, labels = self.parts[0].shape
        return 2 * documents, labels

    @property
    def memory(self) -> int:
        """Bytes that a metric may hold at a time."""
        return self.parts[0].memory

    @cached_property
    def _scales(self) -> list[tuple[float, float]]:
        return [_find_scale(part) for part in self.parts]

    def read(self, documents: slice, labels: slice) -> npt.NDArray[np.float32]:
        """Scores of some documents and labels."""
        half = self.parts[0].shape[0]
        start, stop, _ = documents.indices(2 * half)
        rows = (
            slice(min(start, half), min(stop, half)),
            slice(max(start, half) - half, max(stop, half) - half),
        )
        blocks = [
            (part.read(row, labels) - mean) / spread
            for part, row, (mean, spread) in zip(self.parts, rows, self._scales, strict=True)
        ]
        return np.concatenate(blocks).astype(np.float32)


def _find_scale(scores: AllScores) -> tuple[float, float]:
    documents, labels = scores.shape
    step = max(1, scores.memory // (16 * max(labels, 1)))
    sums = np.zeros(2)
    for start in range(0, documents, step):
        block = scores.read(slice(start, min(start + step, documents)), slice(None)).astype(
            np.float64
        )
        sums += block.sum(), (block**2).sum()
    mean, square = sums / max(1, documents * labels)
    return float(mean), float(np.sqrt(max(square - mean**2, 0.0))) or 1.0


def join_inputs(a: MetricInput, b: MetricInput) -> MetricInput:
    """The documents of A followed by the same of B, 2 N in all, with what metrics of every
    score read; thresholds are those of A.
    """
    assert a.all_scores is not None, "only metrics of every score need documents joined"
    assert b.all_scores is not None, "only metrics of every score need documents joined"
    width = max(a.top.shape[1], b.top.shape[1])
    pad = [((0, 0), (0, width - data.top.shape[1])) for data in (a, b)]
    top = np.concatenate(
        [np.pad(data.top, p, constant_values=-1) for data, p in zip((a, b), pad, strict=True)]
    )
    scores: Floats = np.concatenate(
        [
            np.pad(data.scores, p, constant_values=-np.inf)
            for data, p in zip((a, b), pad, strict=True)
        ]
    )
    gold = csr_array(vstack([a.gold, b.gold], format="csr"))
    return replace(
        a, top=top, scores=scores, gold=gold, all_scores=JoinedScores((a.all_scores, b.all_scores))
    )
