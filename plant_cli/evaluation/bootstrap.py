"""Resamples of documents: intervals, proportions and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri

from plant_cli.api.metrics import Metric, MetricValue, WeightedMetric
from plant_cli.api.read_only import read_only
from plant_cli.evaluation.counters import DIGITS, ROUNDING, Floats, compute_value

Advance = Callable[[float], None]  # called with how many resamples or permutations were done
BOOTSTRAP_BYTES = 64 * 2**20
JACKKNIFE_PARTS = 200  # of the documents, for the jackknife
EXACT_UP_TO = 50  # documents of a signed-rank test
FEWER = 1000  # permutations of a metric of pairs
COARSE = 1e-7  # scores are fp32


def bound_proportion(hits: Floats, trials: Floats, level: float) -> tuple[Floats, Floats]:
    """Wilson's interval of a proportion [n], NaN where there is no trial. It holds for few trials,
    and where all of them are hits.

    Source: Wilson 1927, Probable inference, the law of succession, and statistical inference.
    """
    z = float(ndtri((1.0 + level) / 2.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = hits / trials
        middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
        reach = (
            z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
        )
    return np.clip(middle - reach, 0.0, 1.0), np.clip(middle + reach, 0.0, 1.0)


class Sums:
    """Weighted sums over documents of many metrics' contributions; a matrix that several metrics
    share is multiplied once.

    `contributions`: dense or csr, each [N, M_i].
    """

    def __init__(self, contributions: Sequence[Any]) -> None:
        self.documents = int(contributions[0].shape[0])
        self._keys = [id(c) for c in contributions]
        distinct = dict(zip(self._keys, contributions, strict=True))
        self._sparse = {key: c.T.tocsr() for key, c in distinct.items() if isinstance(c, csr_array)}
        dense = {key: c for key, c in distinct.items() if not isinstance(c, csr_array)}
        ends = np.cumsum([0, *(c.shape[1] for c in dense.values())])
        self._columns = {
            key: slice(a, b) for key, a, b in zip(dense, ends[:-1], ends[1:], strict=True)
        }
        self._dense = np.hstack(list(dense.values())) if dense else np.zeros((self.documents, 0))
        self._widest = max(
            [self.documents, self._dense.shape[1], *(s.shape[0] for s in self._sparse.values())]
        )

    def block_sizes(self, resamples: int) -> Iterator[int]:
        """How many resamples to take at a time, so that memory stays bounded."""
        block = max(1, BOOTSTRAP_BYTES // (8 * self._widest))
        for start in range(0, resamples, block):
            yield min(block, resamples - start)

    def weigh(self, weights: Floats) -> list[Floats]:
        """The sums [R, M_i] of each contribution under weights [R, N]."""
        dense = weights @ self._dense
        columns = np.ascontiguousarray(weights.T) if self._sparse else weights
        sparse = {key: (s @ columns).T for key, s in self._sparse.items()}
        return [
            sparse[key] if key in sparse else dense[:, self._columns[key]] for key in self._keys
        ]


def _combine(metrics: Sequence[MetricValue], sums: Sums, weights: Floats) -> Floats:
    """Each metric under weights of the documents [metrics, R]."""
    return np.array(
        [
            m.combine(read_only(weighed))
            for m, weighed in zip(metrics, sums.weigh(weights), strict=True)
        ]
    )


def resample(
    metrics: Sequence[MetricValue],
    replicates: int,
    generator: np.random.Generator,
    advance: Advance | None = None,
) -> Floats:
    """Each metric on documents drawn with replacement [metrics, replicates]; all metrics see
    the same draws, whatever the blocks.
    """
    sums = Sums([m.contributions for m in metrics])
    parts = []
    for block in sums.block_sizes(replicates):
        parts.append(_combine(metrics, sums, draw_weights(sums.documents, block, generator)))
        if advance is not None:
            advance(block)
    return np.concatenate(parts, axis=1)


def measure_and_resample(
    metrics: Sequence[Metric],
    replicates: int,
    generator: np.random.Generator,
    advance: Advance | None,
) -> tuple[Floats, Floats]:
    """Every metric on the documents as they are [metrics], and on the same resamples of them
    [metrics, replicates].
    """
    same = deepcopy(generator)
    values, drawn = np.empty(len(metrics)), np.empty((len(metrics), replicates))
    sums = {i: m for i, m in enumerate(metrics) if isinstance(m, MetricValue)}
    if sums:
        values[list(sums)] = [compute_value(m) for m in sums.values()]
        drawn[list(sums)] = resample(list(sums.values()), replicates, generator, advance)
    for i, metric in enumerate(metrics):
        if isinstance(metric, WeightedMetric):
            draws, block = deepcopy(same), max(1, BOOTSTRAP_BYTES // (8 * metric.documents))
            weights = [np.ones((1, metric.documents))]
            weights += [
                draw_weights(metric.documents, min(block, replicates - start), draws)
                for start in range(0, replicates, block)
            ]
            computed = metric.compute(np.concatenate(weights))
            values[i], drawn[i] = computed[0], computed[1:]
    return values, drawn


def leave_out(metrics: Sequence[Metric], parts: int = JACKKNIFE_PARTS) -> Floats:
    """Each metric without one part of the documents after the other [metrics, parts]: what a
    jackknife needs.
    """
    sizes = {
        m.contributions.shape[0] if isinstance(m, MetricValue) else m.documents for m in metrics
    }
    if not sizes:
        return np.zeros((0, 0))
    [documents] = sizes
    parts = min(parts, documents)
    weights = (np.arange(documents) % parts != np.arange(parts)[:, None]).astype(np.float64)
    values = np.empty((len(metrics), parts))
    if counted := [m for m in metrics if isinstance(m, MetricValue)]:
        sums = Sums([m.contributions for m in counted])
        ends = np.cumsum([0, *sums.block_sizes(parts)])
        blocks = [_combine(counted, sums, weights[start:end]) for start, end in pairwise(ends)]
        values[[isinstance(m, MetricValue) for m in metrics]] = np.concatenate(blocks, axis=1)
    for i, metric in enumerate(metrics):
        if isinstance(metric, WeightedMetric):
            values[i] = metric.compute(weights)
    return values


def jackknife(left_out: Floats) -> float:
    """Standard error of a metric from its values without each part of the documents [parts]; NaN
    where fewer than two are defined.

    Unlike resamples it covers the full variance of labels with one document, which is in or out and
    never drawn twice.

    Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, section 11.3.
    """
    values = left_out[~np.isnan(left_out)]
    if values.size < 2:
        return np.nan
    return float(np.sqrt((values.size - 1) * np.var(values)))


def draw_weights(documents: int, replicates: int, generator: np.random.Generator) -> Floats:
    """How often each document is drawn in each replicate [replicates, documents]; rows sum to
    the number of documents.
    """
    drawn = generator.integers(0, documents, size=(replicates, documents))
    drawn += np.arange(replicates)[:, None] * documents
    return (
        np.bincount(drawn.ravel(), minlength=replicates * documents)
        .reshape(replicates, documents)
        .astype(np.float64)
    )


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
        replicates: its resamples [B]; those in which it is undefined (NaN) are left out.
        error: for averages over labels, the standard error by the jackknife. A label with one gold
            document is missing from 37% of all resamples, which moves every resample of macro-F1 to
            one side, often past the value, and makes their spread too small: the interval is moved
            back by that bias, and widened where its spread is less than this. Where nearly all
            resamples lie on one side of their mean, it ends at the value.
        documents: that count for the metric. Where each of them reaches the same end of the scale,
            all resamples are equal and say nothing of what other documents would give; the interval
            is then Wilson's for a proportion of that many.
        within: where the metric can lie at all; an interval that was moved ends there.
    """
    replicates = replicates[~np.isnan(replicates)]
    if not replicates.size:
        return np.nan, np.nan
    ends = [abs(value - end) < ROUNDING for end in within]
    if documents and any(ends) and np.ptp(replicates) < ROUNDING:
        low, high = bound_proportion(
            np.array(float(documents * ends[1])), np.array(documents), level
        )
        return float(low), float(high)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(replicates, [tail, 1.0 - tail])
    if error is not None:
        middle, spread = float(replicates.mean()), float(replicates.std())
        wider = error / spread if error > spread > 0 else 1.0
        low, high = (
            value + np.minimum(0.0, wider * (low - middle)),
            value + np.maximum(0.0, wider * (high - middle)),
        )
    low, high = np.clip([low, high], *within)
    return float(low), float(high)


