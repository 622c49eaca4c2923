"""Records of libraries in XML: MARC, and Dublin Core as OAI-PMH hands it out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast
from xml.etree import ElementTree

from plant_cli.api.functions import Named
from plant_formats.annotation_formats import parse_xml
from plant_formats.line_formats import Fault, PassedOver
from plant_formats.literature_records import Reference

_ROOT = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?!!)[\w:.-]+")
_MARC = re.compile(r"<(?:[\w.-]+:)?(?:leader|datafield)[\s>]")
_PARSE_MARC = Named("plant_formats.marc:parse_marc")
_DUBLIN_CORE = re.compile(r"<(?:[\w.-]+:)?dc[\s>]")


def name_xml(lines: Sequence[str]) -> str | None:
    """What XML of libraries the first lines of a file are; None if they are of another kind."""
    head = "\n".join(lines)
    if not _ROOT.match(head.lstrip("\ufeff")):
        return None
    if _MARC.search(head):
        return "MARC in XML"
    return "Dublin Core (OAI-PMH)" if _DUBLIN_CORE.search(head) else None


def cut_elements(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The records of a file, or of several files behind one another; `Fault` for what is no XML."""
    reader = _ElementReader()
    for number, line in lines:
        if line.lstrip("\ufeff \t").startswith("<?xml") and not reader.open:
            reader = _ElementReader()
        if "<!ENTITY" in line:
            raise Fault("XML that declares entities", line.index("<!ENTITY") + 1, number)
        try:
            yield from reader.feed(line, number)
        except ElementTree.ParseError as error:
            raise Fault(f"not XML: {error.msg}", error.position[1] + 1, number) from error
    if reader.open:
        raise Fault("the file ends within an element", 1, number)


class _ElementReader:
    """Reads one document of XML line by line, and forgets each record that it has handed out."""

    def __init__(self) -> None:
        self.open: list[ElementTree.Element] = []
        self._parser: ElementTree.XMLPullParser[ElementTree.Element] = ElementTree.XMLPullParser(
            events=("start", "end")
        )
        self._place = 0
        self._harvested = False  # inside a record of OAI-PMH, whose header came

    def feed(self, line: str, number: int) -> Iterator[tuple[int, str]]:
        """The records that end on this line, each with the number of its first line."""
        self._parser.feed(f"{line}\n" if self.open else f"{line}\n".lstrip("\ufeff \t"))
        for event, element in cast("Iterator[tuple[str, Any]]", self._parser.read_events()):
            if event == "start":
                self.open.append(element)
                if _local(element) in ("record", "dc") and not self._harvested:
                    self._place = number
                self._harvested = self._harvested or _local(element) == "header"
                continue
            self.open.pop()
            whole = _local(element) == "record" and element.find("{*}header") is not None
            if self._is_record(element, whole=whole):
                yield self._place, ElementTree.tostring(element, encoding="unicode")
                self._forget(element)
            elif whole:
                self._forget(element)
            self._harvested = self._harvested and not whole

    def _is_record(self, element: ElementTree.Element, *, whole: bool) -> bool:
        """Whether an element that ends is a record: of MARC; of OAI-PMH unless its MARC was one; or
        Dublin Core outside of these.
        """
        kind = _local(element)
        if kind == "record" and element.find("{*}datafield") is not None:
            return True
        if whole:
            return is_deleted(element) or element.find(".//{*}dc") is not None
        return kind == "dc" and not self._harvested

    def _forget(self, element: ElementTree.Element) -> None:
        element.clear()
        if self.open:
            self.open[-1].remove(element)


def is_deleted(record: ElementTree.Element) -> bool:
    """Whether a record of OAI-PMH says that it was deleted."""
    header = record.find("{*}header")
    return header is not None and header.get("status") == "deleted"


def _local(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def parse_library_record(record: str) -> Reference:
    """A record of MARC, or of Dublin Core with the header of OAI-PMH or without it."""
    element = parse_xml(record)
    if element.find("{*}datafield") is not None:
        found: Reference = _PARSE_MARC(record)
        return found
    if is_deleted(element):
        raise PassedOver("deleted records")
    parts = {
        name: [text for one in element.iter() if _local(one) == name and (text := _text_of(one))]
        for name in ("title", "description", "subject", "identifier")
    }
    return Reference(
        [*parts["title"], *parts["description"]],
        parts["subject"],
        next(iter(parts["identifier"]), None),  # that of the header comes first
    )


def _text_of(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())
