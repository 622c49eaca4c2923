"""Vocabularies in SKOS: Turtle, RDF/XML, N-Triples and JSON-LD, read by rdflib. Nothing is fetched from a network."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api.errors import ComponentError, DataError, first_line
from plant_cli.corpus.vocabulary_tables import tidy_labels

_TURTLE = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:@prefix|@base|prefix\s|base\s)", re.IGNORECASE)
_TRIPLE = re.compile(r"\s*(?:#[^\n]*\n\s*)*<[^<>\s]+>\s+<[^<>\s]+>\s+[<\"_]")
_XML = re.compile(r"\s*(?:<\?xml(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->|<!DOCTYPE.*?\]>|\s)*<(?:\w+:)?RDF\b", re.DOTALL)


def find_rdf_syntax(text: str) -> str | None:
    """The syntax of an RDF file as rdflib names it; None if it is none."""
    head = text[:100_000]
    if _TURTLE.match(head):
        return "turtle"
    if _XML.match(head):
        return "xml"
    if _TRIPLE.match(head):
        return "nt"
    is_json = head.lstrip()[:1] in ("{", "[")
    return "json-ld" if is_json and any(key in head for key in ('"@context"', '"@graph"', '"@id"')) else None


def read_skos(text: str, syntax: str, language: str | None, path: Path) -> tuple[pl.DataFrame, list[str]]:
    """The concepts of a SKOS vocabulary; a label is the concept's URI.

    Args:
        text: of the file.
        syntax: from `find_rdf_syntax`.
        language: of titles, descriptions and other names (default: English, else the one that most titles are in).
        path: for messages.

    Returns:
        A table in the schema of vocabularies, sorted by URI, and remarks.

    Raises:
        ComponentError: rdflib is not installed.
        DataError: the file cannot be parsed, or asks for something from a network.
    """
    rdflib, graph = _parse(text, syntax, path)
    skos, terms = rdflib.SKOS, rdflib.DCTERMS
    concepts = sorted({str(node) for node in graph.subjects(skos.prefLabel, None) if isinstance(node, rdflib.URIRef)})
    spoken = Counter(title.language or "" for title in _literals(graph.objects(None, skos.prefLabel)))
    chosen = language or ("en" if _is_spoken("en", spoken) else max(spoken, key=lambda code: spoken[code], default=""))
    if language is not None and not _is_spoken(language, spoken):
        raise DataError(
            f"the vocabulary has no titles in '{language}'",
            where=str(path),
            expected=f"one of {', '.join(code or 'no language' for code, _ in spoken.most_common())}",
            todo="name another with --vocabulary-language",
        )
    rows = []
    for uri in concepts:
        node = rdflib.URIRef(uri)
        titles, others = (list(graph.objects(node, kind)) for kind in (skos.prefLabel, skos.altLabel))
        hidden = list(graph.objects(node, skos.hiddenLabel))
        notes = [*graph.objects(node, skos.definition), *graph.objects(node, skos.scopeNote)]
        rows.append(
            {
                "label": uri,
                "title": next(iter(_speaking(titles, chosen)), None),
                "description": " ".join(_speaking(notes, chosen)) or None,
                "alternatives": _speaking([*others, *hidden], chosen),
                "parents": sorted(str(parent) for parent in graph.objects(node, skos.broader)),
                "deprecated": str(graph.value(node, rdflib.OWL.deprecated) or "").lower() in ("true", "1"),
                "replaced_by": sorted(str(successor) for successor in graph.objects(node, terms.isReplacedBy)),
            }
        )
    kinds = {name: pl.List(pl.String) for name in ("alternatives", "parents", "replaced_by")}
    table = tidy_labels(pl.DataFrame(rows, schema={"label": pl.String} if not rows else None, schema_overrides=kinds if rows else None))
    return table, _remarks(rows, chosen)


def _remarks(rows: list[dict[str, Any]], chosen: str) -> list[str]:
    untitled = sum(row["title"] is None for row in rows)
    remarks = [f"SKOS, {len(rows):,} concepts; titles in {chosen or 'no named language'}"]
    if untitled:
        remarks.append(f"{untitled:,} concepts have no title in '{chosen}' (--vocabulary-language names another language)")
    return remarks


def _speaking(values: Iterable[Any], language: str) -> list[str]:
    """Texts in a language, sorted; of those without any, if there are none in it."""
    given = _literals(values)
    texts = sorted({str(value) for value in given if _is_spoken(language, [value.language or ""])})
    return texts or sorted({str(value) for value in given if not value.language})


def _literals(values: Iterable[Any]) -> list[Any]:
    """Those that are texts: a note may also be a node of its own, with parts."""
    return [value for value in values if hasattr(value, "language")]


def _is_spoken(language: str, tags: Iterable[str]) -> bool:
    """Whether a tag is of a language: `en` and `en-GB` are of `en`, and `en-GB` alone is of `en-GB`."""
    return any(language.lower() in (tag.lower(), tag.lower().split("-")[0]) for tag in tags)


def _parse(text: str, syntax: str, path: Path) -> tuple[Any, Any]:
    try:
        import rdflib
    except ImportError as error:
        raise ComponentError(
            "the package rdflib, which reads SKOS, is not installed",
            where=str(path),
            expected="the extra `skos`",
            todo="pip install 'plant-cli[skos]'",
        ) from error
    logging.getLogger("rdflib").addHandler(logging.NullHandler())  # its warnings quote the file, unseen by what guards the terminal
    try:
        if syntax == "json-ld":
            _refuse_fetching(text, path)
        return rdflib, rdflib.Graph().parse(data=text, format=syntax)
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"the vocabulary cannot be parsed: {first_line(error)}",
            where=f"{path}, as {syntax}",
            expected="SKOS in Turtle, RDF/XML, N-Triples or JSON-LD",
            todo="mend the file",
        ) from error


def _refuse_fetching(text: str, path: Path) -> None:
    """Refuse JSON-LD that takes a context from an address, at any depth: a text under `@context`, or an `@import`."""

    def look(pairs: list[tuple[str, Any]]) -> None:
        if any(key == "@import" or (key == "@context" and _holds_text(value)) for key, value in pairs):
            raise DataError(
                "the JSON-LD takes its @context from an address, and nothing is fetched from a network",
                where=str(path),
                expected="the context within the file",
                todo="write the context into the file, or convert it to Turtle",
            )

    json.loads(text, object_pairs_hook=look)  # called for every object, with all its keys


def _holds_text(context: object) -> bool:
    return isinstance(context, str) or (isinstance(context, list) and any(map(_holds_text, context)))
