"""The page: complete, well-formed, escaped, without anything to fetch; its figures and its size
with very many labels.
"""

import re
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from plant_report.drawing import Drawing, plot_bounds, require_packages
from plant_report.evaluated import SHARE_COLUMNS
from plant_report.page import (
    Contents,
    MarkedDocument,
    MarkedLabel,
    PageSection,
    render,
    set_commands,
    write_contents,
)
from plant_report.report import gather

from plant_cli.api import Column, ComponentError, Passage, Table
from plant_cli.evaluation.results import Bound
from tests.plugins.plant_report.conftest import find

HOSTILE = (
    """"><img src=x onerror=alert(1)><script>alert('$x_{1}$')</script></title></style>"""
    """<style>@import url(http://evil.example/x)</style>{{ 7*7 }}\x1b\u202e"""
)
VOID = {"meta", "link", "br", "img", "input", "hr"}
SVG = "{http://www.w3.org/2000/svg}"


class Parsed(HTMLParser):
    """Elements with their attributes, and whether all of them were closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.headings = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def draw(names, **changes):
    bounds = {name: {tick: Bound(value=0.5, low=0.4, high=0.6) for tick in names} for name in names}
    given = {
        "name": "f",
        "title": "F",
        "caption": "c",
        "paint": lambda axes: plot_bounds(axes, names, bounds),
        "rows": len(names),
    }
    return Drawing(**{**given, **changes})


@pytest.fixture
def page():
    table = Table(
        title=HOSTILE,
        columns=[Column(name=HOSTILE), Column(name="n", kind="count")],
        rows=[[HOSTILE, 3]],
        notes=[HOSTILE],
    )
    passages = [Passage(text=HOSTILE), Passage(text=HOSTILE, strength=3)]
    label = MarkedLabel(name=HOSTILE, state="wrong", score=0.5, reason=HOSTILE, passages=passages)
    document = MarkedDocument(doc_id=HOSTILE, summary=HOSTILE, labels=[label])
    drawing = draw([HOSTILE], title=HOSTILE, caption=HOSTILE)
    section = PageSection(
        name="s",
        title="S",
        text=[HOSTILE],
        tables=[table],
        drawings=[drawing],
        documents=[document],
        missing=[HOSTILE],
    )
    contents = Contents(
        title=HOSTILE, lead=[HOSTILE], headline=table, sections=[section], footer=[HOSTILE]
    )
    return render(contents, {"f": drawing.render()[0]})


def test_data_are_text_and_nothing_is_fetched(page):
    found = Parsed(page)
    assert found.open == []
    tags = [tag for tag, _ in found.elements]
    assert not {"script", "iframe", "object", "embed", "base", "form"} & set(tags)
    assert tags.count("title") == tags.count("img") == 1
    for tag, attributes in found.elements:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    assert "{{ 7*7 }}" in page
    assert not {"\x1b", "\u202e"} & set(page)
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert "@import" not in style
    assert "url(" not in style
    policy = next(
        a["content"]
        for tag, a in found.elements
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert (
        str(set_commands("run `plant eval <b>` & <i>"))
        == "run <code>plant eval &lt;b&gt;</code> &amp; &lt;i&gt;"
    )


def test_a_screen_reader_finds_its_way(page):
    found = Parsed(page)
    tags = [tag for tag, _ in found.elements]
    assert {"header", "nav", "main", "section", "footer", "figure", "figcaption", "caption"} <= set(
        tags
    )
    assert found.headings[0] == found.headings.count(1) == 1
    assert all(
        later - before <= 1
        for before, later in zip(found.headings, found.headings[1:], strict=False)
    )
    assert tags.count("table") == tags.count("caption")
    assert all(
        attributes.get("scope") in ("col", "row")
        for tag, attributes in found.elements
        if tag == "th"
    )
    assert all(attributes.get("alt") for tag, attributes in found.elements if tag == "img")
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(
        (attributes.get("aria-labelledby") or ids[0]) in ids for _, attributes in found.elements
    )
    links = [attributes["href"][1:] for tag, attributes in found.elements if tag == "a"]
    assert set(links) <= set(ids)
    assert ("html", {"lang": "en"}) in found.elements


def test_figures_are_drawn_twice_alike_and_names_stay_text():
    drawing = draw([HOSTILE, "_hidden", "体重", "x" * 300])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg, png = drawing.render()
    assert drawing.render() == (svg, png)
    assert png.startswith(b"\x89PNG")
    root = ElementTree.fromstring(svg)
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert not list(root.iter(f"{SVG}script"))
    assert {"体重", "x" * 41 + "…"} <= set(texts)
    assert any(text.endswith("_hidden") for text in texts)
    assert (
        sum(text.startswith('"><img src=x onerror=alert(1)>') for text in texts) == 2
    )  # in the legend and at the axis


def test_a_missing_package_says_how_it_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not there
    with pytest.raises(ComponentError, match="matplotlib") as raised:
        require_packages()
    assert raised.value.todo == "pip install 'plant-cli[report]'"


@pytest.fixture
def gathered(open_corpus):
    return lambda systems: gather(
        systems, paper=False, documents=2, open_corpus=open_corpus, find_reasons=find
    )


def test_sections_in_order_with_conditions_in_every_table(systems, gathered, tmp_path):
    contents = gathered(systems)
    assert contents.title == "finetune against baseline"
    names = [section.name for section in contents.sections]
    assert names == [
        "headline",
        "parts",
        "frequency",
        "labels",
        "scores",
        "training",
        "documents",
        "cost",
    ]
    assert len({drawing.name for drawing in contents.drawings}) == len(contents.drawings) > 4
    for table in (table for section in contents.sections for table in section.tables):
        notes = " ".join(table.notes)
        assert all(
            word in notes
            for word in ("24 documents", "labels", "convention plant", "seed 0", "95% intervals")
        ), table.title
    assert all("ocuments of" in drawing.caption for drawing in contents.drawings)
    page, figures, tables = tmp_path / "out" / "r.html", tmp_path / "f", tmp_path / "t"
    assert write_contents(contents, page, figures, tables)[0] == page
    assert {path.name for path in figures.iterdir()} == {
        f"{d.name}.{suffix}" for d in contents.drawings for suffix in ("svg", "png")
    }
    assert "| metric | finetune | baseline |" in (tables / "headline.md").read_text()
    assert r"\begin{tabular}" in (tables / "headline.tex").read_text()
    assert page.read_text().count("<img ") == len(contents.drawings)
    assert write_contents(contents, page, None, None) == [page]


def test_a_page_of_131_thousand_labels_stays_small(systems, gathered, tmp_path, monkeypatch):
    rng, n = np.random.default_rng(0), 131_073
    frame = pl.DataFrame(
        {
            "label": [f"L{i}" for i in range(n)],
            "title": [f"The title of label {i}" for i in range(n)],
            "train_count": rng.integers(1, 600, n),
            "test_count": rng.integers(0, 4, n),
            **dict.fromkeys(("tp", "fp", "fn"), pl.Series([1] * n)),
            **{name: rng.random(n) for name in SHARE_COLUMNS},
        }
    )
    monkeypatch.setattr("plant_report.evaluated.Evaluated.read_labels", lambda self: frame)
    contents = gathered(systems)
    assert "rare-labels" in {drawing.name for drawing in contents.drawings}
    write_contents(contents, tmp_path / "r.html", None, None)
    assert (tmp_path / "r.html").stat().st_size < 2_000_000


def test_one_system_whose_metrics_are_undefined(evaluate, gathered, tmp_path):
    [system] = evaluate()
    empty = {name: Bound() for name in system.metrics.metrics}
    bare = replace(
        system,
        metrics=system.metrics.model_copy(
            update={"metrics": empty, "bins": {}, "calibration": None}
        ),
    )
    contents = gathered([bare])
    assert contents.title == "Report on run"
    assert all(cell == "–" for row in contents.headline.rows for cell in row[1:])
    assert "`plant report A B`" in contents.sections[0].missing[0]
    write_contents(contents, tmp_path / "r.html", None, None)
