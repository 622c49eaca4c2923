"""The first section: what the systems are, their main metrics, and which differences are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from plant_cli.api.context import Cell, Column, Table
from plant_cli.evaluation.metric_tables import SHOWN
from plant_cli.evaluation.results import DEFAULT_METRICS, Bound
from plant_cli.report.drawing import Drawing, plot_bounds
from plant_cli.report.evaluated import Evaluated, Tests
from plant_cli.report.page import PageSection
from plant_cli.scoring.predictions import WHOLE

NOTHING = Bound()
DRAWN = ("P@5", "R@50", "micro-F1", "macro-F1", "R@50[1-5]")


def write_headline(systems: Sequence[Evaluated], headline: Table, tests: Tests) -> PageSection:
    """The section, with the table of `make_headline`."""
    measured = {system.name: system.metrics.all_metrics() for system in systems}
    names = [name for name in DRAWN if any(metrics.get(name, NOTHING).value is not None for metrics in measured.values())]
    caption = f"Each metric of each system as a dot, with its interval as a line. {systems[0].conditions}."
    drawing = Drawing(
        name="headline", title="The main metrics", caption=caption, paint=lambda axes: plot_bounds(axes, names, measured), rows=len(names)
    )
    untested = [system.name for system in systems[1:] if not any(other == system.name for _, other in tests)]
    missing = [
        f"The difference to '{name}' is not tested: `plant significance {systems[0].folder_name} …` tests it, and the next report shows it."
        for name in untested
    ]
    if len(systems) < 2:
        missing = ["One system is shown, so nothing is compared: `plant report A B` shows two."]
    return PageSection(
        name="headline", title="Results", tables=[describe_systems(systems), headline], drawings=[drawing] if names else [], missing=missing
    )


def describe_systems(systems: Sequence[Evaluated]) -> Table:
    """What each system is: its network and scorers, what it was trained on, its seed and threshold."""
    columns = [Column(name="system"), Column(name="trained on", kind="count")]
    columns += [Column(name=name) for name in ("network", "attention", "scorers", "seed", "threshold")]
    rows: list[list[Cell]] = []
    for system in systems:
        trained, threshold = system.trained, system.metrics.threshold
        if trained is None:
            members = {} if system.predicted is None else system.predicted.summary.get("average") or {}
            made = f"average of {', '.join(members)}" if members else "not trained in this run"
            what = made if system.foreign is None else f"another tool ({system.foreign.name})"
            rows.append([system.name, None, what, "", "", None, threshold])
            continue
        model, network = trained.sections.get("model", {}), trained.options.get("network", True)
        components = [model.get(part) for part in ("backbone", "decoder")]
        names = [str(one.get("name", "?")) if isinstance(one, dict) else str(one or "?") for one in components]
        parts = " + ".join(names) if network else "none"
        attention = str(trained.options.get("init", "")) if network else "none"
        scorers = ", ".join(trained.summary.get("scorers") or []) or "none"
        rows.append([system.name, system.documents.get("train"), parts, attention, scorers, str(trained.seed), threshold])
    notes = ["trained on: training documents; attention: planted by stage 1, or random", systems[0].conditions]
    notes += [
        f"LEAKAGE: '{system.name}' saw validation and test documents in training (plant mig --allow-leakage): its figures are too good"
        for system in systems
        if system.metrics.leakage
    ]
    return Table(title="Systems", columns=columns, rows=rows, notes=notes)


def make_headline(systems: Sequence[Evaluated], tests: Tests, *, paper: bool) -> Table:
    """Metrics of every system, and the difference of the first to each other one where it was tested.

    Args:
        paper: mark differences by the published rule, and not by the p that is corrected for all metrics and systems.
    """
    measured = [system.metrics.all_metrics() for system in systems]
    names = [name for name in DEFAULT_METRICS if any(name in metrics for metrics in measured)]
    others = list(dict.fromkeys(other for _, other in tests))
    text = "text_paper" if paper else "text"
    rows: list[list[Cell]] = [
        [name, *(show_bound(metrics.get(name)) for metrics in measured), *(tests.get((name, other), {}).get(text, "") for other in others)]
        for name in names
    ]
    columns = [Column(name="metric"), *(Column(name=system.name) for system in systems)]
    columns += [Column(name=f"{systems[0].name} against {other}") for other in others]
    notes = [f"in points, with intervals in brackets; {systems[0].conditions}"]
    if others:
        rule = "by the published rule, which corrects for nothing" if paper else "after Holm over all metrics and systems compared"
        notes.append(
            f"▲ the first system is better, ▼ it is worse: p < 0.05 {rule}, and the interval of the difference excludes 0; in brackets "
            "the difference and its interval, as `plant significance` recorded them"
        )
    notes += [
        f"'{system.name}' was trained on other labels: averages over labels are over its own, and cannot be compared"
        for system in systems[1:]
        if system.label_hash != systems[0].label_hash
    ]
    notes.append("[1-5]: labels with one to five training documents; recall of them is pooled over their assignments")
    return Table(title="Main metrics", columns=columns, rows=rows, notes=notes)


def show_bound(bound: Bound | None) -> str:
    """A value with its interval in brackets, in points; a dash where it is undefined."""
    if bound is None or bound.value is None:
        return "–"
    value = f"{100 * bound.value:.1f}"
    return value if bound.low is None or bound.high is None else f"{value} [{100 * bound.low:.1f}, {100 * bound.high:.1f}]"


def write_parts(systems: Sequence[Evaluated]) -> PageSection:
    """What each part of a system adds: a table and a figure for each system that has parts."""
    tables, drawings, missing = [], [], []
    for number, system in enumerate(systems, start=1):
        if not system.metrics.parts:
            missing.append(
                f"'{system.name}' has no parts: `{system.command('finetune', '--scorers words,titles,neighbours,linear')}` trains scorers "
                "beside the network, and `plant eval` then measures each alone."
            )
            continue
        parts: Mapping[str, Mapping[str, Bound]] = {**system.metrics.parts, WHOLE: system.metrics.all_metrics()}
        columns = [Column(name="part"), *(Column(name=metric) for metric in SHOWN)]
        rows: list[list[Cell]] = [[name, *(show_bound(metrics.get(m)) for m in SHOWN)] for name, metrics in parts.items()]
        title, notes = f"Parts of {system.name}", [f"in points, with intervals; {system.conditions}"]
        tables.append(Table(title=title, columns=columns, rows=rows, notes=notes))
        drawings.append(
            Drawing(
                name=f"parts-{number}",
                title=title,
                caption=f"Each metric of each part as a dot, with its interval as a line. {system.conditions}.",
                paint=partial(plot_bounds, ticks=SHOWN, series=parts),
                rows=2 * len(SHOWN),
            )
        )
    text = ["Each part alone, with weights of its own, and all of them together."] if tables else []
    return PageSection(name="parts", title="What each part adds", text=text, tables=tables, drawings=drawings, missing=missing)
