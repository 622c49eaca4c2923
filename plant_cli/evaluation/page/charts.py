"""Figures as data: what is drawn stands in them as numbers, so that a table says the same to whoever cannot see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from plant_cli.api.output import Cell, Column, Table

Unit = Literal["count", "points", "exact"]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis.

    Args:
        title: what it shows, with the unit.
        unit: how its numbers are shown; fractions as points.
        ticks: names in place of numbers 0, 1, …; none: it is a scale of numbers.
        log: whether the scale is logarithmic.
        whole: whether a scale of fractions goes from 0 to 1 whatever the values.
        zero: whether the scale begins at 0.
    """

    title: str
    unit: Unit = "points"
    ticks: Sequence[str] = ()
    log: bool = False
    whole: bool = False
    zero: bool = False


@dataclass(frozen=True, kw_only=True)
class Series:
    """What is drawn of one system, or of one part.

    Args:
        name: in the legend.
        x: places [n]; of named ticks their numbers.
        y: values [n].
        low: of their intervals [n], None where there is none.
        high: likewise.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()

    def bounds(self, i: int) -> tuple[float, float] | None:
        """The interval of a value, if it has one."""
        low, high = (self.low[i], self.high[i]) if self.low and self.high else (None, None)
        return None if low is None or high is None else (low, high)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Values of which a distribution is drawn.

    Args:
        name: of the system.
        tick: number of the named tick where it stands.
        values: [n], at least one.
    """

    name: str
    tick: int
    values: Sequence[float]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure.

    Args:
        name: of its files, such as `precision-recall`.
        title: above it.
        description: what it shows, for whoever cannot see it.
        form: `lines` with markers; `points` with their intervals, without lines; `bars` and `dots` with their intervals, which go to the
            right from the named ticks of x, one below the other; `violins` of samples.
        x: of the places: names, or a scale of numbers.
        y: of the values.
        series: what is drawn, one colour, marker and line each.
        samples: what violins are drawn of.
        rule: a line to compare with: `diagonal` for y = x.
        notes: below it: documents, labels, convention, seeds, interval.
    """

    name: str
    title: str
    description: str
    form: Literal["lines", "points", "bars", "dots", "violins"]
    x: Axis
    y: Axis
    series: Sequence[Series] = ()
    samples: Sequence[Sample] = ()
    rule: Literal["none", "diagonal"] = "none"
    notes: Sequence[str] = field(default=())

    def tabulate(self) -> Table:
        """The numbers that are drawn."""
        return _tabulate_samples(self) if self.form == "violins" else _tabulate_series(self)


def _tabulate_series(figure: Figure) -> Table:
    has_intervals = any(series.bounds(i) for series in figure.series for i in range(len(series.x)))
    first = Column(name=figure.x.title) if figure.x.ticks else Column(name=figure.x.title, kind=figure.x.unit)
    columns = [Column(name="series"), first, Column(name=figure.y.title, kind=figure.y.unit)]
    columns += [Column(name=name, kind=figure.y.unit) for name in ("low", "high") if has_intervals]
    rows: list[list[Cell]] = []
    for series in figure.series:
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            bounds: Sequence[Cell] = series.bounds(i) or (None, None)
            rows.append([series.name, figure.x.ticks[int(x)] if figure.x.ticks else x, y, *(bounds if has_intervals else ())])
    return Table(title=figure.title, columns=columns, rows=rows, notes=figure.notes)


def _tabulate_samples(figure: Figure) -> Table:
    import numpy as np

    shares = {"lowest": 0.0, "first quartile": 0.25, "median": 0.5, "third quartile": 0.75, "highest": 1.0}
    columns = [Column(name=figure.x.title), Column(name="series"), Column(name="values", kind="count"), Column(name="mean", kind="points")]
    columns += [Column(name=name, kind="points") for name in shares]
    rows: list[list[Cell]] = []
    for sample in figure.samples:
        values = np.asarray(sample.values, dtype=np.float64)
        quantiles = [float(q) for q in np.quantile(values, list(shares.values()))]
        rows.append([figure.x.ticks[sample.tick], sample.name, len(values), float(values.mean()), *quantiles])
    return Table(title=figure.title, columns=columns, rows=rows, notes=figure.notes)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a text; `strength` says how much it counts for the label: 0 not at all, 3 most."""

    text: str
    strength: int = 0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A label of a document with the evidence for it.

    Args:
        label: its name.
        state: right, wrong or missed.
        score: None for a label that is not among the predictions.
        reason: in words, from the scorers; empty without.
        passages: the text around the strongest places.
    """

    label: str
    state: Literal["right", "wrong", "missed"]
    score: float | None
    reason: str
    passages: Sequence[Passage]


@dataclass(frozen=True, kw_only=True)
class ShownDocument:
    """A document with its labels and their evidence."""

    doc_id: str
    summary: str
    evidence: Sequence[Evidence]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the page.

    Args:
        name: its anchor.
        title: its heading.
        text: paragraphs above its tables and figures.
        tables: of numbers and names.
        figures: see `Figure`.
        documents: with evidence.
        missing: what is left out, each in one sentence with the reason and the command that gives it.
    """

    name: str
    title: str
    text: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    documents: Sequence[ShownDocument] = ()
    missing: Sequence[str] = ()
