"""What the figures of the page have in common: style, colours, intervals, and how they become
SVG and PNG.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from plant_cli.api.errors import missing_package
from plant_cli.data.printed_tables import printable_cell
from plant_cli.evaluation.results import Bound

POINTS = "points (0 to 100)"
COLOURS = (
    "#0b5cad",
    "#c2410c",
    "#0f766e",
    "#a21caf",
    "#7c5c00",
    "#57606a",
)  # contrast of at least 4.5 : 1 on white
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.5)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (8, 2)),
    (0, (3, 1, 1, 1, 1, 1)),
)
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++")
WIDE, HIGH, ROW = 6.4, 3.7, 0.34  # inches of a figure, and of a row with a name
LONGEST_NAME = 42  # characters
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "plant",
    "text.parse_math": False,  # names of labels and systems are text, whatever they hold
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d0d7de",
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
    "legend.frameon": False,
    "legend.handlelength": 3,
    "legend.fontsize": 9,
}


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure of the page."""

    name: str  # of its files, such as `headline`
    title: str
    caption: str  # what it shows, and of which documents and labels
    paint: Callable[[Any], None]  # draws into the axes of matplotlib
    rows: int = 0  # names one below the other, which set the height; 0: the usual height

    def render(self) -> tuple[str, bytes]:
        """SVG and PNG on white, with a legend above the axes if there is more than one series."""
        logging.getLogger("matplotlib").setLevel(logging.ERROR)  # where its cache lies is no news
        import matplotlib as mpl
        from cycler import cycler
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        cycle = cycler(color=COLOURS) + cycler(marker=MARKERS) + cycler(linestyle=LINES)
        with mpl.rc_context({**STYLE, "axes.prop_cycle": cycle}), warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="Glyph .* missing from"
            )  # text stays text: the reader's fonts have it
            height = max(1.8, 1.1 + ROW * self.rows) if self.rows else HIGH
            figure = Figure(figsize=(WIDE, height), layout="constrained")
            axes = figure.add_subplot()
            self.paint(axes)
            names = axes.get_legend_handles_labels()[1]
            if len(names) > 1:
                columns = 1 if max(map(len, names)) > LONGEST_NAME // 2 else 2
                figure.set_size_inches(WIDE, height + 0.19 * -(-len(names) // columns))
                figure.legend(loc="outside upper left", ncols=columns)
            svg, png = io.StringIO(), io.BytesIO()
            unnamed = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            FigureCanvasSVG(figure).print_svg(
                svg, metadata={**unnamed, "Title": printable_cell(self.title)}
            )
            FigureCanvasAgg(figure)
            figure.savefig(png, format="png", dpi=150, metadata={"Software": None})
        return svg.getvalue(), png.getvalue()


def require_packages() -> None:
    """Make sure that figures can be drawn and pages written."""
    for name in ("matplotlib", "jinja2"):
        if find_spec(name) is None:
            raise missing_package(
                name, "which a report is made with", "report", where="plant report"
            )


def short(name: str) -> str:
    """A name on one line, cut if it is long. matplotlib would hide one that begins with an
    underscore.
    """
    text = printable_cell(name)
    text = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return f"\u200b{text}" if text.startswith("_") else text


Point = tuple[
    float, Bound
]  # the coordinate of a value on the other axis, and the value with its interval


def in_points(bound: Bound) -> Bound:
    """A fraction and its interval as numbers from 0 to 100."""
    return Bound(**{name: None if end is None else 100 * end for name, end in bound})


def plot_bounds(
    axes: Any,
    ticks: Sequence[str],
    series: Mapping[str, Mapping[str, Bound]],
    *,
    upright: bool = False,
) -> None:
    """Values with their intervals at named ticks; undefined ones are left out.

    Args:
        series: fractions by tick, for each system or part.
        upright: ticks from left to right, and values joined by lines; else from the top down.
    """
    for number, (name, bounds) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * min(0.19, 0.8 / len(series))
        points = [
            (i + shift, in_points(bounds[tick]))
            for i, tick in enumerate(ticks)
            if tick in bounds and bounds[tick].value is not None
        ]
        _plot_points(axes, name, points, upright=upright, line=upright)
    if upright:
        axes.set_xticks(range(len(ticks)), map(short, ticks))
        axes.set_xlim(-0.6, len(ticks) - 0.4)
        axes.grid(visible=False, axis="x")
    else:
        axes.set_yticks(range(len(ticks)), map(short, ticks))
        axes.set_ylim(len(ticks) - 0.5, -0.5)
        axes.set_xlabel(POINTS)
        axes.grid(visible=False, axis="y")


def draw_series(
    name: str,
    title: str,
    caption: str,
    series: Mapping[str, Sequence[Point]],
    settings: Mapping[str, Any],
    *,
    line: bool = True,
    diagonal: bool = False,
) -> list[Drawing]:
    """A figure of values over numbers, joined by a line for each system; none where there is no
    series.

    Args:
        diagonal: whether the line of equal coordinates from 0 to 100 is drawn.
        settings: of the axes, such as `xlabel`.
    """

    def paint(axes: Any) -> None:
        for system, points in series.items():
            _plot_points(axes, system, points, upright=True, line=line)
        if diagonal:
            axes.plot((0, 100), (0, 100), color="gray", marker="", linewidth=1, linestyle=":")
        axes.set(**settings)
        if settings["xlabel"] == "epoch":
            axes.xaxis.get_major_locator().set_params(integer=True)
        if settings.get("xscale") == "log":
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("")

    return [Drawing(name=name, title=title, caption=caption, paint=paint)] if series else []


def _plot_points(
    axes: Any, name: str, points: Sequence[Point], *, upright: bool, line: bool
) -> None:
    """Values with their intervals as one series of the legend."""
    at, values = [x for x, _ in points], [bound.value for _, bound in points]
    style = {"markevery": max(1, len(at) // 12)} if line else {"linestyle": "none"}
    (drawn,) = axes.plot(*((at, values) if upright else (values, at)), label=short(name), **style)
    ends = [
        (x, bound.low, bound.high)
        for x, bound in points
        if bound.low is not None and bound.high is not None
    ]
    if ends:
        (axes.vlines if upright else axes.hlines)(
            *zip(*ends, strict=True), color=drawn.get_color(), linewidth=1.5
        )
