"""Reuters-21578: 22 SGML files; the splits ModApte and ModLewis follow from the attributes of each story."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from plant_cli.api import DataError, DataSection, Dataset
from plant_cli.kit import read_bytes
from plant_datasets.corpora.registration import ReutersOptions
from plant_datasets.formats.documents import Document, Part, Reading

_STORY = re.compile(r"<REUTERS\s(.*?)>(.*?)</REUTERS>", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_ITEM = re.compile(r"<D>(.*?)</D>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_KINDS = {"topic": "TOPICS", "place": "PLACES", "person": "PEOPLE", "org": "ORGS", "exchange": "EXCHANGES"}


def load(data: DataSection, options: ReutersOptions) -> Dataset:
    """Read all stories of a split; title, an empty line, and the body."""
    reading = Reading.of(data)
    files = sorted(reading.path.glob("*.sgm*")) if reading.path.is_dir() else []
    if not files:
        raise DataError(
            "the folder holds no SGML files",
            where=str(reading.path),
            expected="reut2-000.sgm to reut2-021.sgm",
            todo="name the unpacked folder; `plant data info reuters-21578` says where to get it",
        )
    parts: dict[Part, list[Document]] = {"train": [], "test": []}
    empty = 0
    for path in files:
        reading.files.append(path)
        text = read_bytes(path).decode(data.encoding or "latin-1")
        if text.count("<REUTERS ") != len(_STORY.findall(text)):
            reading.bad.add(path, text.count("\n"), "a story is not closed", text[-200:])
        for split, document in _read(text, options):
            empty += not document.text.strip()
            if document.text.strip():
                parts[split].append(document)
    if empty:
        reading.remarks.append(f"{empty:,} stories have neither title nor body and are left out")
    return reading.dataset({split: documents for split, documents in parts.items() if documents})


def _read(text: str, options: ReutersOptions) -> Iterator[tuple[Part, Document]]:
    for found in _STORY.finditer(text):
        attributes = dict(_ATTRIBUTE.findall(found[1]))
        split = {"TRAIN": "train", "TEST": "test"}.get(attributes.get("LEWISSPLIT", ""))
        topics = attributes.get("TOPICS")
        if split is None or not (topics == "YES" if options.split == "modapte" else topics != "BYPASS"):
            continue
        labels = _labels(found[2], options)
        body = f"{_field(found[2], 'TITLE')}\n\n{_field(found[2], 'BODY') or _unmarked(found[2])}".strip()
        yield ("train" if split == "train" else "test"), Document(int(attributes["NEWID"]), body, labels, attributes["NEWID"])


def _labels(story: str, options: ReutersOptions) -> list[str]:
    if options.categories == "topics":
        return _ITEM.findall(_raw(story, "TOPICS"))
    return [f"{kind}:{name}" for kind, tag in _KINDS.items() for name in _ITEM.findall(_raw(story, tag))]


def _raw(story: str, tag: str) -> str:
    found = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", story, re.DOTALL)
    return found[1] if found else ""


def _field(story: str, tag: str) -> str:
    return _CONTROL.sub("", html.unescape(_raw(story, tag))).strip()


def _unmarked(story: str) -> str:
    """The text of a story without a body (TYPE="UNPROC", "BRIEF"): what stands between no tags."""
    inside = re.sub(r"<(TITLE|DATELINE|AUTHOR)>.*?</\1>", "", _raw(story, "TEXT"), flags=re.DOTALL)
    return _CONTROL.sub("", html.unescape(re.sub(r"</?\w[^<>]*>", "", inside))).strip()
