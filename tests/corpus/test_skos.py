"""SKOS in four syntaxes."""

from __future__ import annotations

from pathlib import Path

import pytest
import rdflib

from plant_cli.api import DataError
from plant_cli.corpus.skos import find_rdf_syntax, read_skos

TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix dct: <http://purl.org/dc/terms/> .
<http://x/1> a skos:Concept ; skos:prefLabel "Oil"@en, "\u00d6l"@de ; skos:altLabel "Petroleum"@en, "Erd\u00f6l"@de ;
  skos:definition "What burns."@en ; skos:broader <http://x/2> .
<http://x/2> a skos:Concept ; skos:prefLabel "Energie"@de ; owl:deprecated true ; dct:isReplacedBy <http://x/1> .
"""
PATH = Path("v.ttl")


@pytest.mark.parametrize("syntax", ["turtle", "xml", "json-ld", "nt"])
def test_every_syntax_is_known_by_content_and_says_the_same(syntax: str) -> None:
    text = rdflib.Graph().parse(data=TURTLE, format="turtle").serialize(format=syntax)
    assert find_rdf_syntax(text) == syntax
    table, remarks = read_skos(text, syntax, None, PATH)
    assert table.rows() == [
        ("http://x/1", "Oil", "What burns.", ["Petroleum"], ["http://x/2"], False, []),
        ("http://x/2", None, None, [], [], True, ["http://x/1"]),
    ]
    assert "1 concepts have no title in 'en'" in remarks[1]


def test_another_language() -> None:
    table, _ = read_skos(TURTLE, "turtle", "de", PATH)
    assert table.select("title", "alternatives").rows() == [("\u00d6l", ["Erd\u00f6l"]), ("Energie", [])]
    with pytest.raises(DataError, match="no titles in 'fr'"):
        read_skos(TURTLE, "turtle", "fr", PATH)


def test_nothing_is_fetched_and_damage_is_explained() -> None:
    remote = '{"@context": "https://example.org/context.jsonld", "@id": "x"}'
    with pytest.raises(DataError, match="nothing is fetched"):
        read_skos(remote, "json-ld", None, PATH)
    with pytest.raises(DataError, match="cannot be parsed"):
        read_skos("@prefix skos: <x", "turtle", None, PATH)


@pytest.mark.parametrize("text", ["", "label,title\n", '{"text": "a"}', "<html><body/></html>", "a\tb\n"])
def test_what_is_no_rdf(text: str) -> None:
    assert find_rdf_syntax(text) is None
