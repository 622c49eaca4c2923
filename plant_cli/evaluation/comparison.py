"""Comparing a system with others on the same documents: differences, their intervals and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from scipy import stats

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.errors import DataError
from plant_cli.api.metrics import Metric, MetricValue, WeightedMetric
from plant_cli.evaluation.bootstrap import (
    SignedRank,
    adjust_holm,
    averages_labels,
    compare_ranks,
    interval,
    jackknife,
    leave_out,
    randomise,
    randomise_joined,
    resample,
    weigh,
)
from plant_cli.evaluation.counters import ROUNDING, Floats, compute_value

ALPHA, POWER = 0.05, 0.8
REACH = NormalDist().inv_cdf(1 - ALPHA / 2) + NormalDist().inv_cdf(POWER)  # standard errors
POINT = 0.01
Joined = Mapping[tuple[str, str], WeightedMetric]  # by the other system's name and the metric's


@dataclass(frozen=True, kw_only=True)
class Published:
    """One metric by the rule of the paper: nothing is corrected or moved.

    Args:
        gain: mean over replicates of A − B, with the plain percentiles `low` to `high`.
        p: Wilcoxon's signed ranks over documents for metrics that have a value for each, over replicates for F1 and AUC.
        over: which of the two; over replicates p shrinks with their number, which is not evidence.
    """

    gain: float
    low: float
    high: float
    p: float
    over: Literal["documents", "replicates"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One metric of system A beside system B.

    Args:
        difference: A − B, with its paired bootstrap interval `low` to `high`.
        p: approximate randomisation over documents, two-sided; `p_holm` corrected over all metrics and systems.
        wilcoxon_p: signed ranks of per-document values; None for metrics that have none.
        wilcoxon_documents: documents on which the systems differ.
        better, worse: documents on which A, or B, has the higher value; None for metrics without a value for each.
        effect: mean of the per-document differences over their standard deviation (Cohen's d of pairs); None where that is 0 or unknown.
        documents_for_a_point: documents it would take to see a difference of one point, in four of five test sets; None: they do not vary.
        published: the same by the rule of the paper.
    """

    metric: str
    a: str
    b: str
    value_a: float
    value_b: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    wilcoxon_p: float | None
    wilcoxon_documents: int | None
    wilcoxon_exact: bool | None
    better: int | None
    worse: int | None
    effect: float | None
    documents_for_a_point: int | None
    published: Published

    def print_text(self, p: float) -> str:
        """As the paper prints it, in points, marked if p < 0.05 and the interval excludes 0: `23.0▲ (+3.0, [2.1, 3.9])`."""
        return _print_text(self.value_a, self.difference, (self.low, self.high), p)

    def print_published(self) -> str:
        """The same by the rule of the paper."""
        return _print_text(self.value_a, self.published.gain, (self.published.low, self.published.high), self.published.p)


def _print_text(value: float, difference: float, bounds: tuple[float, float], p: float) -> str:
    significant = p < ALPHA and not bounds[0] <= 0 <= bounds[1]
    marker = "" if not significant else "▲" if difference > 0 else "▼"
    return f"{100 * value:.1f}{marker} ({100 * difference:+.1f}, [{100 * bounds[0]:.1f}, {100 * bounds[1]:.1f}])"


