"""What fastText, catalogues of literature and Stack Exchange write."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from xml.etree import ElementTree

from plant_cli.kit import bare_name
from plant_datasets.corpus_reader import LINES_SAMPLED, mostly
from plant_datasets.line_formats import Fault, Line, PassedOver
from plant_datasets.record_formats import NEAR_LINES, Numbered, RecordFormat, known_by

# fastText

_FASTTEXT = re.compile(r"(?:^|(?<=[ \t]))__label__(\S+)[ \t]?")
_GLUED = re.compile(
    r"((?:__label__[^\s,]+,)*__label__[^\s,]+),(?=[^\s_])"
)  # as in CSV, where a comma parts label and text


def _unglue(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    rows = iter(lines)
    head = list(islice(rows, LINES_SAMPLED))
    glued = mostly([line for _, line in head], _GLUED.match)
    yield from (
        (number, _GLUED.sub(r"\1 ", line, count=1) if glued else line)
        for number, line in chain(head, rows)
    )


def _parse_fasttext(line: str, first: str) -> Line | None:
    line = line.replace(",__label__", " __label__")
    labels = [label.rstrip(",") for label in _FASTTEXT.findall(line)]
    return Line(labels, _FASTTEXT.sub("", line)) if line.strip() else None


FASTTEXT_LINES = RecordFormat(
    "fastText's lines",
    _parse_fasttext,
    "__label__a __label__b text",
    lambda path, lines: (
        mostly(lines[:1], _FASTTEXT.search) and mostly(lines[:LINES_SAMPLED], _FASTTEXT.search)
    ),
    lambda path: (
        Path(bare_name(path)).suffix
        in ("", ".txt", ".tsv", ".ft", ".train", ".valid", ".val", ".dev", ".test", ".csv")
    ),
    cut=_unglue,
)


# records of literature, and posts


def _cut_at(start: str, end: str) -> Callable[[Iterable[Numbered]], Iterator[Numbered]]:
    """Cut lines into records: from what begins one to the next; what stands after the `end` of
    a record belongs to none.
    """
    begins = re.compile(rf"(?=(?:{start}))")

    def cut(lines: Iterable[Numbered]) -> Iterator[Numbered]:
        place, held = 0, ""
        for number, line in lines:
            before, *parts = begins.split(line)
            held += f"{before}\n" if place else ""
            for part in parts:
                if place:
                    yield place, held
                place, held = number, f"{part}\n"
            if place and end in held:
                yield place, held[: held.index(end) + len(end)]
                place, held = 0, ""
        if place:
            yield place, held

    return cut


def _parse_xml(record: str) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(record)
    except ElementTree.ParseError as error:
        raise Fault("not XML", None, error.position[0]) from error


def _parse_post(record: str, first: str) -> Line:
    """A question of Stack Exchange; its HTML is taken off."""
    post = _parse_xml(record).attrib
    if "Tags" not in post:
        raise PassedOver("posts without tags, such as answers,")
    body = html.unescape(re.sub(r"<[^<>]*>", " ", post.get("Body", "")))
    return Line(
        re.findall(r"[^<>|]+", post["Tags"]),
        "\n".join(filter(None, (post.get("Title"), body.strip()))),
        post.get("Id"),
    )


POSTS = RecordFormat(
    "Stack Exchange's Posts.xml",
    _parse_post,
    '<row Id="1" Title="…" Body="…" Tags="<a><b>" />',
    **known_by(
        lambda lines: any(re.match(r"\s*<row .*\bPostTypeId=", line) for line in lines[:NEAR_LINES])
    ),
    cut=_cut_at(r"<row ", "/>"),
)


def _parse_reference(record: str, first: str) -> Line:
    """PubMed's XML, BibTeX, and records of lines with a tag (RIS, EndNote, and PubMed's text
    format).
    """
    if record.startswith("<"):
        return _parse_pubmed(record)
    fields = _parse_bibtex(record) if record.startswith("@") else _parse_tags(record)
    title, text, words = (
        next((found for tag in tags if (found := fields.get(tag))), []) for tags in _REFERENCE_TAGS
    )
    if words is fields.get("MH"):  # *Humans/genetics: main heading of an article, with a qualifier
        words = [word.lstrip("*").partition("/")[0] for word in words]
    labels = [
        label.strip()
        for word in words
        for label in (re.split(r"[;,]" if record.startswith("@") else ";", word))
    ]
    return Line(
        list(dict.fromkeys(filter(None, labels))),
        "\n".join([*title[:1], *text]),
        next(iter(fields.get("PMID", [])), None),
    )


_REFERENCE_TAGS = (
    ("TI", "T1", "%T", "title"),
    ("AB", "N2", "%X", "abstract"),
    ("MH", "KW", "%K", "OT", "keywords"),
)
_TAG = re.compile(r"(?:([A-Z][A-Z0-9]{1,3}) *- ?|(%[A-Z0-9@~]) )(.*)")
_FIELD = re.compile(r'(\w+)\s*=\s*(?:\{((?:[^{}]|\{[^{}]*\})*)\}|"([^"]*)")')


def _parse_tags(record: str) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    values: list[str] = []
    for line in record.splitlines():
        tag = _TAG.fullmatch(line)
        if tag is not None:
            values = fields.setdefault(tag[1] or tag[2], [])
            values.append(tag[3].strip())
        elif (
            line.strip()
            and not line[0].isspace()
            and any(values is fields.get(tag) for tag in ("KW", "%K"))
        ):  # EndNote: a keyword on each line
            values.append(line.strip())
        elif line.strip() and values:
            values[-1] += f" {line.strip()}"
    return fields


def _parse_bibtex(record: str) -> dict[str, list[str]]:
    found = {
        name.lower(): re.sub(r"\s+", " ", re.sub(r"[{}]", "", braced or quoted))
        for name, braced, quoted in _FIELD.findall(record)
    }
    return {name: [value] for name, value in found.items()} | {
        "PMID": re.findall(r"^@\w+\s*\{\s*([^,\s]+)", record)
    }


def _parse_pubmed(record: str) -> Line:
    """The headings of an article of PubMed: ids of MeSH, with their names as titles."""
    article = _parse_xml(record)
    text = [
        "".join(part.itertext()).strip()
        for tag in ("ArticleTitle", "AbstractText")
        for part in article.iter(tag)
    ]
    headings = {
        (name.get("UI") or name.text or ""): name.text for name in article.iter("DescriptorName")
    }
    doc_id = article.find(".//PMID")
    return Line(
        list(headings), "\n".join(text), None if doc_id is None else doc_id.text, titles=headings
    )


_CATALOGUES = {  # by what a line begins with
    r".*<PubmedArticle[ >]": "PubMed's XML",
    r"TY  - ": "RIS",
    r"PMID- ": "PubMed's text format",
    r"%0 \w": "EndNote",
    r"@(?i:article|book|inproceedings|incollection|misc|phdthesis|techreport|proceedings|online)\s*\{": "BibTeX",
}
_STARTS = r"<PubmedArticle[ >]|(?<!.)(?:TY  - |PMID- |%0 |@\w+\s*\{)"
REFERENCES = RecordFormat(
    "records of literature",
    _parse_reference,
    "PubMed (XML or text), RIS, EndNote or BibTeX",
    **known_by(
        lambda lines: next(
            (
                name
                for line in lines[:NEAR_LINES]
                for sign, name in _CATALOGUES.items()
                if re.match(sign, line)
            ),
            None,
        )
    ),
    cut=_cut_at(_STARTS, "</PubmedArticle>"),
)