def count_measured(metric: Metric) -> int | None:
    """The documents that anything was counted of; None for a metric of pairs."""
    if isinstance(metric, WeightedMetric):
        return None
    return int(np.count_nonzero(abs(metric.contributions).sum(axis=1)))


def averages_labels(metric: Metric) -> bool:
    """Whether a metric is an average over labels (from per-label counters) and not over
    documents.
    """
    if isinstance(metric, WeightedMetric):
        return metric.labels is not None
    return isinstance(metric.contributions, csr_array)


@dataclass(frozen=True, kw_only=True)
class SignedRank:
    """Wilcoxon's test on per-document values."""

    p: float  # two-sided p-value; 1 when no document differs
    documents: int  # documents whose values differ; the others are left out, as Wilcoxon did
    # whether p comes from all sign patterns (up to 50 documents) or from the normal approximation
    exact: bool


def randomise(
    pairs: Sequence[tuple[MetricValue, MetricValue]],
    permutations: int,
    generator: np.random.Generator,
    advance: Advance | None = None,
) -> Floats:
    """Approximate randomisation: two-sided p-values [pairs] of differences, under swapping the
    systems' outputs document by document.

    p = (1 + permutations with a difference at least as large) / (1 + permutations).

    Args:
        pairs: one metric of the two systems, for each metric and pair of systems; all of the same N
            documents.

    Source: Noreen 1989, Computer-Intensive Methods for Testing Hypotheses, section 2.
    """
    between: dict[tuple[int, int], object] = {}
    for a, b in pairs:
        between.setdefault(
            (id(a.contributions), id(b.contributions)), b.contributions - a.contributions
        )
    sums = Sums([between[id(a.contributions), id(b.contributions)] for a, b in pairs])
    totals = [
        [np.asarray(m.contributions.sum(axis=0), dtype=np.float64).reshape(1, -1) for m in pair]
        for pair in pairs
    ]
    observed = np.array(
        [(a.combine(x) - b.combine(y))[0] for (a, b), (x, y) in zip(pairs, totals, strict=True)]
    )
    reached = np.zeros(len(pairs))
    for block in sums.block_sizes(permutations):
        moved = sums.weigh(
            generator.integers(0, 2, size=(block, sums.documents)).astype(np.float64)
        )
        for i, ((a, b), (x, y)) in enumerate(zip(pairs, totals, strict=True)):
            differences = a.combine(x + moved[i]) - b.combine(y - moved[i])
            reached[i] += (np.abs(differences) >= abs(observed[i]) - ROUNDING).sum()
        if advance is not None:
            advance(block)
    return (1.0 + reached) / (1.0 + permutations)