def compare(
    systems: Sequence[tuple[str, Sequence[Metric]]],
    *,
    replicates: int,
    permutations: int,
    level: float,
    generator: np.random.Generator,
    joined: Joined | None = None,
    advance: Callable[[float], None] | None = None,
) -> list[Comparison]:
    """Compare the first system with each other one, on every metric that the documents define.

    Args:
        systems: name and metrics, the same metrics in the same order, of the same documents.
        replicates: bootstrap resamples, shared by all systems.
        permutations: random swaps of approximate randomisation.
        level: coverage of the intervals.
        generator: the source of randomness.
        joined: each metric that no sums over documents give (AUC), on the documents of the first system followed by those of another.
        advance: called with how many resamples and permutations were done.

    Raises:
        DataError: no metric is defined on these documents.
    """
    values, drawn = _draw([m for _, metrics in systems for m in metrics], replicates, generator, advance)
    shape = (len(systems), len(systems[0][1]))
    values, drawn = values.reshape(shape), drawn.reshape(*shape, replicates)
    without = [leave_out([m for m in metrics if averages_labels(m)]) for _, metrics in systems]
    errors = {m.name: without[0][i] - np.array([w[i] for w in without[1:]]) for i, m in enumerate(filter(averages_labels, systems[0][1]))}
    pairs = [
        _Pair(
            names=(systems[0][0], name),
            a=a,
            b=b,
            values=(values[0, i], values[system, i]),
            moved=drawn[0, i] - drawn[system, i],
            error=jackknife(errors[a.name][system - 1]) if a.name in errors else None,
        )
        for system, (name, metrics) in enumerate(systems[1:], start=1)
        for i, (a, b) in enumerate(zip(systems[0][1], metrics, strict=True))
        if not np.isnan(values[0, i])  # whether documents define a metric depends on gold alone
    ]
    if not pairs:
        raise DataError(
            "these documents define none of the metrics",
            where=", ".join(m.name for m in systems[0][1]),
            expected="gold labels that the metric is about",
            todo="choose other metrics with --metric",
        )
    p_values = _test(pairs, joined or {}, permutations, generator, advance)
    corrected = adjust_holm(p_values)
    return [_compare_pair(pair, level, float(p), float(holm)) for pair, p, holm in zip(pairs, p_values, corrected, strict=True)]


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """One metric of two systems, their values, and the difference in the resamples [replicates], NaN where one leaves it undefined.

    Of averages over labels also the standard error of the difference by the jackknife.
    """

    names: tuple[str, str]
    a: Metric
    b: Metric
    values: tuple[float, float]
    moved: Floats
    error: float | None

    @property
    def difference(self) -> float:
        return float(self.values[0] - self.values[1])

    @property
    def defined(self) -> Floats:
        return self.moved[~np.isnan(self.moved)]


def _draw(
    metrics: Sequence[Metric], replicates: int, generator: np.random.Generator, advance: Callable[[float], None] | None
) -> tuple[Floats, Floats]:
    """Every metric on the documents as they are [metrics], and on the same resamples of them [metrics, replicates]."""
    same = deepcopy(generator)
    values, drawn = np.empty(len(metrics)), np.empty((len(metrics), replicates))
    sums = {i: m for i, m in enumerate(metrics) if isinstance(m, MetricValue)}
    if sums:
        values[list(sums)] = [compute_value(m) for m in sums.values()]
        drawn[list(sums)] = resample(list(sums.values()), replicates, generator, advance)
    for i, metric in enumerate(metrics):
        if isinstance(metric, WeightedMetric):
            values[i], drawn[i] = weigh(metric, replicates, deepcopy(same))
    return values, drawn


def _test(
    pairs: Sequence[_Pair],
    joined: Joined,
    permutations: int,
    generator: np.random.Generator,
    advance: Callable[[float], None] | None,
) -> Floats:
    """The p of every pair, by swapping outputs of the two systems document by document."""
    sums = {i: (p.a, p.b) for i, p in enumerate(pairs) if isinstance(p.a, MetricValue) and isinstance(p.b, MetricValue)}
    p_values = np.ones(len(pairs))
    if sums:
        p_values[list(sums)] = randomise(list(sums.values()), permutations, generator, advance)
    for i, pair in enumerate(pairs):
        if i not in sums:
            p_values[i] = randomise_joined(joined[pair.names[1], pair.a.name], pair.difference, permutations, generator)
    return p_values


def _compare_pair(pair: _Pair, level: float, p: float, p_holm: float) -> Comparison:
    a, b, moved = pair.a, pair.b, pair.defined
    low, high = interval(pair.difference, moved, level, error=pair.error, within=(-1.0, 1.0))
    documents = _subtract_documents(a, b)
    ranks = None if documents is None else compare_ranks(documents, np.zeros_like(documents))
    spread = 0.0 if documents is None or documents.size < 2 else float(np.std(documents, ddof=1))
    return Comparison(
        metric=a.name,
        a=pair.names[0],
        b=pair.names[1],
        value_a=float(pair.values[0]),
        value_b=float(pair.values[1]),
        difference=pair.difference,
        low=low,
        high=high,
        p=p,
        p_holm=p_holm,
        wilcoxon_p=ranks.p if ranks else None,
        wilcoxon_documents=ranks.documents if ranks else None,
        wilcoxon_exact=ranks.exact if ranks else None,
        better=None if documents is None else int((documents > ROUNDING).sum()),
        worse=None if documents is None else int((documents < -ROUNDING).sum()),
        effect=float(np.mean(documents)) / spread if documents is not None and spread > ROUNDING else None,
        documents_for_a_point=needed_documents(_count(a), max(float(np.std(moved)) if moved.size else 0.0, pair.error or 0.0)),
        published=_publish(moved, level, ranks),
    )


