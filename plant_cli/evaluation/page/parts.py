"""What each part of a system adds: the network and every scorer alone, beside all together."""

from __future__ import annotations

from collections.abc import Sequence

from plant_cli.api.output import Cell, Column, Table
from plant_cli.artefacts.metrics import Bound
from plant_cli.artefacts.predictions import WHOLE
from plant_cli.evaluation.page.charts import Axis, Figure, Section
from plant_cli.evaluation.page.evaluated import Evaluated
from plant_cli.evaluation.page.headline import UNIT, draw_bounds, show_bound
from plant_cli.evaluation.parts import SHOWN


def write_parts(systems: Sequence[Evaluated]) -> Section:
    """A table and a figure for each system that has parts."""
    having = [system for system in systems if system.metrics.parts]
    missing = [
        f"'{system.name}' has no parts to tell apart: `{system.command('finetune', '--scorers words,titles,neighbours,linear')}` trains "
        "scorers beside the network, and `plant eval` then measures each alone."
        for system in systems
        if system not in having
    ]
    return Section(
        name="parts",
        title="What each part adds",
        text=["Each part alone, with weights of its own, and all of them together."] if having else [],
        tables=[_tabulate(system) for system in having],
        figures=[_draw(system, number) for number, system in enumerate(having, start=1)],
        missing=missing,
    )


def collect_parts(system: Evaluated) -> dict[str, dict[str, Bound]]:
    """The metrics of each part, and of the whole, by the name of the part."""
    return {**system.metrics.parts, WHOLE: system.metrics.all_metrics()}


def _tabulate(system: Evaluated) -> Table:
    columns = [Column(name="part"), *(Column(name=metric) for metric in SHOWN)]
    rows: list[list[Cell]] = [[name, *(show_bound(metrics.get(m)) for m in SHOWN)] for name, metrics in collect_parts(system).items()]
    return Table(title=f"Parts of {system.name}", columns=columns, rows=rows, notes=[f"in points, with intervals; {system.conditions}"])


def _draw(system: Evaluated, number: int) -> Figure:
    parts = collect_parts(system)
    names = [name for name in SHOWN if any(name in metrics and metrics[name].value is not None for metrics in parts.values())]
    return Figure(
        name=f"parts-{number}",
        title=f"Parts of {system.name}",
        description="Each metric of each part as a dot, with its interval as a line.",
        form="dots",
        x=Axis(title="metric", ticks=names),
        y=Axis(title=UNIT),
        series=[draw_bounds(name, names, metrics) for name, metrics in parts.items()],
        notes=[system.conditions],
    )
