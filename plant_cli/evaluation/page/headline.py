"""The headline of a report: what is compared, every system's metrics with intervals, and whether differences are real."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api.output import Cell, Column, Table
from plant_cli.artefacts.metrics import Bound
from plant_cli.evaluation.comparison import Comparison
from plant_cli.evaluation.options import DEFAULT_METRICS
from plant_cli.evaluation.page.charts import Axis, Figure, Section, Series
from plant_cli.evaluation.page.evaluated import Evaluated

DRAWN = ("P@5", "R@50", "micro-F1", "macro-F1", "R@50[1-5]")
UNIT = "points (0 to 100)"


def describe_systems(systems: Sequence[Evaluated]) -> Table:
    """What each system is: its network and scorers, what it was trained on, its seed and threshold."""
    columns = [Column(name="system"), Column(name="trained on", kind="count"), Column(name="network"), Column(name="attention")]
    columns += [Column(name="scorers"), Column(name="seed"), Column(name="threshold")]
    rows: list[list[Cell]] = []
    for system in systems:
        trained = system.trained
        if trained is None:
            rows.append([system.name, None, _describe_untrained(system), "", "", None, system.metrics.threshold])
            continue
        model, has_network = trained.sections.get("model", {}), trained.options.get("network", True)
        network = " + ".join(_name(model.get(part)) for part in ("backbone", "decoder")) if has_network else "none"
        scorers = ", ".join(trained.summary.get("scorers") or []) or "none"
        init = str(trained.options.get("init", "")) if has_network else "none"
        rows.append([system.name, system.documents.get("train"), network, init, scorers, str(trained.seed), system.metrics.threshold])
    notes = ["trained on: training documents; attention: planted by stage 1, or random", systems[0].conditions]
    notes += [
        f"LEAKAGE: '{system.name}' saw validation and test documents in training (plant mig --allow-leakage): its figures are too good"
        for system in systems
        if system.metrics.leakage
    ]
    return Table(title="What is compared", columns=columns, rows=rows, notes=notes)


def _describe_untrained(system: Evaluated) -> str:
    if system.foreign is not None:
        return f"another tool ({system.foreign.name})"
    predicted = system.predicted
    members = {} if predicted is None else predicted.summary.get("average") or {}
    return f"average of {', '.join(members)}" if members else "not trained in this run"


def _name(component: object) -> str:
    return str(component.get("name", "?")) if isinstance(component, dict) else str(component or "?")


def make_headline(systems: Sequence[Evaluated], comparisons: Sequence[Comparison], *, paper: bool) -> Table:
    """Metrics of every system, and of each pair with the first the difference as the paper prints it.

    Args:
        systems: the first is judged against the others.
        comparisons: of `plant significance`, the first system is A in each; none: nothing was tested.
        paper: by the published rule, and not by the p that is corrected for all metrics and systems.
    """
    found = [system.metrics.all_metrics() for system in systems]
    names = [name for name in DEFAULT_METRICS if any(name in metrics for metrics in found)]
    tested = {(c.metric, c.b): c.print_published() if paper else c.print_text(c.p_holm) for c in comparisons}
    others = list(dict.fromkeys(c.b for c in comparisons))
    rows: list[list[Cell]] = []
    for name in names:
        row: list[Cell] = [name, *(show_bound(metrics.get(name)) for metrics in found)]
        rows.append([*row, *(tested.get((name, other), "") for other in others)])
    columns = [Column(name="metric"), *(Column(name=system.name) for system in systems)]
    columns += [Column(name=f"{systems[0].name} against {other}") for other in others]
    return Table(title="Headline", columns=columns, rows=rows, notes=_explain(systems, bool(comparisons), paper=paper))


def _explain(systems: Sequence[Evaluated], tested: bool, *, paper: bool) -> list[str]:
    notes = [f"in points, with intervals in brackets; {systems[0].conditions}"]
    if tested and paper:
        notes.append(
            "▲ the first system is better, ▼ it is worse: p < 0.05 and the interval excludes 0, by the published rule, which corrects for "
            "nothing; in brackets mean gain and plain percentiles. Its p of F1 and AUC shrinks as --bootstrap grows"
        )
    elif tested:
        notes.append(
            "▲ the first system is better, ▼ it is worse: p < 0.05 after Holm over all metrics and systems shown, and the interval of the "
            "difference excludes 0; in brackets the difference and its interval; tests as of `plant significance`"
        )
    others = [system for system in systems[1:] if system.label_hash != systems[0].label_hash]
    for system in others:
        how = f"figures here are over the labels of '{systems[0].name}', not over its own as its evaluation's are"
        alone = "averages over labels are over its own, and cannot be compared"
        notes.append(f"'{system.name}' was trained on other labels: {alone if system.measured_again is None else how}")
    notes.append("[1-5]: labels with one to five training documents; recall of them is pooled over their assignments")
    return notes


def show_bound(bound: Bound | None) -> str:
    """A value with its interval in brackets, in points; a dash where it is undefined."""
    if bound is None or bound.value is None:
        return "–"
    value = f"{100 * bound.value:.1f}"
    return value if bound.low is None or bound.high is None else f"{value} [{100 * bound.low:.1f}, {100 * bound.high:.1f}]"


def draw_headline(systems: Sequence[Evaluated]) -> Figure | None:
    """Some metrics of all systems with their intervals; None if there are none."""
    found = [system.metrics.all_metrics() for system in systems]
    names = [name for name in DRAWN if any(name in metrics and metrics[name].value is not None for metrics in found)]
    if not names:
        return None
    return Figure(
        name="headline",
        title="The main metrics",
        description="Each metric of each system as a dot, with its interval as a line.",
        form="dots",
        x=Axis(title="metric", ticks=names),
        y=Axis(title=UNIT),
        series=[draw_bounds(system.name, names, metrics) for system, metrics in zip(systems, found, strict=True)],
        notes=[systems[0].conditions],
    )


def draw_bounds(series: str, names: Sequence[str], metrics: dict[str, Bound]) -> Series:
    """Metrics by name, as dots over their places in a list of names; one that is not defined is left out."""
    places = [(i, metrics[name]) for i, name in enumerate(names) if name in metrics and metrics[name].value is not None]
    return Series(
        name=series,
        x=[i for i, _ in places],
        y=[bound.value for _, bound in places if bound.value is not None],
        low=[bound.low for _, bound in places],
        high=[bound.high for _, bound in places],
    )


def write_headline(systems: Sequence[Evaluated], headline: Table, untested: str) -> Section:
    """The section of the headline.

    Args:
        systems: all of them.
        headline: see `make_headline`.
        untested: why nothing was tested, in a sentence; empty if it was.
    """
    figure = draw_headline(systems)
    return Section(
        name="headline",
        title="Results",
        tables=[describe_systems(systems), headline],
        figures=[figure] if figure else [],
        missing=[untested] if untested else [],
    )