def _subtract_documents(a: Metric, b: Metric) -> Floats | None:
    """A − B on every document that defines both; None for metrics without a value for each."""
    if not (isinstance(a, MetricValue) and isinstance(b, MetricValue)) or a.per_document is None or b.per_document is None:
        return None
    differences = a.per_document - b.per_document
    return differences[~np.isnan(differences)]


def _count(metric: Metric) -> int:
    return int(metric.contributions.shape[0]) if isinstance(metric, MetricValue) else metric.documents


def needed_documents(documents: int, error: float, difference: float = POINT) -> int | None:
    """How many documents show a true difference at p < 0.05 in four of five test sets; None where the difference does not vary.

    The standard error of a difference falls with the root of the number of documents. A two-sided test at 5% has a power of 80% where the
    difference is 1.96 + 0.84 standard errors.

    Args:
        documents: how many there were.
        error: standard error of the difference between the systems on these.
        difference: what should be seen, a fraction.
    """
    return int(np.ceil(documents * (REACH * error / difference) ** 2)) or None


def _publish(moved: Floats, level: float, ranks: SignedRank | None) -> Published:
    low, high = interval(0.0, moved, level)
    gain = float(moved.mean()) if moved.size else np.nan
    if ranks is not None:
        return Published(gain=gain, low=low, high=high, p=ranks.p, over="documents")
    p = float(stats.wilcoxon(moved, method="approx").pvalue) if np.any(moved) else 1.0
    return Published(gain=gain, low=low, high=high, p=p, over="replicates")


def measure_gates(comparisons: Sequence[Comparison], *, paper: bool) -> dict[str, float | None]:
    """What a requirement may name: `p` of everything, `p[P@5]` and `difference[P@5]`; over several systems the worst.

    Args:
        comparisons: all of them.
        paper: take p by the published rule, and not the corrected one. Where A is not better, p counts as 1.
    """
    values: dict[str, float | None] = {}
    for c in comparisons:
        p = (c.published.p if paper else c.p_holm) if c.difference > 0 else 1.0
        for name in ("p", f"p[{c.metric}]"):
            values[name] = max(p, values.get(name) or 0.0)
        name = f"difference[{c.metric}]"
        values[name] = min(c.difference, found) if (found := values.get(name)) is not None else c.difference
    return values


def as_json(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The comparisons for significance.json: fractions, and the text with its marker by the corrected p, and by the published rule."""
    return [{**asdict(c), "text": c.print_text(c.p_holm), "text_paper": c.print_published()} for c in comparisons]


def make_table(comparisons: Sequence[Comparison], *, paper: bool, notes: Sequence[str]) -> Table:
    """One table of the comparisons of two systems.

    Args:
        comparisons: of one pair of systems.
        paper: by the published rule, and not by the corrected p.
        notes: lines under the table.
    """
    first = comparisons[0]
    points = (f"A {first.a}", f"B {first.b}", "gain" if paper else "A - B", "low", "high")
    exact = ("p",) if paper else ("p", "p Holm", "p Wilcoxon", "effect")
    last = (Column(name="Wilcoxon over"),) if paper else (Column(name="documents for 1 point", kind="count"),)
    columns = [Column(name="metric"), *(Column(name=name, kind="points") for name in points)]
    columns += [*(Column(name=name, kind="exact") for name in exact), *last, Column(name="A (A - B, interval)")]
    rows = [_make_row(c, paper=paper) for c in comparisons]
    return Table(title=f"{first.a} against {first.b}", columns=columns, rows=rows, notes=notes)


def _make_row(c: Comparison, *, paper: bool) -> list[Cell]:
    if paper:
        rule = c.published
        return [c.metric, c.value_a, c.value_b, rule.gain, rule.low, rule.high, _round(rule.p), rule.over, c.print_published()]
    exact = [_round(value) for value in (c.p, c.p_holm, c.wilcoxon_p, c.effect)]
    return [c.metric, c.value_a, c.value_b, c.difference, c.low, c.high, *exact, c.documents_for_a_point, c.print_text(c.p_holm)]


def _round(value: float | None) -> Cell:
    return None if value is None else float(f"{value:.2g}")
