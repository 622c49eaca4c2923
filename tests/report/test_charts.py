"""The table of a figure says what is drawn."""

from plant_cli.report.figures import Axis, Figure, Sample, Series

AXIS = Axis(title="epoch", unit="count")


def make(**given):
    return Figure(
        **{"name": "f", "title": "F", "description": "d", "form": "lines", "x": AXIS, "y": Axis(title="F1"), "notes": ["n"], **given}
    )


def test_series_with_and_without_intervals():
    plain, bounded = Series(name="a", x=[0, 1], y=[0.5, 0.25]), Series(name="b", x=[1], y=[0.75], low=[0.5], high=[1.0])
    table = make(series=[plain]).tabulate()
    assert [column.name for column in table.columns] == ["series", "epoch", "F1"]
    assert table.rows == [["a", 0, 0.5], ["a", 1, 0.25]]
    table = make(series=[plain, bounded]).tabulate()
    assert [column.name for column in table.columns][3:] == ["low", "high"]
    assert table.rows[1:] == [["a", 1, 0.25, None, None], ["b", 1, 0.75, 0.5, 1.0]]
    assert list(table.notes) == ["n"]


def test_named_places_have_their_names():
    table = make(form="bars", x=Axis(title="stage", ticks=["mig", "eval"]), series=[Series(name="a", x=[1, 0], y=[2, 3])]).tabulate()
    assert table.rows == [["a", "eval", 2], ["a", "mig", 3]]


def test_samples_are_summed_up():
    table = make(form="violins", x=Axis(title="bin", ticks=["1-5"]), samples=[Sample(name="a", tick=0, values=[0.0, 0.5, 1.0])]).tabulate()
    assert table.rows == [["1-5", "a", 3, 0.5, 0.0, 0.25, 0.5, 0.75, 1.0]]
