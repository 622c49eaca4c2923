"""Comparing a system with others on the same documents: differences, their intervals and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from plant_cli.api.errors import DataError
from plant_cli.api.metrics import MetricValue
from plant_cli.api.output import Cell, Column, Table
from plant_cli.evaluation.bootstrap import averages_labels, interval, resample
from plant_cli.evaluation.paired import adjust_holm, compare_ranks, randomise
from plant_cli.kit.metrics import Floats, compute_value

ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One metric of system A beside system B.

    Args:
        difference: A − B, with its paired bootstrap interval `low` to `high`.
        p: approximate randomisation over documents, two-sided; `p_holm` corrected over all metrics and systems.
        wilcoxon_p: signed ranks of per-document values; None for metrics that have none.
        wilcoxon_documents: documents on which the systems differ.
        replicate_p: the published rule's p, Wilcoxon over bootstrap replicates; it shrinks with their number.
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
    replicate_p: float

    def marker(self, p: float) -> str:
        """▲ if A is better, ▼ if worse; nothing unless p < 0.05 and the interval excludes 0."""
        if p >= ALPHA or self.low <= 0 <= self.high:
            return ""
        return "▲" if self.difference > 0 else "▼"

    def print_text(self, p: float) -> str:
        """As the paper prints it, in points: `23.0▲ (+3.0, [2.1, 3.9])`."""
        value, difference, low, high = (100 * x for x in (self.value_a, self.difference, self.low, self.high))
        return f"{value:.1f}{self.marker(p)} ({difference:+.1f}, [{low:.1f}, {high:.1f}])"


def compare(
    systems: Sequence[tuple[str, Sequence[MetricValue]]],
    *,
    replicates: int,
    permutations: int,
    level: float,
    generator: np.random.Generator,
    advance: Callable[[float], None] | None = None,
) -> list[Comparison]:
    """Compare the first system with each other one, on every metric that the documents define.

    Args:
        systems: name and metrics, the same metrics in the same order, of the same documents.
        replicates: bootstrap resamples, shared by all systems.
        permutations: random swaps of approximate randomisation.
        level: coverage of the intervals.
        generator: the source of randomness.
        advance: called with how many resamples and permutations were done.

    Raises:
        DataError: no metric is defined on these documents.
    """
    systems = _keep_defined(systems)
    (name_a, metrics_a), others = systems[0], systems[1:]
    drawn = resample([m for _, metrics in systems for m in metrics], replicates, generator, advance)
    drawn = drawn.reshape(len(systems), len(metrics_a), replicates)
    pairs = [(a, b) for _, metrics in others for a, b in zip(metrics_a, metrics, strict=True)]
    p_values = randomise(pairs, permutations, generator, advance)
    corrected = adjust_holm(p_values)
    comparisons = []
    for i, (a, b) in enumerate(pairs):
        system, metric = divmod(i, len(metrics_a))
        moved = drawn[0, metric] - drawn[system + 1, metric]
        moved = moved[~np.isnan(moved)]
        comparisons.append(_compare_pair(a, b, (name_a, others[system][0]), moved, level, float(p_values[i]), float(corrected[i])))
    return comparisons


def _keep_defined(systems: Sequence[tuple[str, Sequence[MetricValue]]]) -> list[tuple[str, list[MetricValue]]]:
    """Without metrics that these documents leave undefined: whether they are depends on gold alone."""
    defined = {m.name for m in systems[0][1] if not np.isnan(compute_value(m))}
    if not defined:
        raise DataError(
            "these documents define none of the metrics",
            where=", ".join(m.name for m in systems[0][1]),
            expected="gold labels that the metric is about",
            todo="choose other metrics with --metric",
        )
    return [(name, [m for m in metrics if m.name in defined]) for name, metrics in systems]


def _compare_pair(
    a: MetricValue, b: MetricValue, names: tuple[str, str], moved: Floats, level: float, p: float, p_holm: float
) -> Comparison:
    value_a, value_b = compute_value(a), compute_value(b)
    low, high = interval(value_a - value_b, moved, level, per_label=averages_labels(a), within=(-1.0, 1.0))
    ranks = compare_ranks(a.per_document, b.per_document) if a.per_document is not None and b.per_document is not None else None
    return Comparison(
        metric=a.name,
        a=names[0],
        b=names[1],
        value_a=value_a,
        value_b=value_b,
        difference=value_a - value_b,
        low=low,
        high=high,
        p=p,
        p_holm=p_holm,
        wilcoxon_p=ranks.p if ranks else None,
        wilcoxon_documents=ranks.documents if ranks else None,
        wilcoxon_exact=ranks.exact if ranks else None,
        replicate_p=float(stats.wilcoxon(moved, method="approx").pvalue) if np.any(moved) else 1.0,
    )


def as_json(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The comparisons for significance.json: fractions, and the text with its marker by the corrected p."""
    return [{**asdict(c), "text": c.print_text(c.p_holm), "text_paper": c.print_text(c.replicate_p)} for c in comparisons]


def make_table(comparisons: Sequence[Comparison], *, paper: bool, notes: Sequence[str]) -> Table:
    """One table of the comparisons of two systems.

    Args:
        comparisons: of one pair of systems.
        paper: mark by the published rule (Wilcoxon over bootstrap replicates) and not by the corrected p.
        notes: lines under the table.
    """
    first = comparisons[0]
    columns = [Column(name="metric"), Column(name=f"A {first.a}", kind="points"), Column(name=f"B {first.b}", kind="points")]
    columns += [Column(name=name, kind="points") for name in ("A - B", "low", "high")]
    names = ("p (replicates)",) if paper else ("p", "p Holm", "p Wilcoxon")
    columns += [*(Column(name=name, kind="exact") for name in names), Column(name="A (A - B, interval)")]
    rows: list[list[Cell]] = []
    for c in comparisons:
        values = (c.replicate_p,) if paper else (c.p, c.p_holm, c.wilcoxon_p)
        rounded: list[Cell] = [None if p is None else float(f"{p:.2g}") for p in values]
        text = c.print_text(c.replicate_p if paper else c.p_holm)
        rows.append([c.metric, c.value_a, c.value_b, c.difference, c.low, c.high, *rounded, text])
    return Table(title=f"{first.a} against {first.b}", columns=columns, rows=rows, notes=notes)
