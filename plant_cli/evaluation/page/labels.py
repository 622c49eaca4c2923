"""Labels one by one: F1 by training frequency, its distribution over rare labels, the best and the worst by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from plant_cli.api.output import Cell, Column, Table
from plant_cli.artefacts.metrics import Bound
from plant_cli.corpus.statistics import LABEL_RANGES
from plant_cli.evaluation.page.charts import Axis, Figure, Sample, Section
from plant_cli.evaluation.page.evaluated import Evaluated
from plant_cli.evaluation.page.headline import draw_bounds

RARE = ("1-5", "6-10", "11-50")
PRESENT = "macro-F1-present"
NAMED = 10  # labels at either end
ENOUGH = 5  # documents of the split that a label must have to be called best or worst, where enough labels do

Tables = Mapping[str, pl.DataFrame]


def write_labels(systems: Sequence[Evaluated]) -> list[Section]:
    """How F1 depends on frequency, over all systems; then the best and worst labels of each."""
    frames = {system.name: system.read_labels() for system in systems}
    frequency, rare = draw_frequency(systems), draw_rare(systems, frames)
    left_out = (
        f"The distribution of F1 over rare labels is left out: no label with at most 50 training documents occurs in the "
        f"{systems[0].metrics.split} split; `plant data stats` shows how frequent labels are."
    )
    tables, missing = [], []
    for system in systems:
        present = frames[system.name].filter(pl.col("test_count") > 0)
        if len(present):
            tables += list_extremes(system, present)
        else:
            missing.append(f"No label of '{system.name}' occurs in the {system.metrics.split} split, so that none has an F1.")
    figures = [figure for figure in (frequency, rare) if figure is not None]
    return [
        Section(name="frequency", title="Labels by frequency", figures=figures, missing=[] if rare else [left_out]),
        Section(name="labels", title="Best and worst labels", tables=tables, missing=missing),
    ]


def draw_frequency(systems: Sequence[Evaluated]) -> Figure | None:
    """Mean F1 of the labels present in each range of training frequency, with intervals (as Figure 2a of the paper)."""
    names = [name for name, _, _ in LABEL_RANGES if name != "0" and any(_is_defined(system, name) for system in systems)]
    if not names:
        return None
    return Figure(
        name="label-frequency",
        title="F1 by training frequency of the label",
        description=f"The mean F1 of the labels present in the {systems[0].metrics.split} split, from rare labels to frequent ones.",
        form="lines",
        x=Axis(title="training documents of the label", ticks=names),
        y=Axis(title="F1, points", zero=True),
        series=[draw_bounds(system.name, names, _by_bin(system)) for system in systems],
        notes=[_count_labels(systems[0], names), systems[0].conditions],
    )


def _by_bin(system: Evaluated) -> dict[str, Bound]:
    found = {name: content.get(PRESENT) for name, content in system.metrics.bins.items()}
    return {name: bound for name, bound in found.items() if isinstance(bound, Bound)}


def _is_defined(system: Evaluated, name: str) -> bool:
    return _by_bin(system).get(name, Bound()).value is not None


def _count_labels(system: Evaluated, names: Sequence[str]) -> str:
    counted = ", ".join(f"{name}: {system.metrics.bins[name]['present']}" for name in names if name in system.metrics.bins)
    return f"labels that are present and counted ({system.name}): {counted}"


def draw_rare(systems: Sequence[Evaluated], frames: Tables) -> Figure | None:
    """How F1 is distributed over rare labels (as Figure 2b of the paper); None if none is present."""
    bounds = [(name, least, most) for name, least, most in LABEL_RANGES if name in RARE]
    found = {
        (system.name, name): rare["F1"].to_list()
        for system in systems
        for name, least, most in bounds
        if len(rare := frames[system.name].filter((pl.col("test_count") > 0) & pl.col("train_count").is_between(least, most)))
    }
    ticks = [name for name in RARE if any(name == tick for _, tick in found)]
    if not ticks:
        return None
    return Figure(
        name="rare-labels",
        title="F1 of rare labels, label by label",
        description="The wider a shape, the more labels have that F1. The bar spans the middle half of the labels, the circle is "
        "the median, the diamond the mean.",
        form="violins",
        x=Axis(title="training documents of the label", ticks=ticks),
        y=Axis(title="F1, points", whole=True),
        samples=[Sample(name=name, tick=ticks.index(tick), values=values) for (name, tick), values in found.items()],
        notes=[f"labels present in the {systems[0].metrics.split} split, each counted once", systems[0].conditions],
    )


def list_extremes(system: Evaluated, present: pl.DataFrame) -> list[Table]:
    """The labels with the highest and the lowest F1, by name.

    Args:
        system: whose labels they are.
        present: rows of `per_label.tsv` of labels that occur in the split.
    """
    often = present.filter(pl.col("test_count") >= ENOUGH)
    enough = len(often) >= 2 * NAMED
    chosen = often if enough else present
    best = chosen.sort("F1", "test_count", "label", descending=[True, True, False]).head(NAMED)
    worst = chosen.filter(pl.col("train_count") > 0).sort("F1", "test_count", "label", descending=[False, True, False])
    worst = worst.filter(~pl.col("label").is_in(best["label"].implode())).head(NAMED)
    which = f"of the {len(chosen):,} labels with at least {ENOUGH} documents" if enough else f"of the {len(chosen):,} labels present"
    notes = [
        f"{which}; ties: more documents first; labels unseen in train are not called worst; {_describe_intervals(system)}",
        system.conditions,
    ]
    titled = (("Best labels", best), ("Worst labels", worst))
    return [_list(f"{title} of {system.name}", frame, notes) for title, frame in titled if len(frame)]


def _describe_intervals(system: Evaluated) -> str:
    return f"{100 * system.metrics.level:g}% Wilson intervals of each label's F1"


def _list(title: str, frame: pl.DataFrame, notes: Sequence[str]) -> Table:
    columns = [Column(name="label"), Column(name="in train", kind="count"), Column(name="documents", kind="count")]
    columns += [Column(name=name, kind="points") for name in ("precision", "recall", "F1", "low", "high")]
    rows: list[list[Cell]] = [
        [
            name_label(row["label"], row["title"]),
            *(row[n] for n in ("train_count", "test_count", "precision", "recall", "F1", "F1_low", "F1_high")),
        ]
        for row in frame.iter_rows(named=True)
    ]
    return Table(title=title, columns=columns, rows=rows, notes=notes)


def name_label(label: str, title: str | None) -> str:
    """A label by id and title; by its id alone where it has no other title."""
    return label if not title or title == label else f"{label} {title}"
