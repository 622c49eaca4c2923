"""Concepts with names in several languages: SKOS, SKOS-XL and other RDF, JSKOS; and in which
language they are named.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import (
    DataError,
    ForeignVocabulary,
    Purpose,
    VocabularyFile,
    first_line,
    missing_package,
)
from plant_cli.kit import name_language

_FEW = 2  # mentions that may come by chance
NESTED_COLUMNS = ("alternatives", "parents", "replaced_by")  # columns that hold lists
VOCABULARY_FIELDS = (
    "label",
    "title",
    "description",
    "alternatives",
    "parents",
    "deprecated",
    "replaced_by",
    "notation",
)
Tagged = list[tuple[str, str]]  # tags of languages ("" for none), and texts in them


@dataclass(frozen=True)
class VocabularyFormat:
    """A format: what it is called, whether a file has it, and its table of labels with remarks."""

    title: str
    fits: Callable[[VocabularyFile], bool]
    table: Callable[[VocabularyFile], tuple[pl.DataFrame, Sequence[str]]]

    def recognise(self, file: VocabularyFile) -> str | None:
        """Its title, if a file has the format."""
        return self.title if self.fits(file) else None

    def read(self, file: VocabularyFile) -> ForeignVocabulary:
        """The labels of a file."""
        frame, remarks = self.table(file)
        return ForeignVocabulary(frame=frame, remarks=remarks)


@dataclass(slots=True)
class Concept:
    """An entry of a vocabulary."""

    label: str
    titles: Tagged
    names: Tagged = field(default_factory=list)
    notes: Tagged = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    deprecated: bool = False
    replaced_by: list[str] = field(default_factory=list)
    notation: str | None = None


def tabulate_concepts(
    concepts: Sequence[Concept], what: str, purpose: Purpose, where: str
) -> tuple[pl.DataFrame, list[str]]:
    """Concepts as a table of `VOCABULARY_FIELDS`, in the language of the documents where they have
    names in it; and remarks.

    A title of another language stands in where there is none in this one. Names in further
    languages of the documents are other names.
    """
    found = Counter(code for concept in concepts for code in {code for code, _ in concept.titles})
    languages, why = _order_languages(
        found, purpose, where, lambda: _count_mentions(concepts, purpose.sample())
    )
    first, *further = languages
    rows, foreign = [], 0
    for concept in concepts:
        titles = _speaking(concept.titles, first, or_untagged=True)
        if not titles and concept.titles:
            stand_ins = (_speaking(concept.titles, code)[:1] for code in (*further, "en"))
            titles = next(filter(None, stand_ins), [min(concept.titles)[1]])
            foreign += 1
        names = [*titles[1:], *_speaking(concept.names, first, or_untagged=True)]
        names += (
            name
            for code in further
            for name in _speaking(concept.titles, code) + _speaking(concept.names, code)
        )
        row = (
            concept.label,
            next(iter(titles), None),
            " ".join(_speaking(concept.notes, first, or_untagged=True)) or None,
            [name for name in dict.fromkeys(names) if name not in titles[:1]],
            sorted(concept.parents),
            concept.deprecated,
            sorted(concept.replaced_by),
            concept.notation,
        )
        rows.append(row)
    remarks = [f"{what}, {len(rows):,} concepts; titles in {first or 'no named language'}{why}"]
    if foreign:
        remarks.append(
            f"{foreign:,} concepts have no title in '{first}' and take one in another language "
            "(--vocabulary-language names another)"
        )
    table = pl.DataFrame(rows, schema=VOCABULARY_FIELDS, orient="row", infer_schema_length=None)
    return table, remarks


def _count_mentions(
    concepts: Iterable[Concept], sample: Iterable[tuple[str, Sequence[str]]]
) -> Counter[str]:
    """How often documents name their labels in each language, perhaps with another ending."""
    stems: dict[str, list[tuple[str, str]]] = {}  # of a short title, all of it
    for concept in concepts:
        pairs = ((code, title.casefold()) for code, title in concept.titles if code)
        stems[concept.label] = [
            (code, f" {title[: len(title) * 2 // 3]}" if len(title) > 4 else f" {title} ")
            for code, title in pairs
        ]
    texts = ((re.sub(r"[\W_]+", " ", f" {text.casefold()} "), labels) for text, labels in sample)
    return Counter(
        code
        for text, labels in texts
        for label in labels
        for code, stem in stems.get(label, ())
        if stem in text
    )


def _order_languages(
    found: Mapping[str, int], purpose: Purpose, where: str, mentions: Callable[[], Counter[str]]
) -> tuple[list[str], str]:
    """The languages of titles to read, the first one for titles: the user's, the documents',
    English, the most frequent; and why.
    """
    known = sorted(found, key=lambda code: (-found[code], code))
    if purpose.language is not None:
        _require_titles(purpose.language, known, where)
        return [purpose.language], ""
    usual = "en" if is_spoken("en", known) else next(iter(known), "")
    if not any(known):
        return [usual], ""
    shares = purpose.spoken()
    several = len({code.split("-")[0] for code in known}) > 1
    documents = " and ".join(map(name_language, shares))
    if languages := [code for code in shares if is_spoken(code, known)]:
        rest = f", further names in {', '.join(languages[1:])}" if languages[1:] else ""
        return languages, f"{rest}: the documents are in {documents}" if several else ""
    best = _find_mentioned(mentions()) if several else None
    if best is not None:
        return [best], ": documents name their labels in it"
    if shares:
        return [usual], f", though the documents are in {documents}"
    return [usual], _describe_others(known, usual) if several else ""


def _describe_others(known: Sequence[str], usual: str) -> str:
    named = ", ".join(code for code in known if code and code != usual)
    unknown = "the language of the documents is not recognised"
    return f" ({unknown}; --vocabulary-language names another: {named})"


def _require_titles(language: str, known: Sequence[str], where: str) -> None:
    if not is_spoken(language, known):
        raise DataError(
            f"the vocabulary has no titles in '{language}'",
            where=where,
            expected=f"one of {', '.join(code or 'no language' for code in known)}",
            todo="name another with --vocabulary-language",
        )


def _find_mentioned(mentions: Counter[str]) -> str | None:
    """The language in which documents name labels more often than by chance; None if none."""
    (best, most), (_, second) = [*mentions.most_common(2), ("", 0), ("", 0)][:2]
    return best if most > second + _FEW else None


def _speaking(values: Tagged, language: str, *, or_untagged: bool = False) -> list[str]:
    """Texts in a language, sorted; perhaps of those without any, if there are none in it."""
    texts = sorted({text for code, text in values if is_spoken(language, [code])})
    return texts or sorted({text for code, text in values if or_untagged and not code})


_OTHER_TAGS = {  # of three letters, and of parts or earlier names of a language
    "ar": "ara",
    "bg": "bul",
    "ca": "cat",
    "cs": "ces cze",
    "da": "dan",
    "de": "deu ger",
    "el": "ell gre",
    "en": "eng",
    "es": "spa",
    "et": "est",
    "fi": "fin",
    "fr": "fra fre",
    "he": "heb iw",
    "hr": "hrv",
    "hu": "hun",
    "it": "ita",
    "ja": "jpn",
    "ko": "kor",
    "lt": "lit",
    "lv": "lav",
    "nl": "nld dut",
    "no": "nb nn nor nob nno",
    "pl": "pol",
    "pt": "por",
    "ro": "ron rum",
    "ru": "rus",
    "sk": "slk slo",
    "sl": "slv",
    "sr": "srp",
    "sv": "swe",
    "tr": "tur",
    "uk": "ukr",
    "zh": "zho chi",
}
_SAME = {tag: code for code, tags in _OTHER_TAGS.items() for tag in tags.split()}


def is_spoken(language: str, tags: Iterable[str]) -> bool:
    """Whether a tag is of a language: `en`, `eng` and `en-GB` are of `en`, and `en-GB` alone is
    of `en-GB`.
    """
    wanted = _SAME.get(language.lower(), language.lower())
    bases = ((tag.lower(), tag.lower().replace("_", "-").split("-")[0]) for tag in tags)
    return any(wanted in (tag, base, _SAME.get(base)) for tag, base in bases)


_TURTLE = re.compile(r"\s*(?:#[^\n]*\n\s*)*(?:@prefix|@base|prefix\s|base\s)", re.IGNORECASE)
_TRIPLE = re.compile(r"\s*(?:#[^\n]*\n\s*)*<[^<>\s]+>\s+<[^<>\s]+>\s+[<\"_]")
_XML = re.compile(
    r"\s*(?:<\?(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->|<!DOCTYPE[^\[>]*+(?:\[.*?\]\s*)?>|\s)*+<(?:[\w.-]+:)?([A-Za-z_][\w.-]*)(?=[\s/>])",
    re.DOTALL,
)
_ENTITY = re.compile(
    r"<!ENTITY\s+(?![\w.-]+\s+(?:\"[^\"&%]{0,1000}\"|'[^'&%]{0,1000}')\s*>)"
)  # none that stands for a short text alone
_JSKOS = re.compile(r'"prefLabel"\s*:\s*\{')
_HEAD = 100_000  # characters in which a format shows


def find_xml_root(text: str) -> str | None:
    """The name of an XML file's root, without its prefix; None if it is no XML."""
    root = _XML.match(text[:_HEAD])
    return None if root is None else root[1]


