"""Records of literature: what PubMed, RIS and EndNote write of an article, and its keywords."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from plant_formats.annotation_formats import parse_xml

_TAG = re.compile(r"(?:([A-Z][A-Z0-9]{1,3}) *- ?|(%[A-Z0-9@~]) )(.*)")
_TAGS = (("TI", "T1", "%T"), ("AB", "N2", "%X"), ("MH", "KW", "%K", "OT"))


@dataclass(frozen=True)
class Heading:
    """A subject heading: one label, whatever signs its name holds."""

    name: str
    id: str | None = None
    thesaurus: str = ""  # the vocabulary that it is from; empty: not said


@dataclass(frozen=True)
class Reference:
    """What a record says of its document; it has keywords, or headings."""

    texts: Sequence[str]
    keywords: Sequence[str] = ()  # as they stand: one of them may hold several labels
    id: str | None = None
    headings: Sequence[Heading] = ()


def make_reference(
    fields: dict[str, list[str]], names: Sequence[Sequence[str]], key: str
) -> Reference:
    """A record from its fields: title, abstract, keywords; the first of several `names` counts."""
    title, text, words = (
        next((found for name in some if (found := fields.get(name))), []) for some in names
    )
    if words and words is fields.get("MH"):  # *Humans/genetics: a main heading with a qualifier
        words = [word.lstrip("*").partition("/")[0] for word in words]
    return Reference([*title[:1], *text], words, next(iter(fields.get(key, [])), None))


def parse_tags(record: str) -> Reference:
    """RIS, EndNote, and PubMed's text format: lines with a tag."""
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
    return make_reference(fields, _TAGS, "PMID")


def parse_pubmed(record: str) -> Reference:
    """An article of PubMed with its headings: ids of MeSH, and their names."""
    article = parse_xml(record)
    texts = [
        "".join(part.itertext()).strip()
        for tag in ("ArticleTitle", "AbstractText")
        for part in article.iter(tag)
    ]
    headings = [
        Heading(one.text or "", one.get("UI"), "mesh") for one in article.iter("DescriptorName")
    ]
    doc_id = article.find(".//PMID")
    return Reference(texts, id=None if doc_id is None else doc_id.text, headings=headings)
