"""Differences between systems that were measured on the same documents: how large, how sure, and
how much they vary over seeds.

All of it is rows of significance.json: a `Difference` for each metric and pair of systems, a
`Spread` for each metric and system over seeds, and a `SeedDifference` for each metric and pair,
seed by seed. System A is always the first one. Values are fractions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
from scipy import stats

from plant_cli.api import Column, DataError, Metric, MetricValue, Reporter, Table, WeightedMetric
from plant_cli.api.context import Cell
from plant_cli.evaluation.bootstrap import (
    Advance,
    adjust_holm,
    averages_labels,
    compare_ranks,
    interval,
    jackknife,
    leave_out,
    measure_and_resample,
    randomise,
    randomise_joined,
)
from plant_cli.evaluation.counters import ROUNDING, Families, Floats, compute_value, round_figures
from plant_cli.evaluation.measurement import Systems, average_seeds, join_metrics

ALPHA, POWER = 0.05, 0.8
REACH = NormalDist().inv_cdf(1 - ALPHA / 2) + NormalDist().inv_cdf(POWER)  # standard errors
POINT = 0.01
Joined = Mapping[tuple[str, str], WeightedMetric]  # by the other system's name and the metric's


class Published(TypedDict):
    """A difference by the rule of the paper: nothing is corrected or moved."""

    gain: float  # mean over replicates of A − B, with plain percentiles
    low: float
    high: float
    # Wilcoxon's signed ranks over documents for metrics that have a value for each, over replicates
    # for F1 and AUC
    p: float
    over: Literal[
        "documents", "replicates"
    ]  # over replicates p shrinks with their number, which is not evidence


class Difference(TypedDict):
    """One metric of system A beside system B; what needs a value for each document is None for
    other metrics.
    """

    metric: str
    a: str
    b: str
    value_a: float
    value_b: float
    difference: float  # A − B, with its paired bootstrap interval
    low: float
    high: float
    p: float  # approximate randomisation over documents, two-sided
    p_holm: float  # corrected over all metrics and systems
    wilcoxon_p: float | None  # signed ranks of per-document values
    wilcoxon_documents: int | None  # documents on which the systems differ
    wilcoxon_exact: bool | None
    lower_is_better: NotRequired[
        bool
    ]  # true for a loss: A is better where the difference is below 0
    better: int | None  # documents on which A has the better value
    worse: int | None  # and B
    effect: (
        float | None
    )  # mean of the per-document differences over their standard deviation (Cohen's d of pairs)
    documents_for_a_point: (
        int | None
        # test documents needed to detect a difference of 1 point with 80% power; None: no document
        # differs
    )
    published: Published
    text: str  # see `print_text`, marked by `p_holm`
    text_paper: str  # marked by the published rule


SIGNIFICANCE = "significance.json"  # what the stage of that name writes


class Spread(TypedDict):
    """One metric of one system over its seeds."""

    metric: str
    system: str
    values: list[float]  # one a seed
    mean: float
    spread: float  # sample standard deviation (divided by seeds - 1)
    lowest: float
    highest: float


class SeedDifference(TypedDict):
    """One metric of system A beside system B, seed by seed."""

    metric: str
    a: str
    b: str
    differences: list[float]  # A - B, one a seed
    difference: float  # their mean, with its t interval of seeds - 1 degrees of freedom
    spread: float  # their sample standard deviation
    low: float
    high: float


def compare_systems(
    measured: Systems,
    families: Families,
    *,
    replicates: int,
    permutations: int,
    level: float,
    seed: int,
    reporter: Reporter,
) -> list[Difference]:
    """The first system beside each other one; of several seeds the means. See
    `compare_metrics`: all have the same ones (`keep_shared`).
    """
    systems = [
        (
            name,
            average_seeds([one.metrics for one in seeds]) if len(seeds) > 1 else seeds[0].metrics,
        )
        for name, seeds in measured
    ]
    with reporter.progress("resampling documents", replicates + permutations, "resamples") as task:
        return compare_metrics(
            systems,
            replicates=replicates,
            permutations=permutations,
            level=level,
            generator=np.random.default_rng(seed),
            joined=join_metrics(measured, families),
            advance=task.advance,
        )


def compare_metrics(
    systems: Sequence[tuple[str, Sequence[Metric]]],
    *,
    replicates: int,
    permutations: int,
    level: float,
    generator: np.random.Generator,
    joined: Joined | None = None,
    advance: Advance | None = None,
) -> list[Difference]:
    """Compare the first system with each other one, on every metric that the documents define.

    Args:
        systems: name and metrics, the same metrics in the same order, of the same documents.
        replicates: bootstrap resamples, shared by all systems.
        permutations: random swaps of approximate randomisation.
        joined: metrics of pairs, such as AUC, on the documents of the first system followed by
            those of another.
    """
    names, first, count = [name for name, _ in systems], systems[0][1], len(systems[0][1])
    values, drawn = measure_and_resample(
        [m for _, metrics in systems for m in metrics], replicates, generator, advance
    )
    values, drawn = values.reshape(-1, count), drawn.reshape(-1, count, replicates)
    averages = [i for i, metric in enumerate(first) if averages_labels(metric)]
    left_out = [
        dict(zip(averages, leave_out([metrics[i] for i in averages]), strict=True))
        for _, metrics in systems
    ]
    # whether documents define a metric depends on gold alone
    pairs = [
        (other, i)
        for other in range(1, len(systems))
        for i in range(count)
        if not np.isnan(values[0, i])
    ]
    if not pairs:
        expected, todo = (
            "gold labels that the metric is about",
            "choose other metrics with --metric",
        )
        raise DataError(
            "these documents define none of the metrics",
            where=", ".join(m.name for m in first),
            expected=expected,
            todo=todo,
        )
    both = [(first[i], systems[other][1][i]) for other, i in pairs]
    sums = {
        n: (a, b)
        for n, (a, b) in enumerate(both)
        if isinstance(a, MetricValue) and isinstance(b, MetricValue)
    }
    p_values = np.ones(len(pairs))
    if sums:
        p_values[list(sums)] = randomise(list(sums.values()), permutations, generator, advance)
    for n, (other, i) in enumerate(pairs):
        if n not in sums:
            metric = (joined or {})[names[other], first[i].name]
            p_values[n] = randomise_joined(
                metric, float(values[0, i] - values[other, i]), permutations, generator
            )
    corrected = adjust_holm(p_values)
    return [
        _describe(
            both[n],
            (names[0], names[other]),
            (float(values[0, i]), float(values[other, i])),
            drawn[0, i] - drawn[other, i],
            level,
            jackknife(left_out[0][i] - left_out[other][i]) if i in left_out[0] else None,
            (float(p_values[n]), float(corrected[n])),
        )
        for n, (other, i) in enumerate(pairs)
    ]


def _describe(
    both: tuple[Metric, Metric],
    names: tuple[str, str],
    values: tuple[float, float],
    moved: Floats,
    level: float,
    error: float | None,
    p_values: tuple[float, float],
) -> Difference:
    """A metric of two systems from values, the difference in resamples, its jackknife error and
    its p, raw and corrected.
    """
    (a, b), moved, difference = both, moved[~np.isnan(moved)], values[0] - values[1]
    low, high = interval(difference, moved, level, error=error, within=(-1.0, 1.0))
    plain_low, plain_high = interval(0.0, moved, level)
    gain = float(moved.mean()) if moved.size else np.nan
    documents = _subtract_documents(a, b)
    ranks = None if documents is None else compare_ranks(documents, np.zeros_like(documents))
    spread = 0.0 if documents is None or documents.size < 2 else float(np.std(documents, ddof=1))
    if ranks is not None:
        published = Published(
            gain=gain, low=plain_low, high=plain_high, p=ranks.p, over="documents"
        )
    else:
        p = float(stats.wilcoxon(moved, method="approx").pvalue) if np.any(moved) else 1.0
        published = Published(gain=gain, low=plain_low, high=plain_high, p=p, over="replicates")
    counted = int(a.contributions.shape[0]) if isinstance(a, MetricValue) else a.documents
    gains, falls = documents, isinstance(a, MetricValue) and a.lower_is_better
    if gains is not None and falls:
        gains = -gains
    row = Difference(
        metric=a.name,
        a=names[0],
        b=names[1],
        value_a=values[0],
        value_b=values[1],
        difference=difference,
        low=low,
        high=high,
        p=p_values[0],
        p_holm=p_values[1],
        wilcoxon_p=ranks.p if ranks else None,
        wilcoxon_documents=ranks.documents if ranks else None,
        wilcoxon_exact=ranks.exact if ranks else None,
        better=None if gains is None else int((gains > ROUNDING).sum()),
        worse=None if gains is None else int((gains < -ROUNDING).sum()),
        effect=float(np.mean(documents)) / spread
        if documents is not None and spread > ROUNDING
        else None,
        documents_for_a_point=needed_documents(
            counted, max(float(np.std(moved)) if moved.size else 0.0, error or 0.0)
        ),
        published=published,
        text=print_text(values[0], difference, low, high, p_values[1], falls=falls),
        text_paper=print_text(values[0], gain, plain_low, plain_high, published["p"], falls=falls),
    )
    if falls:
        row["lower_is_better"] = True
    return row


def print_text(
    value: float, difference: float, low: float, high: float, p: float, *, falls: bool = False
) -> str:
    """As the paper prints it, in points, marked if p < 0.05 and the interval excludes 0: `23.0▲
    (+3.0, [2.1, 3.9])`; a loss `falls`.
    """
    significant = p < ALPHA and not low <= 0 <= high
    marker = "" if not significant else "▲" if (difference > 0) != falls else "▼"
    return (
        f"{100 * value:.1f}{marker} "
        f"({100 * difference:+z.1f}, [{100 * low:z.1f}, {100 * high:z.1f}])"
    )


def _subtract_documents(a: Metric, b: Metric) -> Floats | None:
    """A − B on every document that defines both; None for metrics without a value for each."""
    if (
        not (isinstance(a, MetricValue) and isinstance(b, MetricValue))
        or a.per_document is None
        or b.per_document is None
    ):
        return None
    differences = a.per_document - b.per_document
    return differences[~np.isnan(differences)]


def needed_documents(documents: int, error: float) -> int | None:
    """How many test documents detect a true difference of a point at p < 0.05 with a power of 80%;
    None where it does not vary.

    The standard error of a difference falls with the root of the number of documents. A two-sided
    test at 5% has a power of 80% where the difference is 1.96 + 0.84 standard errors.

    Args:
        documents: how many there were.
        error: standard error of the difference between the systems on these.
    """
    return int(np.ceil(documents * (REACH * error / POINT) ** 2)) or None


def gate_names(metrics: Iterable[str]) -> list[str]:
    """What a requirement may name, of some metrics; see `measure_gates`."""
    return ["p", *(f"{kind}[{metric}]" for metric in metrics for kind in ("p", "difference"))]


def measure_gates(differences: Sequence[Difference], *, paper: bool) -> dict[str, float | None]:
    """What a requirement may name: `p` of everything, `p[P@5]` and `difference[P@5]`; over several
    systems the worst.

    p is the corrected one, or that of the published rule (`paper`). Where A is not better, p counts
    as 1. Of a loss the worst difference is the largest.
    """
    values: dict[str, float | None] = {}
    for row in differences:
        falls = row.get("lower_is_better", False)
        p = (
            (row["published"]["p"] if paper else row["p_holm"])
            if (-row["difference"] if falls else row["difference"]) > 0
            else 1.0
        )
        for name in ("p", f"p[{row['metric']}]"):
            values[name] = max(p, values.get(name) or 0.0)
        name = f"difference[{row['metric']}]"
        worst = max if falls else min
        values[name] = (
            row["difference"]
            if (known := values.get(name)) is None
            else worst(row["difference"], known)
        )
    return values


def make_overview(
    differences: Sequence[Difference],
    names: Mapping[str, str],
    notes: Sequence[str],
    *,
    paper: bool,
    spreads: Sequence[Spread] = (),
) -> Table:
    """One table of all systems: a row for each, the first one first; a cell is marked where the
    system differs from the first one.

    Args:
        names: of the systems, as they are shown.
        notes: further lines under the table.
        paper: mark by the published rule, and not by the corrected p.
        spreads: of the metrics over seeds; none: one seed.
    """
    first, metrics = differences[0]["a"], list(dict.fromkeys(row["metric"] for row in differences))
    spread = {(row["system"], row["metric"]): f" ±{100 * row['spread']:.1f}" for row in spreads}
    cells = {(first, row["metric"]): f"{100 * row['value_a']:.1f}" for row in differences}
    cells |= {
        (row["b"], row["metric"]): f"{100 * row['value_b']:.1f}{mark_other(row, paper=paper)}"
        for row in differences
    }
    systems = [first, *dict.fromkeys(row["b"] for row in differences)]
    rule = (
        "by the published rule, which corrects for nothing"
        if paper
        else "after Holm over all metrics and systems of the table"
    )
    same = [
        names[b]
        for b in systems[1:]
        if not any(row["difference"] for row in differences if row["b"] == b)
    ]
    return Table(
        title=f"{len(systems)} systems",
        columns=[Column(name="system"), *(Column(name=metric, kind="exact") for metric in metrics)],
        rows=[
            [names[one], *(cells.get((one, m), "") + spread.get((one, m), "") for m in metrics)]
            for one in systems
        ],
        notes=[
            f"in points; ▲ better, ▼ worse than {names[first]}: p < 0.05 {rule}, and the interval "
            "of the difference excludes 0",
            *(["±: sample standard deviation over the seeds"] if spreads else []),
            *(f"{name} has the same figures as {names[first]} in every metric" for name in same),
            *notes,
        ],
    )


def mark_other(row: Mapping[str, Any], *, paper: bool) -> str:
    """The mark of system B; the printed text has that of A."""
    text = row["text_paper" if paper else "text"]
    return "▼" if "▲" in text else "▲" if "▼" in text else ""


def make_difference_tables(
    differences: Sequence[Difference],
    names: Mapping[str, str],
    notes: Sequence[str],
    *,
    paper: bool,
    level: float,
    resamples: str,
) -> list[Table]:
    """A table for each other system.

    Args:
        names: of the systems, as they are shown.
        notes: further lines under each table.
        paper: by the published rule, and not by the corrected p.
        resamples: how many, and with which seed, in words.
    """
    if paper:
        rule = [
            "▲ A is better, ▼ A is worse: p < 0.05 and the interval excludes 0, as published; "
            "not corrected for the number of metrics",
            f"gain: mean over replicates; {100 * level:g}% plain percentiles of {resamples}",
            "Wilcoxon over replicates (F1, AUC): its p shrinks as --bootstrap grows, which is no "
            "evidence: read the interval",
        ]
    else:
        rule = [
            "▲ A is better, ▼ A is worse: p < 0.05 after Holm and the interval excludes 0",
            "p: approximate randomisation over documents; Holm: corrected over all metrics and "
            "systems shown; "
            "Wilcoxon: per document; effect: mean difference of a document over its standard "
            "deviation",
            "documents for 1 point: test documents needed to detect a difference of 1 point with "
            "80% power",
            f"{100 * level:g}% intervals from {resamples}",
        ]
    a = names[differences[0]["a"]]
    exact = ("p",) if paper else ("p", "p Holm", "p Wilcoxon", "effect")
    last = (
        Column(name="Wilcoxon over")
        if paper
        else Column(name="documents for 1 point", kind="count")
    )
    tables = []
    for other in dict.fromkeys(row["b"] for row in differences):
        b = names[other]
        points = (f"A {a}", f"B {b}", "gain" if paper else "A - B", "low", "high")
        columns = [Column(name="metric"), *(Column(name=name, kind="points") for name in points)]
        columns += [
            *(Column(name=name, kind="exact") for name in exact),
            last,
            Column(name="A (A - B, interval)"),
        ]
        rows = [_make_row(row, paper=paper) for row in differences if row["b"] == other]
        tables.append(
            Table(title=f"{a} against {b}", columns=columns, rows=rows, notes=[*rule, *notes])
        )
    return tables


def _make_row(row: Difference, *, paper: bool) -> list[Cell]:
    values: list[Cell] = [row["metric"], row["value_a"], row["value_b"]]
    if paper:
        rule = row["published"]
        return [
            *values,
            rule["gain"],
            rule["low"],
            rule["high"],
            round_figures(rule["p"], 2),
            rule["over"],
            row["text_paper"],
        ]
    exact = [
        round_figures(value, 2)
        for value in (row["p"], row["p_holm"], row["wilcoxon_p"], row["effect"])
    ]
    return [
        *values,
        row["difference"],
        row["low"],
        row["high"],
        *exact,
        row["documents_for_a_point"],
        row["text"],
    ]


def summarise_seeds(measured: Systems) -> list[Spread]:
    """The spread of every defined metric of every system, metric by metric."""
    spreads = []
    for number, metric in enumerate(measured[0][1][0].metrics):
        for name, seeds in measured:
            values = np.array([compute_value(one.metrics[number]) for one in seeds])
            if np.isnan(values).any():
                continue
            spread = Spread(
                metric=metric.name,
                system=name,
                values=values.tolist(),
                mean=float(values.mean()),
                spread=float(values.std(ddof=1)),
                lowest=float(values.min()),
                highest=float(values.max()),
            )
            spreads.append(spread)
    return spreads


def compare_seeds(spreads: Sequence[Spread], level: float) -> list[SeedDifference]:
    """The first system of each metric beside the others, paired by seed; `level` is the
    coverage of the t intervals.
    """
    firsts: dict[str, Spread] = {}
    rows = []
    for other in spreads:
        first = firsts.setdefault(other["metric"], other)
        if first is other:
            continue
        differences = np.array(first["values"]) - np.array(other["values"])
        mean, spread, seeds = (
            float(differences.mean()),
            float(differences.std(ddof=1)),
            differences.size,
        )
        reach = float(stats.t.ppf((1 + level) / 2, seeds - 1)) * spread / float(np.sqrt(seeds))
        row = SeedDifference(
            metric=first["metric"],
            a=first["system"],
            b=other["system"],
            differences=differences.tolist(),
            difference=mean,
            spread=spread,
            low=mean - reach,
            high=mean + reach,
        )
        rows.append(row)
    return rows


def make_seed_tables(
    spreads: Sequence[Spread],
    differences: Sequence[SeedDifference],
    names: Mapping[str, str],
    seeds: Sequence[int],
    level: float,
    conditions: str,
) -> list[Table]:
    """A table of every metric and system over the seeds, and one of the differences to each other
    system, seed by seed.

    Args:
        names: of the systems, as they are shown.
        conditions: which documents and labels count, and by which convention.
    """
    listed = ", ".join(map(str, seeds))
    figures = ("mean", "spread", "lowest", "highest")
    rows: list[list[Cell]] = [
        [s["metric"], names[s["system"]], s["mean"], s["spread"], s["lowest"], s["highest"]]
        for s in spreads
    ]
    columns = [
        Column(name="metric"),
        Column(name="system"),
        *(Column(name=name, kind="points") for name in figures),
    ]
    notes = [f"seeds {listed}; spread: sample standard deviation", conditions]
    tables = [Table(title=f"Over {len(seeds)} seeds", columns=columns, rows=rows, notes=notes)]
    columns = [
        Column(name="metric"),
        *(Column(name=name, kind="points") for name in ("A - B", "spread", "low", "high")),
    ]
    notes = [
        f"{100 * level:g}% t interval of the mean difference over {len(seeds)} seeds "
        f"({len(seeds) - 1} degrees of freedom), paired by "
        "seed: what training at random may change, on these documents",
        f"{conditions}; seeds {listed}",
    ]
    for other in dict.fromkeys(row["b"] for row in differences):
        these = [row for row in differences if row["b"] == other]
        rows = [
            [
                d["metric"],
                d["difference"],
                d["spread"],
                d["low"],
                d["high"],
                f"{sum(x > 0 for x in d['differences'])} of {len(seeds)}",
            ]
            for d in these
        ]
        title = f"{names[these[0]['a']]} against {names[other]}, seed by seed"
        tables.append(
            Table(
                title=title,
                columns=[*columns, Column(name="A is better in")],
                rows=rows,
                notes=notes,
            )
        )
    return tables