def randomise_joined(
    joined: WeightedMetric, difference: float, permutations: int, generator: np.random.Generator
) -> float:
    """The same p for a metric of pairs of documents, such as AUC; swapping is weighing here.

    Args:
        joined: the metric on 2 N documents: those of A, and the same with the outputs of B.
        permutations: how many times outputs are swapped at random; at most `FEWER`, since each
            costs as much as the metric itself.
    """
    count = min(permutations, FEWER)
    swapped = generator.integers(0, 2, size=(count, joined.documents // 2)).astype(np.float64)
    ours, theirs = np.hstack([1 - swapped, swapped]), np.hstack([swapped, 1 - swapped])
    values = joined.compute(np.concatenate([ours, theirs]))
    reached = np.abs(values[:count] - values[count:]) >= abs(difference) - COARSE
    return float((1 + reached.sum()) / (1 + count))


def compare_ranks(a: Floats, b: Floats) -> SignedRank:
    """Wilcoxon's signed-rank test of values per document; documents on which either is
    undefined (NaN) are left out.
    """
    both = ~(np.isnan(a) | np.isnan(b))
    differences = np.round((a - b)[both], DIGITS)  # 0.6 - 0.4 and 0.4 - 0.2 are ties
    differences = differences[differences != 0]
    n = differences.size
    if n == 0:
        return SignedRank(p=1.0, documents=0, exact=True)
    if n > EXACT_UP_TO:
        from scipy.stats import (
            wilcoxon,
        )  # longer to import than many a command takes, and few ask for it

        return SignedRank(
            p=float(wilcoxon(differences, method="approx").pvalue), documents=n, exact=False
        )
    return SignedRank(p=_exact_signed_rank(differences), documents=n, exact=True)


def _exact_signed_rank(differences: Floats) -> float:
    """All 2^n sign patterns by dynamic programming; twice the mid-ranks are whole numbers, so
    ties are exact too.
    """
    _, place, count = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(count) - count + 1)[place]
    patterns = np.zeros(int(doubled.sum()) + 1)
    patterns[0] = 1.0
    for rank in doubled:
        patterns = 0.5 * (patterns + np.concatenate([np.zeros(rank), patterns[:-rank]]))
    positive = int(doubled[differences > 0].sum())
    return float(min(1.0, 2.0 * min(patterns[: positive + 1].sum(), patterns[positive:].sum())))


def adjust_holm(p_values: Floats) -> Floats:
    """Holm's step-down adjusted p-values [n], in the order given: the family-wise error holds
    under any dependence (Holm 1979).
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate(p_values[order] * np.arange(p_values.size, 0, -1))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