def refuse_entities(text: str, where: str) -> None:
    """`DataError` if XML declares entities that hold others, long ones or other files: such a
    file can grow without limit.
    """
    if _ENTITY.search(text):
        raise DataError(
            "the XML declares entities that hold others, long ones, or other files",
            where=where,
            expected="entities that stand for a short text",
            todo="write their texts where they are used",
        )


def find_rdf_syntax(text: str) -> str | None:
    """The syntax of an RDF file as rdflib names it, or `jskos`; None if it is none."""
    head = text[:_HEAD]
    if _TURTLE.match(head):
        return "turtle"
    if head.lstrip()[:1] == "<":
        return "nt" if _TRIPLE.match(head) else "xml" if find_xml_root(text) == "RDF" else None
    if head.lstrip()[:1] not in ("{", "["):
        return None
    if _JSKOS.search(head) and not re.search(r'"@graph"|"@id"|"@context"\s*:\s*[\[{]', head):
        return "jskos"
    return "json-ld" if any(key in head for key in ('"@context"', '"@graph"', '"@id"')) else None


_SKOS, _XL = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2008/05/skos-xl#"
_RDF, _RDFS, _OWL = (
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2002/07/owl#",
)
_OBO, _IAO = "http://www.geneontology.org/formats/oboInOwl#", "http://purl.obolibrary.org/obo/IAO_"
_MADS, _MESH = "http://www.loc.gov/mads/rdf/v1#", "http://id.nlm.nih.gov/mesh/vocab#"
_GND, _DCT = "https://d-nb.info/standards/elementset/gnd#", "http://purl.org/dc/terms/"
_SUBJECT = "ForTheSubjectHeading"
_PREFERRED = (_SKOS + "prefLabel", _XL + "prefLabel")
_STAND_INS = (  # in the place of a preferred label, where a concept has none
    _MADS + "authoritativeLabel",
    f"{_GND}preferredName{_SUBJECT}",
    _GND + "preferredName",
    _RDFS + "label",
    "http://schema.org/name",
    "https://schema.org/name",
    _DCT + "title",
)
_PREDICATES = {  # by what they say of a concept
    "names": (
        *(prefix + name for prefix in (_SKOS, _XL) for name in ("altLabel", "hiddenLabel")),
        _MADS + "hasVariant",
        f"{_GND}variantName{_SUBJECT}",
        _GND + "variantName",
        _OBO + "hasExactSynonym",
        _OBO + "hasRelatedSynonym",
        _MESH + "altLabel",
    ),
    "notes": (
        _SKOS + "definition",
        _SKOS + "scopeNote",
        _IAO + "0000115",
        _MESH + "scopeNote",
        _GND + "definition",
    ),
    "parents": (
        _SKOS + "broader",
        _RDFS + "subClassOf",
        _MADS + "hasBroaderAuthority",
        _MESH + "broaderDescriptor",
        _GND + "broaderTermGeneral",
    ),
    "replaces": (_DCT + "replaces", _SKOS + "exactMatch"),
    "replaced_by": (_DCT + "isReplacedBy", _IAO + "0100001", _MADS + "useInstead"),
    "notation": (
        _SKOS + "notation",
        _OBO + "id",
        _GND + "gndIdentifier",
        _MESH + "identifier",
        _DCT + "identifier",
    ),
}
_LITERALS = (
    _XL + "literalForm",
    _MADS + "variantLabel",
    _RDF + "value",
)  # of a name that is a node of its own
_CONCEPTS = (
    _SKOS + "Concept",
    _OWL + "Class",
    _RDFS + "Class",
    *(
        _MESH + name
        for name in ("TopicalDescriptor", "GeographicalDescriptor", "PublicationType", "CheckTag")
    ),
)
_NO_CONCEPTS = (
    *(
        _OWL + name
        for name in (
            "Ontology",
            "ObjectProperty",
            "DatatypeProperty",
            "AnnotationProperty",
            "NamedIndividual",
        )
    ),
    _RDF + "Property",
    _SKOS + "ConceptScheme",
    _SKOS + "Collection",
    _MADS + "MADSScheme",
    _XL + "Label",
)


