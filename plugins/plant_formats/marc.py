"""Records of MARC by pymarc; loaded for such files alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO

from pymarc import Field, parse_xml_to_array

from plant_formats.literature_records import Heading, Reference

_TEXTS = {"245": "abnp", "520": "ab", "505": "a"}  # title, summary, contents: fields and subfields
_NAME, _PARTS = "abcdnpqt", "vxyz"  # of a heading, and what follows a double dash
_HEADINGS = frozenset(["600", "610", "611", "630", "647", "648", "650", "651", "653", "655", "689"])
_THESAURI = {"0": "lcsh", "1": "lcshac", "2": "mesh", "3": "nal", "5": "cash", "6": "rvm"}
_ID_FIRST: Sequence[str] = ("http", "(DE-588)")
"""Which of several ids of a heading is taken; else the first."""


def parse_marc(record: str) -> Reference:
    """Title, summary and contents; subject headings with the ids that they have."""
    [marc] = parse_xml_to_array(BytesIO(record.encode()))  # type: ignore[no-untyped-call]
    texts = [
        re.sub(r"\s*[/:;=]$", "", " ".join(one.get_subfields(*parts)).strip())
        for tag, parts in _TEXTS.items()
        for one in marc.get_fields(tag)
    ]
    headings = [_read_heading(one) for one in marc.get_fields(*sorted(_HEADINGS))]
    number = marc.get("001")
    return Reference(
        texts,
        id=None if number is None else (number.data or "").strip() or None,
        headings=[one for one in headings if one.name],
    )


def _read_heading(one: Field) -> Heading:
    """A heading: its parts, what follows it after double dashes, its id and its vocabulary."""
    named = [" ".join(one.get_subfields(*_NAME)), *one.get_subfields(*_PARTS)]
    name = "--".join(re.sub(r"[\s,;.]+$", "", part) for part in named if part.strip())
    ids = one.get_subfields("0")
    first = next((i for sign in _ID_FIRST for i in ids if i.startswith(sign)), None)
    chosen = first or next(iter(ids), None)
    second = "" if one.indicators is None else one.indicators.second
    thesaurus = _THESAURI.get(second) or next(iter(one.get_subfields("2")), "")
    return Heading(name, chosen and re.sub(r"^\([^()]*\)", "", chosen).strip(), thesaurus.strip())
