"""Is the difference between two systems on the same documents real? Randomisation, signed ranks, and Holm's correction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from plant_cli.api.metrics import MetricValue, WeightedMetric
from plant_cli.evaluation.bootstrap import Sums
from plant_cli.kit.metrics import DIGITS, ROUNDING, Floats

EXACT_UP_TO = 50
FEWER = 1000  # permutations
COARSE = 1e-7  # scores are fp32


@dataclass(frozen=True, kw_only=True)
class SignedRank:
    """Wilcoxon's test on per-document values.

    Args:
        p: two-sided p-value; 1 when no document differs.
        documents: documents whose values differ; the others say nothing and are left out (Wilcoxon's own way with zeros).
        exact: whether p comes from all sign patterns (up to 50 documents) or from the normal approximation.
    """

    p: float
    documents: int
    exact: bool


def randomise(
    pairs: Sequence[tuple[MetricValue, MetricValue]],
    permutations: int,
    generator: np.random.Generator,
    advance: Callable[[float], None] | None = None,
) -> Floats:
    """Approximate randomisation: two-sided p-values [pairs] of differences, under swapping the systems' outputs document by document.

    p = (1 + permutations with a difference at least as large) / (1 + permutations).

    Args:
        pairs: one metric of the two systems, for each metric and pair of systems; all of the same N documents.
        permutations: how many times outputs are swapped at random.
        generator: the source of randomness.
        advance: called with how many permutations were done.

    Source: Noreen 1989, Computer-Intensive Methods for Testing Hypotheses, section 2.
    """
    between: dict[tuple[int, int], object] = {}
    for a, b in pairs:
        between.setdefault((id(a.contributions), id(b.contributions)), b.contributions - a.contributions)
    sums = Sums([between[id(a.contributions), id(b.contributions)] for a, b in pairs])
    totals = [(_total(a), _total(b)) for a, b in pairs]
    observed = np.array([(a.combine(x) - b.combine(y))[0] for (a, b), (x, y) in zip(pairs, totals, strict=True)])
    reached = np.zeros(len(pairs))
    for block in sums.block_sizes(permutations):
        moved = sums.weigh(generator.integers(0, 2, size=(block, sums.documents)).astype(np.float64))
        for i, ((a, b), (x, y)) in enumerate(zip(pairs, totals, strict=True)):
            differences = a.combine(x + moved[i]) - b.combine(y - moved[i])
            reached[i] += (np.abs(differences) >= abs(observed[i]) - ROUNDING).sum()
        if advance is not None:
            advance(block)
    return (1.0 + reached) / (1.0 + permutations)


def _total(metric: MetricValue) -> Floats:
    return np.asarray(metric.contributions.sum(axis=0), dtype=np.float64).reshape(1, -1)


def randomise_joined(joined: WeightedMetric, difference: float, permutations: int, generator: np.random.Generator) -> float:
    """The same p for a metric of pairs of documents, such as AUC; swapping is weighing here.

    Args:
        joined: the metric on 2 N documents: those of A, and the same with the outputs of B.
        difference: A − B as observed.
        permutations: how many times outputs are swapped at random; at most `FEWER`, since each costs as much as the metric itself.
        generator: the source of randomness.
    """
    count = min(permutations, FEWER)
    swapped = generator.integers(0, 2, size=(count, joined.documents // 2)).astype(np.float64)
    ours, theirs = np.hstack([1 - swapped, swapped]), np.hstack([swapped, 1 - swapped])
    values = joined.compute(np.concatenate([ours, theirs]))
    reached = np.abs(values[:count] - values[count:]) >= abs(difference) - COARSE
    return float((1 + reached.sum()) / (1 + count))


def compare_ranks(a: Floats, b: Floats) -> SignedRank:
    """Wilcoxon's signed-rank test of values per document; documents on which either is undefined (NaN) are left out.

    Args:
        a: of the first system [N].
        b: of the second [N].
    """
    both = ~(np.isnan(a) | np.isnan(b))
    differences = np.round((a - b)[both], DIGITS)  # 0.6 - 0.4 and 0.4 - 0.2 are ties
    differences = differences[differences != 0]
    n = differences.size
    if n == 0:
        return SignedRank(p=1.0, documents=0, exact=True)
    if n > EXACT_UP_TO:
        return SignedRank(p=float(stats.wilcoxon(differences, method="approx").pvalue), documents=n, exact=False)
    return SignedRank(p=_exact_signed_rank(differences), documents=n, exact=True)


def _exact_signed_rank(differences: Floats) -> float:
    """All 2^n sign patterns by dynamic programming; twice the mid-ranks are whole numbers, so ties are exact too."""
    doubled = np.rint(2 * stats.rankdata(np.abs(differences))).astype(np.int64)
    patterns = np.zeros(int(doubled.sum()) + 1)
    patterns[0] = 1.0
    for rank in doubled:
        patterns = 0.5 * (patterns + np.concatenate([np.zeros(rank), patterns[:-rank]]))
    positive = int(doubled[differences > 0].sum())
    return float(min(1.0, 2.0 * min(patterns[: positive + 1].sum(), patterns[positive:].sum())))


def adjust_holm(p_values: Floats) -> Floats:
    """Holm's step-down adjusted p-values [n], in the order given: the family-wise error holds under any dependence (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate(p_values[order] * np.arange(p_values.size, 0, -1))
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