def read_skos(
    text: str, syntax: str, purpose: Purpose, path: Path
) -> tuple[pl.DataFrame, list[str]]:
    """The concepts of an RDF vocabulary as a table of `VOCABULARY_FIELDS`, sorted by label, which
    is the URI; and remarks.
    """
    if syntax == "jskos":
        return tabulate_concepts(list(_read_jskos(text, path)), "JSKOS", purpose, str(path))
    graph = _Graph(*_parse(text, syntax, path))
    found = graph.nodes(_PREFERRED, _CONCEPTS)
    found = found or graph.nodes(_STAND_INS, ()) - graph.nodes((), _NO_CONCEPTS)
    concepts, by = [], Counter[str]()
    for node in sorted(node for node in found if isinstance(node, graph.rdflib.URIRef)):
        kind, titles = graph.title(node)
        if not titles and not graph.follow(node, _PREFERRED[:1]):
            continue
        by[kind] += kind not in ("", _PREFERRED[0])
        concepts.append(graph.concept(node, titles))
    replaces = {str(node): graph.named(node, "replaces") for node in found}
    concepts += _find_replaced(concepts, replaces, set(purpose.used))
    table, remarks = tabulate_concepts(concepts, "SKOS", purpose, str(path))
    stand_ins = [
        f"{count:,} concepts are named by <{kind}>, not by skos:prefLabel"
        for kind, count in by.items()
        if count
    ]
    return table, [*remarks, *stand_ins]


