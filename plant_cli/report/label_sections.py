"""Sections on labels: F1 by training frequency, its distribution over rare labels, the best and the worst labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api.context import Cell, Column, Table
from plant_cli.data.labels import LABEL_RANGES
from plant_cli.evaluation.results import Bound
from plant_cli.report.drawing import COLOURS, HATCHES, Drawing, plot_bounds, short
from plant_cli.report.evaluated import Evaluated
from plant_cli.report.page import PageSection

RARE = ("1-5", "6-10", "11-50")
PRESENT = "macro-F1-present"
LISTED = 10  # best and worst labels
ENOUGH = 5  # documents that a label must have to be called best or worst, if enough labels do
COUNTED = "training documents of the label"


def write_labels(systems: Sequence[Evaluated]) -> list[PageSection]:
    """F1 by frequency, over all systems; then the best and worst labels of each."""
    frames = {system.name: system.read_labels() for system in systems}
    split, tables, missing = systems[0].metrics.split, [], []
    for system in systems:
        present = frames[system.name].filter(pl.col("test_count") > 0)
        tables += list_extremes(system, present)
        if not len(present):
            missing.append(f"No label of '{system.name}' occurs in the {split} split, so no label has an F1.")
    rare = draw_rare(systems, frames)
    no_rare = f"No label with at most 50 training documents occurs in the {split} split, so their F1 is not drawn."
    drawings = [*draw_frequency(systems), *rare]
    return [
        PageSection(name="frequency", title="Labels by frequency", drawings=drawings, missing=[] if rare else [no_rare]),
        PageSection(name="labels", title="Best and worst labels", tables=tables, missing=missing),
    ]


def draw_frequency(systems: Sequence[Evaluated]) -> list[Drawing]:
    """Mean F1 of the labels present in each range of training frequency, with intervals (as Figure 2a of the paper)."""
    series = {
        system.name: {name: bound for name, content in system.metrics.bins.items() if isinstance(bound := content.get(PRESENT), Bound)}
        for system in systems
    }
    drawn = {name for bounds in series.values() for name, bound in bounds.items() if bound.value is not None}
    names = [name for name, _, _ in LABEL_RANGES if name != "0" and name in drawn]
    if not names:
        return []
    first = systems[0]
    counts = ", ".join(f"{name}: {first.metrics.bins[name]['present']}" for name in names if name in first.metrics.bins)
    caption = (
        f"The mean F1 of the labels present in the {first.metrics.split} split, from rare labels to frequent ones. Labels counted "
        f"({first.name}): {counts}. {first.conditions}."
    )

    def paint(axes: Any) -> None:
        plot_bounds(axes, names, series, upright=True)
        axes.set(xlabel=COUNTED, ylabel="F1, points")
        axes.set_ylim(0)

    return [Drawing(name="label-frequency", title="F1 by training frequency of the label", caption=caption, paint=paint)]


def draw_rare(systems: Sequence[Evaluated], frames: Mapping[str, pl.DataFrame]) -> list[Drawing]:
    """How F1 is distributed over rare labels (as Figure 2b of the paper)."""
    values: dict[tuple[str, str], Any] = {}
    for name, least, most in LABEL_RANGES:
        for system in systems:
            rare = frames[system.name].filter((pl.col("test_count") > 0) & pl.col("train_count").is_between(least, most))
            if name in RARE and len(rare):
                values[system.name, name] = 100 * rare["F1"].to_numpy()
    ticks = [name for name in RARE if any(name == tick for _, tick in values)]
    if not ticks:
        return []
    caption = (
        f"The wider a shape, the more labels have that F1. The bar spans the middle half of the labels, the circle is the median, the "
        f"diamond the mean. Each label present in the {systems[0].metrics.split} split counts once. {systems[0].conditions}."
    )

    def paint(axes: Any) -> None:
        wide = 0.8 / len(systems)
        for number, system in enumerate(systems):
            at = {tick: ticks.index(tick) + (number - (len(systems) - 1) / 2) * wide for tick in ticks if (system.name, tick) in values}
            for i, (tick, place) in enumerate(at.items()):
                _paint_violin(axes, values[system.name, tick], place, 0.9 * wide, number, short(system.name) if not i else None)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set(xlabel=COUNTED, ylabel="F1, points", xlim=(-0.6, len(ticks) - 0.4), ylim=(-2, 102))
        axes.grid(visible=False, axis="x")

    return [Drawing(name="rare-labels", title="F1 of rare labels, label by label", caption=caption, paint=paint)]


def _paint_violin(axes: Any, values: Any, at: float, wide: float, number: int, name: str | None) -> None:
    colour, style = COLOURS[number % len(COLOURS)], {"edgecolor": "black", "linewidth": 0.8, "alpha": 0.55}
    if np.ptp(values) > 0:
        (body,) = axes.violinplot([values], positions=[at], widths=wide, showextrema=False)["bodies"]
        body.set(facecolor=colour, hatch=HATCHES[number % len(HATCHES)], **style)
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    axes.vlines(at, low, high, color="black", linewidth=3)
    axes.plot([at], [middle], marker="o", color="white", markeredgecolor="black")
    axes.plot([at], [values.mean()], marker="D", linestyle="none", color=colour, markeredgecolor="black", label=name)


def list_extremes(system: Evaluated, present: pl.DataFrame) -> list[Table]:
    """The labels with the highest and the lowest F1, by name."""
    often = present.filter(pl.col("test_count") >= ENOUGH)
    enough = len(often) >= 2 * LISTED
    chosen = often if enough else present
    best = chosen.sort("F1", "test_count", "label", descending=[True, True, False]).head(LISTED)
    worst = chosen.filter(pl.col("train_count") > 0).sort("F1", "test_count", "label", descending=[False, True, False])
    worst = worst.filter(~pl.col("label").is_in(best["label"].implode())).head(LISTED)
    which = f"of the {len(chosen):,} labels " + (f"with at least {ENOUGH} documents" if enough else "present")
    notes = [
        f"{which}; ties: more documents first; labels unseen in train are not called worst; {100 * system.metrics.level:g}% Wilson "
        "intervals of each label's F1",
        system.conditions,
    ]
    columns = [Column(name="label"), Column(name="in train", kind="count"), Column(name="documents", kind="count")]
    columns += [Column(name=name, kind="points") for name in ("precision", "recall", "F1", "low", "high")]
    figures = ("train_count", "test_count", "precision", "recall", "F1", "F1_low", "F1_high")
    tables = []
    for title, frame in (("Best labels", best), ("Worst labels", worst)):
        rows: list[list[Cell]] = [
            [name_label(row["label"], row["title"]), *(row[name] for name in figures)] for row in frame.iter_rows(named=True)
        ]
        tables += [Table(title=f"{title} of {system.name}", columns=columns, rows=rows, notes=notes)] if rows else []
    return tables


def name_label(label: str, title: str | None) -> str:
    """A label by id and title; by its id alone where it has no other title."""
    return label if not title or title == label else f"{label} {title}"
