"""The page: well-formed, escaped, without anything to fetch, with a name for every part."""

import re
from html.parser import HTMLParser

import pytest

from plant_cli.api import Column, Table
from plant_cli.report.figures import Axis, Evidence, Figure, Passage, Section, Series, ShownDocument, draw
from plant_cli.report.page import inline, render, set_commands

HOSTILE = (
    """"><img src=x onerror=alert(1)><script>alert(2)</script></title></style>"""
    """<style>@import url(http://evil.example/x)</style>{{ 7*7 }}\x1b\u202e"""
)
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
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

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


@pytest.fixture
def page():
    figure = Figure(
        name="f",
        title=HOSTILE,
        description=HOSTILE,
        form="bars",
        x=Axis(title=HOSTILE, ticks=[HOSTILE]),
        y=Axis(title="y"),
        series=[Series(name=HOSTILE, x=[0], y=[0.5])],
    )
    table = Table(title=HOSTILE, columns=[Column(name=HOSTILE), Column(name="n", kind="count")], rows=[[HOSTILE, 3]], notes=[HOSTILE])
    evidence = Evidence(
        label=HOSTILE, state="wrong", score=0.5, reason=HOSTILE, passages=[Passage(text=HOSTILE), Passage(text=HOSTILE, strength=3)]
    )
    document = ShownDocument(doc_id=HOSTILE, summary=HOSTILE, evidence=[evidence])
    section = Section(name="s", title="S", text=[HOSTILE], tables=[table], figures=[figure], documents=[document], missing=[HOSTILE])
    return render(HOSTILE, [HOSTILE], [section], {"f": draw(figure)[0]}, [HOSTILE])


def test_whatever_data_hold_is_text(page):
    found = Page(page)
    assert found.open == []
    tags = [tag for tag, _ in found.elements]
    assert not {"script", "img", "iframe", "object", "embed", "base", "form"} & set(tags)
    assert tags.count("title") == 2  # of the page and of its drawing
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    assert "{{ 7*7 }}" in page
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_nothing_is_fetched(page):
    found = Page(page)
    for tag, attributes in found.elements:
        for name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert "@import" not in style
    assert "url(" not in style
    policy = next(a["content"] for tag, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_a_screen_reader_finds_its_way(page):
    found = Page(page)
    tags = [tag for tag, _ in found.elements]
    assert {"header", "nav", "main", "section", "footer", "figure", "figcaption", "details", "caption"} <= set(tags)
    assert found.headings[0] == 1
    assert found.headings.count(1) == 1
    assert all(later - before <= 1 for before, later in zip(found.headings, found.headings[1:], strict=False))
    assert tags.count("table") == tags.count("caption")
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in found.elements if tag == "th")
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in found.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert set((attributes.get(name) or "").split()) <= set(ids)
    for tag, attributes in found.elements:
        if tag in ("a", "use") and (link := attributes.get("href") or attributes.get("xlink:href") or "").startswith("#"):
            assert link[1:] in ids
    assert next(attributes for tag, attributes in found.elements if tag == "svg")["role"] == "img"
    assert ("html", {"lang": "en"}) in found.elements


def test_drawings_take_the_colours_of_the_page_and_texts_stay_as_they_are():
    svg = '<?xml version="1.0"?>\n<svg viewBox="0 0 10 20"><defs><style>*{}</style><path id="m1" style="stroke: #0b5cad"/></defs>'
    svg += '<use xlink:href="#m1" clip-path="url(#m1)"/>'
    found = inline(f'{svg}<text style="font: 10px \'DejaVu Sans\', sans-serif; fill: #1b1f23">id="m1" #1b1f23</text></svg>', "f")
    assert 'id="f-m1" style="stroke: var(--s1)"' in found
    assert 'xlink:href="#f-m1" clip-path="url(#f-m1)"' in found
    assert 'font: 10px var(--font); fill: var(--ink)">id="m1" #1b1f23<' in found
    assert found.startswith("<svg ")
    assert "<style" not in found
    assert "font-family: var(--font); fill" in inline("<svg><text style=\"font-family: 'A', 'B'; fill: red\">a</text></svg>", "f")
    assert 'aria-labelledby="f-title"' in found


def test_commands_are_code_and_the_rest_is_escaped():
    assert str(set_commands("run `plant eval <b>` & <i>")) == "run <code>plant eval &lt;b&gt;</code> &amp; &lt;i&gt;"
