"""What fastText and Stack Exchange write."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from xml.etree import ElementTree

from plant_cli.kit import bare_name
from plant_formats.corpus_reader import LINES_SAMPLED, mostly
from plant_formats.line_formats import Fault, Line, PassedOver
from plant_formats.record_formats import NEAR_LINES, Numbered, RecordFormat, known_by

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


# records in XML and with tags, and posts


def cut_at(start: str, end: str) -> Callable[[Iterable[Numbered]], Iterator[Numbered]]:
    """Cuts lines into records: from what begins one to the next; what stands after the `end` of
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


def parse_xml(record: str) -> ElementTree.Element:
    """A record of XML; `Fault` if it is none."""
    try:
        return ElementTree.fromstring(record)
    except ElementTree.ParseError as error:
        raise Fault("not XML", None, error.position[0]) from error


def _parse_post(record: str, first: str) -> Line:
    """A question of Stack Exchange; its HTML is taken off."""
    post = parse_xml(record).attrib
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
    cut=cut_at(r"<row ", "/>"),
)
