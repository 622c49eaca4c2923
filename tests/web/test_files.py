"""The files of the page: nothing remote, nothing inline, and all of its texts in one file."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from plant_cli.data.quotes import guard_cell
from tests.web.clinic_server import PAGE

SOURCES = {path.name: path.read_text("utf-8") for path in PAGE.iterdir()}
SCRIPTS = "\n".join(text for name, text in SOURCES.items() if name.endswith(".js"))


def test_nothing_remote_and_nothing_inline():
    addresses = re.findall(r"https?://[^\"'\s]+", "\n".join(SOURCES.values()))
    assert set(addresses) == {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r"<style|\sstyle=|<script(?! type=\"module\" src=\"page/)|\son\w+=\"|javascript:",
        SOURCES["index.html"],
    )
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|sessionStorage|indexedDB",
        SCRIPTS,
    )
    kept = re.findall(r"localStorage\.(\w+)\((\w+)", SCRIPTS)
    assert kept == [("setItem", "NAME"), ("getItem", "NAME")], (
        "a browser keeps a person's name alone"
    )
    assert SCRIPTS.count("localStorage") == len(kept)


def test_every_text_is_used_and_every_one_used_is_there():
    texts = json.loads(SOURCES["texts.en.json"])
    sources = SOURCES["index.html"] + SCRIPTS
    assert set(re.findall(r'(?:data-(?:text|aria|placeholder)=|say\()"(\w+)"', sources)) <= set(
        texts
    )
    assert [key for key in texts if not re.search(rf'"{key}"|texts\.{key}\b', sources)] == []


CELLS = [
    "=1+1",
    "+cmd",
    "-x",
    "@x",
    "\tx",
    "a,b",
    'say "x"',
    "two\nlines",
    "-1.5",
    "0.5",
    "a\x07b",
    "plain",
    "",
]


def test_cells_of_a_sheet_begin_no_formula(open_page):
    page = open_page()
    written = page.evaluate(
        "async cells => (await "
        "import('/page/record.js')).writeCsv([Object.fromEntries(cells.map((cell, i) => [i, "
        "cell]))])",
        CELLS,
    )
    assert written.startswith("\ufeff")
    assert list(csv.reader(io.StringIO(written[1:], newline="")))[1] == [
        guard_cell(cell) for cell in CELLS
    ]


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("ab cd", [("network", 0, 2, 1), ("words", 0, 2, 2)], [["ab", [True, False]]]),
        ("a😀b cd", [("words", 2, 3, 1), ("words", 4, 6, 1)], [["b", [False]], ["cd", [False]]]),
        (
            "abcd",
            [("network", 0, 3, 1), ("words", 1, 4, 1)],
            [["a", [True]], ["bc", [True, False]], ["d", [False]]],
        ),
        ("ab", [("words", 1, 1, 1)], []),
        ("ab", [("words", 1, 9, 1)], [["b", [False]]]),
    ],
    ids=["two parts", "code points", "overlap", "empty span", "beyond the end"],
)
def test_stretches_of_a_text(open_page, text, words, expected):
    parts = [
        {"name": name, "words": [{"start": start, "end": end, "weight": weight}]}
        for name, start, end, weight in words
    ]
    script = """async ([text, parts]) => (await import('/page/marks.js')).stretches(text, [{ label: 'x', parts }])
      .map(({ start, end, speaks }) => [text.slice(start, end), speaks.map(({ network }) => network)])"""
    assert open_page().evaluate(script, [text, parts]) == expected
