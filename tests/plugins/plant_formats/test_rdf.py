"""RDF vocabularies: every syntax says the same, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import rdflib
from effort import effort
from plant_formats.concepts import find_rdf_syntax, read_skos

from plant_cli.api import DataError, Purpose

TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
<http://x/1> a skos:Concept ; skos:prefLabel "Oil"@en, "\u00d6l"@de ; skos:altLabel "Petroleum"@en, "Erd\u00f6l"@de ;
  skos:definition "What burns."@en ; skos:broader <http://x/2> .
<http://x/2> a skos:Concept ; skos:prefLabel "Energie"@de ; owl:deprecated true ; dct:isReplacedBy <http://x/1> .
"""

REGIONS = TURTLE.replace("@en", "@en-GB").replace("@de", "@de-AT")
PATH = Path("v.ttl")


@pytest.mark.parametrize("syntax", ["turtle", "xml", "json-ld", "nt"])
def test_every_syntax_is_known_by_content_and_says_the_same(syntax: str) -> None:
    text = rdflib.Graph().parse(data=TURTLE, format="turtle").serialize(format=syntax)
    assert find_rdf_syntax(text) == syntax
    table, remarks = read_skos(text, syntax, Purpose(), PATH)
    assert table.rows() == [
        ("http://x/1", "Oil", "What burns.", ["Petroleum"], ["http://x/2"], False, [], None),
        ("http://x/2", "Energie", None, [], [], True, ["http://x/1"], None),
    ]
    assert "1 concepts have no title in 'en' and take one in another language" in remarks[1]


@pytest.mark.parametrize(
    ("text", "language", "rows"),
    [
        (TURTLE, "de", [("\u00d6l", ["Erd\u00f6l"]), ("Energie", [])]),
        *(
            (REGIONS, language, [("Oil", ["Petroleum"]), ("Energie", [])])
            for language in (None, "en", "en-GB", "en-gb")
        ),
    ],
)
def test_another_language_and_titles_with_a_region_alone(
    text: str, language: str | None, rows: list[tuple[object, ...]]
) -> None:
    table, remarks = read_skos(text, "turtle", Purpose(language), PATH)
    assert table.select("title", "alternatives").rows() == rows
    assert language == "de" or "1 concepts have no title" in remarks[1]


@pytest.mark.parametrize("node", ['[ <http://x/value> "text"@en ]', "<http://x/note>"])
def test_notes_and_names_that_are_nodes_are_left_out(node: str) -> None:
    more = (
        f"<http://x/1> skos:definition {node} ; skos:altLabel {node} . <http://x/2> "
        f"skos:prefLabel {node} ."
    )
    table, _ = read_skos(TURTLE + more, "turtle", Purpose(), PATH)
    assert table.select("title", "description", "alternatives").rows() == [
        ("Oil", "What burns.", ["Petroleum"]),
        ("Energie", None, []),
    ]


CONCEPT = '"@id": "http://x/1", "http://www.w3.org/2004/02/skos/core#prefLabel": "Oil"'


@pytest.fixture
def address() -> Iterator[tuple[str, list[str]]]:
    """A server of contexts on this machine, and what was asked of it."""
    asked: list[str] = []

    class Contexts(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/ld+json")
            self.end_headers()
            self.wfile.write(b'{"@context": {}}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Contexts) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/c", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "document",
    [
        '{"@context": "ADDRESS", %s}',
        '{"@context": ["ADDRESS"], %s}',
        '{"@context": [[{"a": "http://x/[a]"}, ["ADDRESS"]]], %s}',
        '{"@context": {"@import": "ADDRESS"}, %s}',
        '{"@context": {"@context": "ADDRESS"}, %s}',
        '{"@context": {}, "@context": "ADDRESS", %s}',
        '[[{"@graph": [{"@context": "ADDRESS", %s}]}]]',
        '{"@context": {"of": {"@id": "http://x/of", "@context": "ADDRESS"}}, "of": {%s}}',
        '{"@graph": [{"\\u0040context": "\\u0068ADDRESS", %s}]}',
    ],
)
def test_no_context_is_asked_for(address: tuple[str, list[str]], document: str) -> None:
    place, asked = address
    text = (
        (document % CONCEPT)
        .replace("\\u0068ADDRESS", "\\u0068" + place[1:])
        .replace("ADDRESS", place)
    )
    with pytest.raises(DataError, match="nothing is fetched"):
        read_skos(text, "json-ld", Purpose(), PATH)
    assert asked == []


def test_a_context_within_the_file_is_read() -> None:
    context = (
        '{"@vocab": "http://www.w3.org/2004/02/skos/core#", "id": "@id", "of": {"@id": '
        '"http://x/of", "@context": {"b": "http://x/b"}}}'
    )
    table, _ = read_skos(
        f'{{"@context": [null, {context}], "id": "http://x/1", "prefLabel": "Oil"}}',
        "json-ld",
        Purpose(),
        PATH,
    )
    assert table.select("label", "title").rows() == [("http://x/1", "Oil")]


@pytest.mark.parametrize(
    "text", ["", "label,title\n", '{"text": "a"}', "<html><body/></html>", "a\tb\n"]
)
def test_what_is_no_rdf(text: str) -> None:
    assert find_rdf_syntax(text) is None


def test_effort_grows_as_the_comments_before_the_root_do() -> None:
    def effort_of(comments: int) -> float:
        text = "<!-- a -->\n" * comments + "<html/>"
        return effort(lambda: [find_rdf_syntax(text) for _ in range(100)])

    assert effort_of(16) < 32 * effort_of(8)  # it doubled with each comment: 256 times
    assert find_rdf_syntax("<!-- a -->\n" * 5000 + "<html/>") is None
    assert find_rdf_syntax("<?xml version='1.0'?>\n" + "<!-- a -->\n" * 50 + "<rdf:RDF/>") == "xml"