@dataclass(frozen=True)
class _Graph:
    """What an RDF vocabulary says of its nodes."""

    rdflib: Any
    graph: Any

    def follow(self, node: Any, predicates: Iterable[str]) -> list[Any]:
        """What predicates lead to."""
        uri = self.rdflib.URIRef
        return [value for one in predicates for value in self.graph.objects(node, uri(one))]

    def nodes(self, predicates: Iterable[str], kinds: Iterable[str]) -> set[Any]:
        """What has one of the predicates, or is of one of the kinds."""
        uri, kind_of = self.rdflib.URIRef, self.rdflib.RDF.type
        labelled = {node for one in predicates for node in self.graph.subjects(uri(one), None)}
        return labelled.union(
            node for kind in kinds for node in self.graph.subjects(kind_of, uri(kind))
        )

    def literals(self, node: Any, predicates: Iterable[str]) -> Tagged:
        """Texts with their languages, also those that SKOS-XL sets apart."""
        literal = self.rdflib.Literal
        values = self.follow(node, predicates)
        apart = [value for value in values if not isinstance(value, literal)]
        values += [part for value in apart for part in self.follow(value, _LITERALS)]
        return [
            (value.language or "", str(value)) for value in values if isinstance(value, literal)
        ]

    def named(self, node: Any, kind: str) -> list[str]:
        """What the predicates of a kind lead to, each once; nothing without a name."""
        values = self.follow(node, _PREDICATES[kind])
        names = (str(value) for value in values if not isinstance(value, self.rdflib.BNode))
        return list(dict.fromkeys(names))

    def title(self, node: Any) -> tuple[str, Tagged]:
        """The predicate that names a node, and its names; ("", []) where none does."""
        kinds = (*_PREFERRED, *_STAND_INS)
        named = ((kind, texts) for kind in kinds if (texts := self.literals(node, [kind])))
        return next(named, ("", []))

    def concept(self, node: Any, titles: Tagged) -> Concept:
        """A node as a concept."""
        deprecated = str(self.graph.value(node, self.rdflib.OWL.deprecated) or "")
        return Concept(
            label=str(node),
            titles=titles,
            names=self.literals(node, _PREDICATES["names"]),
            notes=self.literals(node, _PREDICATES["notes"]),
            parents=self.named(node, "parents"),
            deprecated=deprecated.lower() in ("true", "1"),
            replaced_by=self.named(node, "replaced_by"),
            notation=next(iter(self.named(node, "notation")), None),
        )


