"""TIBKAT as LLMs4Subjects hands it out: a JSON-LD file for each record, in TYPE/LANGUAGE folders of train, dev and test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import DataSection, Dataset
from plant_datasets.corpora.registration import TibkatOptions
from plant_datasets.corpora.split_folders import find_split_folders
from plant_datasets.formats.documents import Document, Part, Reading

_RECORD = "TIBKAT"
_SUBJECTS = "dcterms:subject"


def load(data: DataSection, options: TibkatOptions) -> Dataset:
    """Read title and abstracts of each record, each on a line; labels are numbers of the GND, their German names the titles."""
    reading = Reading.of(data)
    titles: dict[str, str] = {}
    folders = find_split_folders(reading.path, "**/*.jsonld")
    parts: dict[Part, list[Document]] = {split: list(_read(reading, folder, options, titles)) for split, folder in folders.items()}
    table = pl.DataFrame({"label": list(titles), "title": list(titles.values())}, schema={"label": pl.String, "title": pl.String})
    return reading.dataset({split: documents for split, documents in parts.items() if documents}, table)


def _read(reading: Reading, folder: Path, options: TibkatOptions, titles: dict[str, str]) -> Iterator[Document]:
    for number, path in enumerate(sorted(folder.rglob("*.jsonld")), start=1):
        if options.language != "all" and path.parent.name != options.language:
            continue
        content = "\n".join(line for _, line in reading.lines(path))
        try:
            nodes = _list(json.loads(content)["@graph"])
            record = next(node for node in nodes if _RECORD in node.get("@id", ""))
            texts = [*_list(record.get("title")), *_list(record.get("abstract"))]
            labels = [subject["@id"] for subject in _list(record.get(_SUBJECTS))]
        except json.JSONDecodeError as error:
            reading.bad.add(path, error.lineno, f"not JSON: {error.msg}", content[:500], column=error.colno)
            continue
        except (KeyError, TypeError, AttributeError, StopIteration) as error:
            reading.bad.add(path, 1, f"not a record with @graph, title and {_SUBJECTS}: {error!r}", content[:500])
            continue
        for node in nodes:
            if names := _list(node.get("sameAs")):
                titles.setdefault(node["@id"], str(names[0]))
        yield Document(number, "\n".join(str(text) for text in texts), labels, f"{path.parent.parent.name}-{path.parent.name}-{path.stem}")


def _list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]
