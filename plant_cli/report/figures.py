"""Figures of the page: what they show, and how matplotlib draws them."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal
from xml.sax.saxutils import escape

import numpy as np

from plant_cli.api.context import Cell, Column, Table
from plant_cli.api.errors import ComponentError
from plant_cli.report.text import printable_cell

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


INK, PALE, GRID = "#1b1f23", "#57606a", "#d0d7de"
COLOURS = ("#0b5cad", "#c2410c", "#0f766e", "#a21caf", "#7c5c00", "#57606a")  # each at least 4.5 : 1 on white
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++")
FEW_PLACES = 8  # of a logarithmic scale that are named
FEW = 25  # places of a line that each get a marker
LONGEST = 42  # characters of a name beside an axis
BRIEF = 26  # characters of a name that leave room for another one beside it
ENTRY = 0.19  # inches for a line of a legend
ROW = 0.34  # inches for a name of a vertical list
WIDE, HIGH = 6.4, 3.7  # inches

_OPEN = re.compile(r"<svg\b[^>]*>")

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "plant",
    "text.parse_math": False,
    "font.size": 10,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": PALE,
    "ytick.color": PALE,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
}


def require_packages() -> None:
    """Make sure that figures can be drawn and pages written.

    Raises:
        ComponentError: a package of the extra `report` is not installed.
    """
    for name in ("matplotlib", "jinja2"):
        if find_spec(name) is None:
            raise ComponentError(
                f"the package {name}, which a report is made with, is not installed",
                where="plant report",
                expected="the extra `report`",
                todo="pip install 'plant-cli[report]'",
            )


def draw(figure: Figure) -> tuple[str, bytes]:
    """A figure as SVG and as PNG, on white.

    Args:
        figure: with at least one value.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # text stays text: the reader's fonts have it
        vertical = figure.form in ("bars", "dots")
        rows = len(figure.x.ticks) * (1 + 0.35 * (len(figure.series) - 1))
        high = max(1.6, 1.1 + ROW * rows) if vertical else HIGH
        names = list(dict.fromkeys([*(one.name for one in figure.series), *(one.name for one in figure.samples)]))
        canvas = Canvas(figsize=(WIDE, high + ENTRY * -(-len(names) // _count_columns(names))), layout="constrained")
        axes = canvas.add_subplot()
        _FORMS[figure.form](axes, figure)
        _label(axes, figure, vertical=vertical)
        svg, png = io.StringIO(), io.BytesIO()
        FigureCanvasSVG(canvas).print_svg(svg, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        FigureCanvasAgg(canvas)
        canvas.savefig(png, format="png", dpi=150, metadata={"Software": None})
    return _describe(svg.getvalue(), figure), png.getvalue()


def _describe(svg: str, figure: Figure) -> str:
    """A drawing with its title and description, for readers of the file alone."""
    said = f"<title>{escape(printable_cell(figure.title))}</title>\n <desc>{escape(printable_cell(figure.description))}</desc>"
    return _OPEN.sub(lambda tag: f"{tag[0]}\n {said}", svg, count=1)


def _draw_lines(axes: Any, figure: Figure) -> None:
    for number, series in enumerate(figure.series):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        x, y = _place(series.x, figure.x), _scale(series.y, figure.y)
        each = len(x) <= FEW
        shift = _dodge(number, len(figure.series)) if figure.x.ticks else 0.0
        line = LINES[number % len(LINES)] if figure.form == "lines" else "none"
        axes.plot(
            x + shift,
            y,
            color=colour,
            linestyle=line,
            linewidth=1.8,
            marker=marker,
            markersize=6,
            markevery=1 if each else max(1, len(x) // 8),
            label=_name(series.name),
        )
        for i, place in enumerate(x + shift):
            bounds = series.bounds(i)
            if bounds:
                axes.vlines(place, *_scale(bounds, figure.y), color=colour, linewidth=1.4)
    if figure.rule == "diagonal":
        ends = (0, 100) if figure.x.unit == "points" else (0, 1)
        axes.plot(ends, ends, color=PALE, linewidth=1, linestyle=(0, (2, 2)), zorder=1)


def _draw_bars(axes: Any, figure: Figure) -> None:
    thick = 0.7 / len(figure.series)
    for number, series in enumerate(figure.series):
        places = np.asarray(series.x) + (number - (len(figure.series) - 1) / 2) * thick
        axes.barh(
            places,
            _scale(series.y, figure.y),
            height=thick * 0.9,
            color=COLOURS[number % len(COLOURS)],
            hatch=HATCHES[number % len(HATCHES)],
            edgecolor="white",
            linewidth=0,
            label=_name(series.name),
        )


def _draw_dots(axes: Any, figure: Figure) -> None:
    for number, series in enumerate(figure.series):
        colour = COLOURS[number % len(COLOURS)]
        places = np.asarray(series.x) + 1.6 * _dodge(number, len(figure.series))
        for i, place in enumerate(places):
            bounds = series.bounds(i)
            if bounds:
                axes.hlines(place, *_scale(bounds, figure.y), color=colour, linewidth=1.8)
        marker = MARKERS[number % len(MARKERS)]
        axes.plot(
            _scale(series.y, figure.y), places, color=colour, marker=marker, markersize=6.5, linestyle="none", label=_name(series.name)
        )


def _draw_violins(axes: Any, figure: Figure) -> None:
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(sample.name for sample in figure.samples))
    wide = 0.8 / len(names)
    for sample in figure.samples:
        number = names.index(sample.name)
        _draw_violin(axes, sample, sample.tick + (number - (len(names) - 1) / 2) * wide, 0.9 * wide, number)
    if len(names) > 1:
        handles = [
            Patch(facecolor=COLOURS[i % len(COLOURS)], alpha=0.55, hatch=HATCHES[i % len(HATCHES)], edgecolor=INK, label=_name(name))
            for i, name in enumerate(names)
        ]
        _place_legend(axes, handles)


def _draw_violin(axes: Any, sample: Sample, place: float, wide: float, number: int) -> None:
    values = 100 * np.asarray(sample.values, dtype=np.float64)
    colour = COLOURS[number % len(COLOURS)]
    if np.ptp(values) > 0:
        (body,) = axes.violinplot([values], positions=[place], widths=wide, showextrema=False)["bodies"]
        body.set(facecolor=colour, edgecolor=INK, linewidth=0.8, alpha=0.55, hatch=HATCHES[number % len(HATCHES)])
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    axes.vlines(place, low, high, color=INK, linewidth=3)
    axes.plot([place], [middle], marker="o", markersize=6, color="white", markeredgecolor=INK)
    axes.plot([place], [values.mean()], marker="D", markersize=5, color=colour, markeredgecolor=INK)


_FORMS = {"lines": _draw_lines, "points": _draw_lines, "bars": _draw_bars, "dots": _draw_dots, "violins": _draw_violins}


def _label(axes: Any, figure: Figure, *, vertical: bool) -> None:
    across, upwards = (figure.y, figure.x) if vertical else (figure.x, figure.y)
    axes.set_xlabel(across.title)
    if vertical:
        axes.set_yticks(range(len(upwards.ticks)), [_name(tick) for tick in upwards.ticks])
        axes.set_ylim(len(upwards.ticks) - 0.5, -0.5)  # the first at the top
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    else:
        axes.set_ylabel(upwards.title)
        _set_scale(axes.yaxis, axes.set_ylim, upwards)
    if across.ticks:
        axes.set_xticks(range(len(across.ticks)), [_name(tick) for tick in across.ticks])
        axes.set_xlim(-0.6, len(across.ticks) - 0.4)
        axes.grid(visible=False, axis="x")
    else:
        _set_scale(axes.xaxis, axes.set_xlim, across)
    if len(figure.series) > 1:
        _place_legend(axes, None)


def _set_scale(axis: Any, limit: Any, of: Axis) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    if of.whole:
        limit(*((-2, 102) if of.unit == "points" else (-0.02, 1.02)))
    elif of.zero:
        limit(0)
    if of.log:
        axis.axes.set_xscale("log")
        places = sorted({float(x) for line in axis.axes.lines for x in line.get_xdata()})
        axis.set_major_locator(FixedLocator(places) if len(places) <= FEW_PLACES else LogLocator())
        axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.set_minor_locator(NullLocator())
    elif of.unit == "count":
        axis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def _place_legend(axes: Any, handles: Sequence[Any] | None) -> None:
    given = {} if handles is None else {"handles": handles}
    names = [handle.get_label() for handle in handles] if handles else axes.get_legend_handles_labels()[1]
    columns = _count_columns(names)
    axes.figure.legend(**given, loc="outside upper left", ncols=columns, handlelength=3, fontsize=9)


def _count_columns(names: Sequence[str]) -> int:
    """Of a legend: long names stand one below the other."""
    return 1 if max(map(len, names), default=0) > BRIEF else 2


def _scale(values: Any, axis: Axis) -> Any:
    return (100 if axis.unit == "points" else 1) * np.asarray(values, dtype=np.float64)


def _place(places: Any, axis: Axis) -> Any:
    return np.asarray(places, dtype=np.float64) if axis.ticks else _scale(places, axis)


def _dodge(number: int, count: int) -> float:
    """How far a series moves aside, so that intervals do not cover one another."""
    return (number - (count - 1) / 2) * min(0.12, 0.5 / count)


def _name(text: str) -> str:
    """A name as it stands in a figure: on one line, its end left out if it is long. A leading underscore would hide it from a legend."""
    shown = printable_cell(text)
    shown = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
    return f"\u200b{shown}" if shown.startswith("_") else shown
