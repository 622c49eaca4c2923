"""Intervals by resampling documents: a resample is a vector of weights, so that all of them are a few matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api.metrics import Metric, MetricValue, WeightedMetric
from plant_cli.evaluation.proportions import bound_proportion
from plant_cli.kit.metrics import ROUNDING, Floats

BLOCK_BYTES = 64 * 2**20
PARTS = 200  # of the documents, for the jackknife


class Sums:
    """Weighted sums over documents of many metrics' contributions; a matrix that several metrics share is multiplied once.

    Args:
        contributions: dense or csr, each [N, M_i].
    """

    def __init__(self, contributions: Sequence[Any]) -> None:
        self.documents = int(contributions[0].shape[0])
        self._keys = [id(c) for c in contributions]
        distinct = dict(zip(self._keys, contributions, strict=True))
        self._sparse = {key: c.T.tocsr() for key, c in distinct.items() if isinstance(c, csr_array)}
        dense = {key: c for key, c in distinct.items() if not isinstance(c, csr_array)}
        ends = np.cumsum([0, *(c.shape[1] for c in dense.values())])
        self._columns = {key: slice(a, b) for key, a, b in zip(dense, ends[:-1], ends[1:], strict=True)}
        self._dense = np.hstack(list(dense.values())) if dense else np.zeros((self.documents, 0))
        self._widest = max([self.documents, self._dense.shape[1], *(s.shape[0] for s in self._sparse.values())])

    def block_sizes(self, resamples: int) -> Iterator[int]:
        """How many resamples to take at a time, so that memory stays bounded."""
        block = max(1, BLOCK_BYTES // (8 * self._widest))
        for start in range(0, resamples, block):
            yield min(block, resamples - start)

    def weigh(self, weights: Floats) -> list[Floats]:
        """The sums [R, M_i] of each contribution under weights [R, N]."""
        dense = weights @ self._dense
        columns = np.ascontiguousarray(weights.T) if self._sparse else weights
        sparse = {key: (s @ columns).T for key, s in self._sparse.items()}
        return [sparse[key] if key in sparse else dense[:, self._columns[key]] for key in self._keys]


def resample(
    metrics: Sequence[MetricValue], replicates: int, generator: np.random.Generator, advance: Callable[[float], None] | None = None
) -> Floats:
    """Each metric on documents drawn with replacement [metrics, replicates]; all metrics see the same draws.

    Args:
        metrics: of the same N documents (of several systems, for paired comparisons).
        replicates: how many times the documents are drawn.
        generator: the source of randomness; the result does not depend on how the work is cut into blocks.
        advance: called with how many replicates were done.
    """
    sums = Sums([m.contributions for m in metrics])
    parts = []
    for block in sums.block_sizes(replicates):
        weighed = sums.weigh(draw_weights(sums.documents, block, generator))
        parts.append(np.array([m.combine(s) for m, s in zip(metrics, weighed, strict=True)]))
        if advance is not None:
            advance(block)
    return np.concatenate(parts, axis=1)


def weigh(metric: WeightedMetric, replicates: int, generator: np.random.Generator) -> tuple[float, Floats]:
    """A metric on the documents as they are, and on the draws [replicates] that `resample` makes from an equal generator.

    Args:
        metric: of N documents.
        replicates: how many times the documents are drawn.
        generator: the source of randomness.
    """
    block = max(1, BLOCK_BYTES // (8 * metric.documents))
    sizes = [min(block, replicates - start) for start in range(0, replicates, block)]
    drawn = (draw_weights(metric.documents, size, generator) for size in sizes)
    values = metric.compute(np.concatenate([np.ones((1, metric.documents)), *drawn]))
    return float(values[0]), values[1:]


def leave_out(metrics: Sequence[Metric], parts: int = PARTS) -> Floats:
    """Each metric without one part of the documents after the other [metrics, parts]: what a jackknife needs.

    Args:
        metrics: of the same N documents.
        parts: how many parts; document i is in part i modulo their number.
    """
    sizes = {m.contributions.shape[0] if isinstance(m, MetricValue) else m.documents for m in metrics}
    if not sizes:
        return np.zeros((0, 0))
    [documents] = sizes
    parts = min(parts, documents)
    weights = (np.arange(documents) % parts != np.arange(parts)[:, None]).astype(np.float64)
    sums = [m for m in metrics if isinstance(m, MetricValue)]
    values = np.empty((len(metrics), parts))
    if sums:
        values[[isinstance(m, MetricValue) for m in metrics]] = _combine(sums, weights)
    for i, metric in enumerate(metrics):
        if isinstance(metric, WeightedMetric):
            values[i] = metric.compute(weights)
    return values


def _combine(metrics: Sequence[MetricValue], weights: Floats) -> Floats:
    sums = Sums([m.contributions for m in metrics])
    ends = np.cumsum([0, *sums.block_sizes(len(weights))])
    blocks = [sums.weigh(weights[start:end]) for start, end in pairwise(ends)]
    return np.concatenate([[m.combine(s) for m, s in zip(metrics, block, strict=True)] for block in blocks], axis=1)


def jackknife(left_out: Floats) -> float:
    """Standard error of a metric from its values without each part of the documents [parts]; NaN where fewer than two are defined.

    Unlike resamples it sees the whole variance of labels with one document: their value is there or not, and is never drawn twice.

    Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, section 11.3.
    """
    values = left_out[~np.isnan(left_out)]
    if values.size < 2:
        return np.nan
    return float(np.sqrt((values.size - 1) * np.var(values)))


def draw_weights(documents: int, replicates: int, generator: np.random.Generator) -> Floats:
    """How often each document is drawn in each replicate [replicates, documents]; rows sum to the number of documents.

    Args:
        documents: N.
        replicates: how many times N documents are drawn with replacement.
        generator: the source of randomness.
    """
    drawn = generator.integers(0, documents, size=(replicates, documents))
    drawn += np.arange(replicates)[:, None] * documents
    return np.bincount(drawn.ravel(), minlength=replicates * documents).reshape(replicates, documents).astype(np.float64)


def interval(
    value: float,
    replicates: Floats,
    level: float,
    *,
    error: float | None = None,
    documents: int | None = None,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> tuple[float, float]:
    """Percentile interval of a metric; NaN when no resample defines it.

    Args:
        value: the metric on the documents as they are.
        replicates: its resamples [B]; those in which it is undefined (NaN) are left out.
        level: coverage, for example 0.95.
        error: for averages over labels, the standard error by the jackknife. A label with one gold document is missing from 37% of all
            resamples, which moves every resample of macro-F1 to one side, often past the value, and makes their spread too small: the
            interval is moved back by that bias, and widened where its spread is less than this.
        documents: that count for the metric. Where each of them reaches the same end of the scale, all resamples are equal and say nothing
            of what other documents would give; the interval is then Wilson's for a proportion of that many.
        within: where the metric can lie at all; an interval that was moved ends there.
    """
    replicates = replicates[~np.isnan(replicates)]
    if not replicates.size:
        return np.nan, np.nan
    ends = [abs(value - end) < ROUNDING for end in within]
    if documents and any(ends) and np.ptp(replicates) < ROUNDING:
        low, high = bound_proportion(np.array(float(documents * ends[1])), np.array(documents), level)
        return float(low), float(high)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    if error is not None:
        middle, spread = float(replicates.mean()), float(replicates.std())
        wider = error / spread if error > spread > 0 else 1.0
        low, high = value + wider * (low - middle), value + wider * (high - middle)
    low, high = np.clip([low, high], *within)
    return float(low), float(high)


def count_documents(metric: Metric) -> int | None:
    """The documents that anything was counted of; None for a metric of pairs."""
    if isinstance(metric, WeightedMetric):
        return None
    return int(np.count_nonzero(abs(metric.contributions).sum(axis=1)))


def averages_labels(metric: Metric) -> bool:
    """Whether a metric is an average over labels (from per-label counters) and not over documents."""
    if isinstance(metric, WeightedMetric):
        return metric.labels is not None
    return isinstance(metric.contributions, csr_array)
