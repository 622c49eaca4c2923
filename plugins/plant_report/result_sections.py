"""Sections on results: the systems and their main metrics, their parts, labels by frequency,
scores and thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api.context import Cell, Column, Table
from plant_cli.data.labels import LABEL_RANGES
from plant_cli.data.printed_tables import name_label
from plant_cli.evaluation.comparison import mark_other
from plant_cli.evaluation.metric_tables import PART_METRICS, show_bound, tabulate_marks
from plant_cli.evaluation.results import DEFAULT_METRICS, Bound
from plant_cli.scoring.decisions import ASSIGN, REJECT, REVIEW
from plant_cli.scoring.predictions import ALL_PARTS
from plant_report.drawing import (
    COLOURS,
    HATCHES,
    Drawing,
    Point,
    draw_series,
    in_points,
    plot_bounds,
    short,
)
from plant_report.evaluated import Evaluated, Tests
from plant_report.page import PageSection

NOTHING = Bound()
DRAWN = ("P@5", "R@50", "micro-F1", "macro-F1", "R@50[1-5]")
RARE = ("1-5", "6-10", "11-50")
PRESENT = "macro-F1-present"
LABELS_IN_TABLE = 10  # best and worst labels
DOCUMENTS_TO_BE_RANKED = (
    5  # documents that a label must have to be called best or worst, if enough labels do
)
COUNTED = "training documents of the label"
SQUARE: dict[str, Any] = {"xlim": (-2, 102), "ylim": (-2, 102)}  # points


def write_headline(systems: Sequence[Evaluated], headline: Table, tests: Tests) -> PageSection:
    """The section, with the table of `make_headline`."""
    measured = {system.name: system.metrics.all_metrics() for system in systems}
    names = [
        name
        for name in DRAWN
        if any(metrics.get(name, NOTHING).value is not None for metrics in measured.values())
    ]
    caption = (
        "Each metric of each system as a dot, with its interval as a line. "
        f"{systems[0].conditions}."
    )
    drawing = Drawing(
        name="headline",
        title="The main metrics",
        caption=caption,
        paint=lambda axes: plot_bounds(axes, names, measured),
        rows=len(names),
    )
    untested = [
        system.name for system in systems[1:] if not any(other == system.name for _, other in tests)
    ]
    missing = [
        f"The difference to '{name}' is not tested: `plant significance {systems[0].folder_name} "
        "…` tests it, and the next report shows it."
        for name in untested
    ]
    if len(systems) < 2:
        missing = ["One system is shown, so nothing is compared: `plant report A B` shows two."]
    return PageSection(
        name="headline",
        title="Results",
        tables=[describe_systems(systems), headline],
        drawings=[drawing] if names else [],
        missing=missing,
    )


def describe_systems(systems: Sequence[Evaluated]) -> Table:
    """What each system is: its network and scorers, what it was trained on, its seed and
    threshold.
    """
    columns = [Column(name="system"), Column(name="trained on", kind="count")]
    columns += [
        Column(name=name) for name in ("network", "attention", "scorers", "seed", "threshold")
    ]
    rows: list[list[Cell]] = []
    for system in systems:
        trained, threshold = system.trained, system.metrics.threshold
        if trained is None:
            members = (
                {} if system.predicted is None else system.predicted.summary.get("average") or {}
            )
            made = f"average of {', '.join(members)}" if members else "not trained in this run"
            what = made if system.foreign is None else f"another tool ({system.foreign.name})"
            rows.append([system.name, None, what, "", "", None, threshold])
            continue
        model, network = trained.sections.get("model", {}), trained.options.get("network", True)
        components = [model.get(part) for part in ("backbone", "decoder")]
        names = [
            str(one.get("name", "?")) if isinstance(one, dict) else str(one or "?")
            for one in components
        ]
        parts = " + ".join(names) if network else "none"
        attention = str(trained.options.get("init", "")) if network else "none"
        scorers = ", ".join(trained.summary.get("scorers") or []) or "none"
        rows.append(
            [
                system.name,
                system.documents.get("train"),
                parts,
                attention,
                scorers,
                str(trained.seed),
                threshold,
            ]
        )
    notes = [
        "trained on: training documents; attention: planted by stage 1, or random",
        systems[0].conditions,
    ]
    notes += [
        f"LEAKAGE: '{system.name}' saw validation and test documents in training (plant mig "
        "--allow-leakage): its figures are too good"
        for system in systems
        if system.metrics.leakage
    ]
    return Table(title="Systems", columns=columns, rows=rows, notes=notes)


def make_headline(systems: Sequence[Evaluated], tests: Tests, *, paper: bool) -> Table:
    """Metrics of every system, and the difference of the first to each other one where it was
    tested.

    `paper`: mark differences by the published rule, and not by the p that is corrected for all
    metrics and systems.
    """
    measured = [system.metrics.all_metrics() for system in systems]
    names = [name for name in DEFAULT_METRICS if any(name in metrics for metrics in measured)]
    others = list(dict.fromkeys(other for _, other in tests))
    rule = (
        "by the published rule, which corrects for nothing"
        if paper
        else "after Holm over all metrics and systems compared"
    )
    rule = f"p < 0.05 {rule}, and the interval of the difference excludes 0"
    rows: list[list[Cell]]
    if len(systems) > 2:  # a row for each, as `plant significance` shows them
        columns = [Column(name="system"), *(Column(name=name, kind="exact") for name in names)]
        rows = [
            [
                system.name,
                *(
                    _show_marked(metrics.get(name), tests.get((name, system.name)), paper=paper)
                    for name in names
                ),
            ]
            for system, metrics in zip(systems, measured, strict=True)
        ]
        notes = [f"in points; {systems[0].conditions}"]
        notes += (
            [
                f"▲ better, ▼ worse than {systems[0].name}: {rule}, as `plant significance` "
                "recorded it"
            ]
            if others
            else []
        )
    else:
        text = "text_paper" if paper else "text"
        columns = [Column(name="metric"), *(Column(name=system.name) for system in systems)]
        columns += [Column(name=f"{systems[0].name} against {other}") for other in others]
        rows = [
            [
                name,
                *(show_bound(one.get(name)) for one in measured),
                *(tests.get((name, other), {}).get(text, "") for other in others),
            ]
            for name in names
        ]
        notes = [f"in points, with intervals in brackets; {systems[0].conditions}"]
        brackets = (
            "in brackets the difference and its interval, as `plant significance` recorded them"
        )
        notes += (
            [f"▲ the first system is better, ▼ it is worse: {rule}; {brackets}"] if others else []
        )
    notes += [
        f"'{system.name}' was trained on other labels: averages over labels are over its own, and "
        "cannot be compared"
        for system in systems[1:]
        if system.label_hash != systems[0].label_hash
    ]
    notes.append(
        "[1-5]: labels with one to five training documents; recall of them is pooled over their "
        "assignments"
    )
    return Table(title="Main metrics", columns=columns, rows=rows, notes=notes)


def _show_marked(bound: Bound | None, tested: Mapping[str, Any] | None, *, paper: bool) -> str:
    value = "–" if bound is None or bound.value is None else f"{100 * bound.value:.1f}"
    return value + ("" if tested is None else mark_other(tested, paper=paper))


def write_part_sections(systems: Sequence[Evaluated]) -> PageSection:
    """What each part of a system adds: a table and a figure for each system that has parts."""
    tables, drawings, missing = [], [], []
    for number, system in enumerate(systems, start=1):
        if not system.metrics.parts:
            missing.append(
                f"'{system.name}' has no parts: "
                f"`{system.command('finetune', '--scorers words,titles,neighbours,linear')}` "
                "trains scorers "
                "beside the network, and `plant eval` then measures each alone."
            )
            continue
        parts: Mapping[str, Mapping[str, Bound]] = {
            **system.metrics.parts,
            ALL_PARTS: system.metrics.all_metrics(),
        }
        columns = [Column(name="part"), *(Column(name=metric) for metric in PART_METRICS)]
        rows: list[list[Cell]] = [
            [name, *(show_bound(metrics.get(m)) for m in PART_METRICS)]
            for name, metrics in parts.items()
        ]
        title, notes = (
            f"Parts of {system.name}",
            [f"in points, with intervals; {system.conditions}"],
        )
        tables.append(Table(title=title, columns=columns, rows=rows, notes=notes))
        drawings.append(
            Drawing(
                name=f"parts-{number}",
                title=title,
                caption="Each metric of each part as a dot, with its interval as a line. "
                f"{system.conditions}.",
                paint=partial(plot_bounds, ticks=PART_METRICS, series=parts),
                rows=2 * len(PART_METRICS),
            )
        )
    text = ["Each part alone, with weights of its own, and all of them together."] if tables else []
    return PageSection(
        name="parts",
        title="What each part adds",
        text=text,
        tables=tables,
        drawings=drawings,
        missing=missing,
    )


def write_marks(systems: Sequence[Evaluated]) -> list[PageSection]:
    """How well the words that explain labels agree with gold spans; no section for a corpus
    without them.
    """
    measured = {
        system.name: marks
        for system in systems
        if (marks := system.metrics.marked_words) is not None
    }
    if not measured:
        return []
    tables = [
        tabulate_marks(
            f"{name} on {systems[0].metrics.split}",
            marks,
            [f"documents drawn at random of: {systems[0].conditions}"],
        )
        for name, marks in measured.items()
    ]
    series = {
        name: {words: one.f1 for words, one in marks.figures.items()}
        for name, marks in measured.items()
    }
    ticks = list(dict.fromkeys(words for bounds in series.values() for words in bounds))
    caption = (
        "F1 of the words that explain gold labels against those in gold spans, with its "
        f"interval. {tables[0].title}."
    )
    paint = partial(plot_bounds, ticks=ticks, series=series)
    drawing = Drawing(
        name="marked-words",
        title="Words against gold spans",
        caption=caption,
        paint=paint,
        rows=len(ticks),
    )
    return [
        PageSection(
            name="marked-words", title="Words against gold spans", tables=tables, drawings=[drawing]
        )
    ]


def write_label_sections(systems: Sequence[Evaluated]) -> list[PageSection]:
    """F1 by frequency, over all systems; then the best and worst labels of each."""
    frames = {system.name: system.read_labels() for system in systems}
    split, tables, missing = systems[0].metrics.split, [], []
    for system in systems:
        present = frames[system.name].filter(pl.col("test_count") > 0)
        tables += list_extremes(system, present)
        if not len(present):
            missing.append(
                f"No label of '{system.name}' occurs in the {split} split, so no label has an F1."
            )
    rare = draw_rare(systems, frames)
    no_rare = (
        f"No label with at most 50 training documents occurs in the {split} split, so their "
        "F1 is not drawn."
    )
    drawings = [*draw_frequency(systems), *rare]
    return [
        PageSection(
            name="frequency",
            title="Labels by frequency",
            drawings=drawings,
            missing=[] if rare else [no_rare],
        ),
        PageSection(name="labels", title="Best and worst labels", tables=tables, missing=missing),
    ]


def draw_frequency(systems: Sequence[Evaluated]) -> list[Drawing]:
    """Mean F1 of the labels present in each range of training frequency, with intervals (as
    Figure 2a of the paper).
    """
    series = {
        system.name: {
            name: bound
            for name, content in system.metrics.bins.items()
            if isinstance(bound := content.get(PRESENT), Bound)
        }
        for system in systems
    }
    drawn = {
        name
        for bounds in series.values()
        for name, bound in bounds.items()
        if bound.value is not None
    }
    names = [name for name, _, _ in LABEL_RANGES if name != "0" and name in drawn]
    if not names:
        return []
    first = systems[0]
    counts = ", ".join(
        f"{name}: {first.metrics.bins[name]['present']}"
        for name in names
        if name in first.metrics.bins
    )
    caption = (
        f"The mean F1 of the labels present in the {first.metrics.split} split, from rare labels "
        "to frequent ones. Labels counted "
        f"({first.name}): {counts}. {first.conditions}."
    )

    def paint(axes: Any) -> None:
        plot_bounds(axes, names, series, upright=True)
        axes.set(xlabel=COUNTED, ylabel="F1, points")
        axes.set_ylim(0)

    return [
        Drawing(
            name="label-frequency",
            title="F1 by training frequency of the label",
            caption=caption,
            paint=paint,
        )
    ]


def draw_rare(systems: Sequence[Evaluated], frames: Mapping[str, pl.DataFrame]) -> list[Drawing]:
    """How F1 is distributed over rare labels (as Figure 2b of the paper)."""
    values: dict[tuple[str, str], Any] = {}
    for name, least, most in LABEL_RANGES:
        for system in systems:
            rare = frames[system.name].filter(
                (pl.col("test_count") > 0) & pl.col("train_count").is_between(least, most)
            )
            if name in RARE and len(rare):
                values[system.name, name] = 100 * rare["F1"].to_numpy()
    ticks = [name for name in RARE if any(name == tick for _, tick in values)]
    if not ticks:
        return []
    caption = (
        "The wider a shape, the more labels have that F1. The bar spans the middle half of the "
        "labels, the circle is the median, the "
        f"diamond the mean. Each label present in the {systems[0].metrics.split} split counts "
        f"once. {systems[0].conditions}."
    )

    def paint(axes: Any) -> None:
        wide = 0.8 / len(systems)
        for number, system in enumerate(systems):
            at = {
                tick: ticks.index(tick) + (number - (len(systems) - 1) / 2) * wide
                for tick in ticks
                if (system.name, tick) in values
            }
            for i, (tick, place) in enumerate(at.items()):
                _paint_violin(
                    axes,
                    values[system.name, tick],
                    place,
                    0.9 * wide,
                    number,
                    short(system.name) if not i else None,
                )
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set(xlabel=COUNTED, ylabel="F1, points", xlim=(-0.6, len(ticks) - 0.4), ylim=(-2, 102))
        axes.grid(visible=False, axis="x")

    return [
        Drawing(
            name="rare-labels",
            title="F1 of rare labels, label by label",
            caption=caption,
            paint=paint,
        )
    ]


def _paint_violin(
    axes: Any, values: Any, at: float, wide: float, number: int, name: str | None
) -> None:
    colour, style = (
        COLOURS[number % len(COLOURS)],
        {"edgecolor": "black", "linewidth": 0.8, "alpha": 0.55},
    )
    if np.ptp(values) > 0:
        (body,) = axes.violinplot([values], positions=[at], widths=wide, showextrema=False)[
            "bodies"
        ]
        body.set(facecolor=colour, hatch=HATCHES[number % len(HATCHES)], **style)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    axes.vlines(at, low, high, color="black", linewidth=3)
    axes.plot([at], [middle], marker="o", color="white", markeredgecolor="black")
    axes.plot(
        [at],
        [values.mean()],
        marker="D",
        linestyle="none",
        color=colour,
        markeredgecolor="black",
        label=name,
    )


def list_extremes(system: Evaluated, present: pl.DataFrame) -> list[Table]:
    """The labels with the highest and the lowest F1, by name."""
    often = present.filter(pl.col("test_count") >= DOCUMENTS_TO_BE_RANKED)
    enough = len(often) >= 2 * LABELS_IN_TABLE
    chosen = often if enough else present
    best = chosen.sort("F1", "test_count", "label", descending=[True, True, False]).head(
        LABELS_IN_TABLE
    )
    worst = chosen.filter(pl.col("train_count") > 0).sort(
        "F1", "test_count", "label", descending=[False, True, False]
    )
    worst = worst.filter(~pl.col("label").is_in(best["label"].implode())).head(LABELS_IN_TABLE)
    which = f"of the {len(chosen):,} labels " + (
        f"with at least {DOCUMENTS_TO_BE_RANKED} documents" if enough else "present"
    )
    notes = [
        f"{which}; ties: more documents first; labels unseen in train are not called worst; "
        f"{100 * system.metrics.level:g}% Wilson "
        "intervals of each label's F1",
        system.conditions,
    ]
    columns = [
        Column(name="label"),
        Column(name="in train", kind="count"),
        Column(name="documents", kind="count"),
    ]
    columns += [
        Column(name=name, kind="points") for name in ("precision", "recall", "F1", "low", "high")
    ]
    figures = ("train_count", "test_count", "precision", "recall", "F1", "F1_low", "F1_high")
    tables = []
    for title, frame in (("Best labels", best), ("Worst labels", worst)):
        rows: list[list[Cell]] = [
            [name_label(row["label"], row["title"]), *(row[name] for name in figures)]
            for row in frame.iter_rows(named=True)
        ]
        tables += (
            [Table(title=f"{title} of {system.name}", columns=columns, rows=rows, notes=notes)]
            if rows
            else []
        )
    return tables


def write_scores(systems: Sequence[Evaluated]) -> PageSection:
    """Calibration, precision against recall, and thresholds."""
    calibrated = [system for system in systems if system.metrics.calibration is not None]
    decisions = {system.name: system.read_decisions() for system in systems}
    missing = [
        f"'{system.name}' has no calibration: its scores are no probabilities, or its evaluation "
        "is older than this figure; "
        f"`{system.command('eval', '--force')}` measures it."
        for system in systems
        if system not in calibrated
    ]
    missing += [
        f"No thresholds were chosen for '{name}': `plant thresholds --target precision=0.9` "
        "chooses them on validation."
        for name, chosen in decisions.items()
        if not chosen
    ]
    return PageSection(
        name="scores",
        title="Scores and thresholds",
        tables=[
            tabulate_threshold(systems),
            *(
                table
                for name, chosen in decisions.items()
                for table in tabulate_decisions(name, chosen)
            ),
        ],
        drawings=[*draw_reliability(calibrated), *draw_precision(calibrated)] if calibrated else [],
        missing=missing,
    )


def draw_reliability(systems: Sequence[Evaluated]) -> list[Drawing]:
    """How often labels with some probability are right; of a single system also for its network
    alone.
    """
    recorded = {system.name: system.metrics.calibration for system in systems}
    if len(systems) == 1:  # with several systems there would be too many lines
        recorded[f"{systems[0].name}, network alone"] = systems[0].metrics.calibration_network
    series, errors = {}, []
    for name, one in recorded.items():
        if one is not None:
            filled = [b for b in one.bins if b.pairs]
            points = [
                (100 * b.probability, in_points(Bound(value=b.right, low=b.low, high=b.high)))
                for b in filled
            ]
            series[f"{name} (ECE {100 * one.ECE:.2g})"] = points
            between = (
                ""
                if one.low is None or one.high is None
                else f" [{100 * one.low:.2g}, {100 * one.high:.2g}]"
            )
            errors.append(
                f"ECE of {name} {100 * one.ECE:.2g}{between}, {sum(b.pairs for b in one.bins):,} "
                "pairs"
            )
    caption = (
        "Predicted pairs of document and label in ten ranges of probability: the share that is "
        "right, with its interval, against the mean "
        "probability. On the dotted diagonal probabilities can be believed. ECE: the mean "
        "distance from it over pairs, in points. "
        f"{'; '.join(errors)}. {systems[0].conditions}."
    )
    labels: dict[str, Any] = {"xlabel": "mean probability, points", "ylabel": "right, points"}
    return draw_series(
        "reliability",
        "Reliability of probabilities",
        caption,
        series,
        labels | SQUARE,
        diagonal=True,
    )


def draw_precision(systems: Sequence[Evaluated]) -> list[Drawing]:
    """Precision against recall when labels are assigned from a probability of 0.9, 0.8, … on."""
    caption = (
        "Precision and recall over all pairs of document and label. Each marker is one "
        "threshold: labels are assigned from a probability "
        "of 0.9 (left), 0.8, and so on down to 0 (right, all labels that are predicted). "
        f"{systems[0].conditions}."
    )
    curves = {system.name: trace_precision(system) for system in systems}
    labels: dict[str, Any] = {"xlabel": "recall, points", "ylabel": "precision, points"}
    return draw_series(
        "precision-recall", "Precision against recall", caption, curves, labels | SQUARE
    )


def trace_precision(system: Evaluated) -> list[Point]:
    """Recall and precision in points, from the highest range of probability down, from the
    recorded calibration.
    """
    bins = [] if system.metrics.calibration is None else system.metrics.calibration.bins[::-1]
    pairs = np.cumsum([b.pairs for b in bins])
    right = np.cumsum([b.pairs * b.right for b in bins])
    gold = int(system.read_labels()["test_count"].sum())
    return [
        (100 * r / max(gold, 1), Bound(value=100 * r / n))
        for r, n in zip(right.tolist(), pairs.tolist(), strict=True)
        if n
    ]


def tabulate_threshold(systems: Sequence[Evaluated]) -> Table:
    """What each system assigns by its own threshold."""
    names = ("micro-precision", "micro-recall", "micro-F1", "macro-F1")
    columns = [
        Column(name="system"),
        *(Column(name=name) for name in names),
        Column(name="threshold"),
    ]
    rows: list[list[Cell]] = [
        [
            system.name,
            *(show_bound(system.metrics.metrics.get(name)) for name in names),
            system.metrics.threshold,
        ]
        for system in systems
    ]
    never = [
        f"{system.name}: {never.get('assigned', 0):,} of {never.get('counted', 0):,} labels of "
        "train are never assigned"
        for system in systems
        if (never := system.metrics.labels_never)
    ]
    return Table(
        title="Labels that are assigned",
        columns=columns,
        rows=rows,
        notes=["in points, with intervals", *never, systems[0].conditions],
    )


def tabulate_decisions(system: str, chosen: Mapping[str, Mapping[str, Any]]) -> list[Table]:
    """What thresholds of `plant thresholds` lead to, by folder: a table for each."""
    columns = [
        Column(name=name)
        for name in ("split", "decision", "labels per document", "precision", "recall")
    ]
    tables = []
    for folder, recorded in chosen.items():
        rows: list[list[Cell]] = []
        for split, content in recorded["splits"].items():
            for decision in (ASSIGN, REVIEW, REJECT):
                labels, precision, recall = (
                    content[decision][name] for name in ("labels", "precision", "recall")
                )
                shown = f"{labels['value'] or 0:.3g}"
                rows.append(
                    [
                        split,
                        decision,
                        shown,
                        *(show_bound(Bound.model_validate(one)) for one in (precision, recall)),
                    ]
                )
        notes = [
            "assign: without a person; review: a person looks; reject: predicted, but not shown; "
            "in points, with intervals",
            f"chosen on validation; {100 * recorded['level']:g}% intervals from "
            f"{recorded['replicates']} resamples of the documents, seed "
            f"{recorded['seed']}",
        ]
        tables.append(
            Table(
                title=f"Thresholds of {system} for {recorded['target']} ({folder})",
                columns=columns,
                rows=rows,
                notes=notes,
            )
        )
    return tables
