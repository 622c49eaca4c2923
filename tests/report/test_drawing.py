"""Figures as SVG with text as text, and as PNG; hostile names stay text."""

import sys
import warnings
from xml.etree import ElementTree

import pytest

from plant_cli.api import ComponentError
from plant_cli.report.figures import Axis, Figure, Sample, Series, draw, require_packages

HOSTILE = "<script>alert('$x_{1}$')</script> & \x1b[31m"


def make(**given):
    return Figure(**{"name": "f", "title": "F", "description": "d", "form": "lines", "x": Axis(title="x"), "y": Axis(title="y"), **given})


FIGURES = {
    "lines": make(series=[Series(name=f"s{i}", x=[0, 1], y=[0.1, 0.2], low=[0.0, 0.1], high=[0.2, 0.3]) for i in range(8)]),
    "one place": make(series=[Series(name="a", x=[0.5], y=[0.5])], rule="diagonal"),
    "log": make(x=Axis(title="x", unit="count", log=True), series=[Series(name="a", x=[10, 1000], y=[0.1, 0.2])]),
    "points": make(form="points", series=[Series(name="a", x=[0.5], y=[0.5], low=[0.4], high=[0.6])]),
    "bars": make(
        form="bars", x=Axis(title="x", ticks=["a", "b"]), series=[Series(name="a", x=[0, 1], y=[1, 2]), Series(name="b", x=[1], y=[2])]
    ),
    "dots": make(form="dots", x=Axis(title="x", ticks=["a"]), series=[Series(name="a", x=[0], y=[0.5], low=[None], high=[None])]),
    "violins": make(
        form="violins",
        x=Axis(title="x", ticks=["1-5", "6-10"]),
        samples=[
            Sample(name="a", tick=0, values=[0.0]),
            Sample(name="b", tick=1, values=[0.5, 0.5]),
            Sample(name="a", tick=1, values=[0.0, 1.0]),
        ],
    ),
}


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_every_form_is_drawn_twice_alike(figure):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg, png = draw(figure)
    root = ElementTree.fromstring(svg)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "y" in texts or "x" in texts
    assert [root.find(f"{{http://www.w3.org/2000/svg}}{name}").text for name in ("title", "desc")] == ["F", "d"]
    assert png.startswith(b"\x89PNG")
    assert draw(figure) == (svg, png)


def test_names_stay_text():
    names = [HOSTILE, "_hidden", "体重", "x" * 300]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg, _ = draw(make(form="bars", x=Axis(title="x", ticks=names), series=[Series(name=name, x=[0], y=[1]) for name in names]))
    root = ElementTree.fromstring(svg)
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert any(text.startswith("<script>alert('$x_{1}$')</script> & ") for text in texts)
    assert {"体重", "x" * 41 + "…"} <= set(texts)
    assert any(text.endswith("_hidden") for text in texts)


def test_a_missing_package_says_how_it_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not there
    with pytest.raises(ComponentError, match="matplotlib") as raised:
        require_packages()
    assert raised.value.todo == "pip install 'plant-cli[report]'"