def _find_replaced(
    concepts: Sequence[Concept], replaces: Mapping[str, Sequence[str]], used: set[str]
) -> list[Concept]:
    """Labels of the documents that are no concepts any more, but are said to be replaced by
    some.
    """
    known, successors = {concept.label for concept in concepts}, dict[str, list[str]]()
    for concept in concepts:
        for old in used.intersection(replaces.get(concept.label, ())) - known:
            successors.setdefault(old, []).append(concept.label)
    return [
        Concept(label=old, titles=[], deprecated=True, replaced_by=now)
        for old, now in sorted(successors.items())
    ]


def _parse(text: str, syntax: str, path: Path) -> tuple[Any, Any]:
    try:
        import rdflib
    except ImportError as error:
        raise missing_package("rdflib", "which reads SKOS", "skos", where=str(path)) from error
    logging.getLogger("rdflib").addHandler(
        logging.NullHandler()
    )  # its warnings quote the file, unseen by what guards the terminal
    fetched: list[bool] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        """Note that an object takes a context from an address, at any depth: a text under
        `@context`, or an `@import`.
        """
        fetched.extend(
            True
            for key, value in pairs
            if key == "@import" or (key == "@context" and _holds_text(value))
        )

    try:
        if syntax == "json-ld":
            json.loads(text, object_pairs_hook=look)  # called for every object, with all its keys
        if not fetched:
            return rdflib, rdflib.Graph().parse(data=text, format=syntax)
        what, cause = (
            "the JSON-LD takes its @context from an address, and nothing is fetched from a network",
            None,
        )
    except Exception as error:
        what, cause = f"the vocabulary cannot be parsed: {first_line(error)}", error
    where, expected = (
        f"{path}, as {syntax}",
        "SKOS in Turtle, RDF/XML, N-Triples or JSON-LD, with its context in the file",
    )
    raise DataError(
        what, where=where, expected=expected, todo="mend the file, or convert it to Turtle"
    ) from cause


def _holds_text(context: object) -> bool:
    return isinstance(context, str) or (
        isinstance(context, list) and any(map(_holds_text, context))
    )


def _read_jskos(text: str, path: Path) -> Iterator[Concept]:
    """The concepts of a JSON document, or of JSON lines, wherever they are in it."""
    waiting = _parse_json(text, path)
    while waiting:
        item = waiting.pop()
        waiting += item if isinstance(item, list) else []
        if not isinstance(item, dict):
            continue
        waiting += (item[key] for key in ("concepts", "topConcepts", "narrower") if key in item)
        if _is_concept(item):
            yield Concept(
                label=item["uri"],
                titles=_by_language(item["prefLabel"]),
                names=_by_language(item.get("altLabel")) + _by_language(item.get("hiddenLabel")),
                notes=_by_language(item.get("definition")) + _by_language(item.get("scopeNote")),
                parents=_uris(item.get("broader")),
                deprecated=item.get("deprecated") is True,
                replaced_by=_uris(item.get("replacedBy")),
                notation=next((str(one) for one in item.get("notation") or [] if one), None),
            )


def _parse_json(text: str, path: Path) -> list[Any]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError) as whole:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise DataError(
                f"the vocabulary cannot be parsed: {first_line(whole)}",
                where=f"{path}, as JSKOS",
                expected="a JSON document, or one on each line",
                todo="mend the file, or convert it to Turtle",
            ) from whole


def _is_concept(item: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a concept, not a scheme of some."""
    named = isinstance(item.get("prefLabel"), dict) and isinstance(item.get("uri"), str)
    return named and not {"concepts", "topConcepts"} & item.keys()


def _by_language(value: object) -> Tagged:
    """A map of languages to texts, or to lists of them; `-` stands for languages that are not
    listed.
    """
    pairs = value.items() if isinstance(value, dict) else ()
    return [
        ("" if code == "und" else code, text)
        for code, texts in pairs
        if code != "-"
        for text in (texts if isinstance(texts, list) else [texts])
        if isinstance(text, str)
    ]


def _uris(value: object) -> list[str]:
    items = value if isinstance(value, list) else []
    return [str(item["uri"]) for item in items if isinstance(item, dict) and item.get("uri")]


def _read_rdf(file: VocabularyFile) -> tuple[pl.DataFrame, list[str]]:
    syntax = find_rdf_syntax(file.text) or ""
    if syntax == "xml":
        refuse_entities(file.text, str(file.path))
    return read_skos(file.text, syntax, file.purpose, file.path)


RDF = VocabularyFormat(
    "SKOS or other RDF", lambda file: find_rdf_syntax(file.text) is not None, _read_rdf
)
