"""Parts of a system, as its evaluation recorded them."""

from dataclasses import replace

from plant_cli.evaluation.results import Bound
from plant_cli.report.sections import collect_parts, write_parts


def with_parts(system):
    parts = {"words": {"P@1": Bound(value=0.25, low=0.125, high=0.5)}, "network": {"P@1": Bound(value=0.5)}}
    return replace(system, metrics=system.metrics.model_copy(update={"parts": parts}))


def test_parts_beside_the_whole(systems, metrics):
    system = with_parts(systems[0])
    section = write_parts([system, systems[1]])
    [table], [figure] = section.tables, section.figures
    assert [row[:2] for row in table.rows[:2]] == [["words", "25.0 [12.5, 50.0]"], ["network", "50.0"]]
    assert table.rows[2][0] == "all together"
    whole = metrics()["metrics"]["P@1"]
    assert table.rows[2][1] == f"{100 * whole['value']:.1f} [{100 * whole['low']:.1f}, {100 * whole['high']:.1f}]"
    assert [(series.name, series.y[0]) for series in figure.series] == [("words", 0.25), ("network", 0.5), ("all together", whole["value"])]
    assert section.missing[0].startswith("'baseline' has no parts to tell apart: `plant finetune --tag baseline --scorers")
    assert list(collect_parts(system)) == ["words", "network", "all together"]


def test_without_parts_nothing_is_drawn(systems):
    section = write_parts(systems)
    assert (list(section.tables), list(section.figures), len(section.missing)) == ([], [], 2)
