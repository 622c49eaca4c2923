"""CodiEsp: texts, codes of diagnoses (D) and procedures (P), and the spans that justify them (X)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from plant_cli.api import DataSection, Dataset
from plant_datasets.corpora.registration import CodiespOptions
from plant_datasets.corpora.split_folders import find_split_folders
from plant_datasets.formats.documents import Document, Part, Reading

_KINDS = {"DIAGNOSTICO": "D", "PROCEDIMIENTO": "P"}
_EVIDENCE = {"doc_id": pl.String, "label": pl.String, "start": pl.Int64, "end": pl.Int64, "text": pl.String}
Span = tuple[str, str, int, int, str]


def load(data: DataSection, options: CodiespOptions) -> Dataset:
    """Read all splits that have gold codes; dev is validation."""
    reading = Reading.of(data)
    parts: dict[Part, list[Document]] = {}
    spans: list[Span] = []
    for split, folder in find_split_folders(reading.path, "text_files/*.txt").items():
        codes = _read_codes(reading, folder, options)
        if not codes:
            reading.remarks.append(f"{folder} has texts and no gold codes: it is left out")
            continue
        texts = {path.stem: "".join(line for _, line in reading.lines(path, ends=True)) for path in sorted(folder.glob("text_files/*.txt"))}
        parts[split] = [Document(n, text, codes.get(name, []), name) for n, (name, text) in enumerate(texts.items(), start=1)]
        spans += _read_spans(reading, folder, texts, options)
    dataset = reading.dataset(parts)
    return replace(dataset, evidence=pl.LazyFrame(spans, schema=_EVIDENCE, orient="row") if spans else None)


def _read_codes(reading: Reading, folder: Path, options: CodiespOptions) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    kinds = ("D", "P") if options.codes == "all" else (options.codes,)
    for path in [path for kind in kinds for path in sorted(folder.glob(f"*{kind}.tsv"))]:
        for number, line in reading.lines(path):
            fields = line.rstrip().split("\t")
            if len(fields) >= 2:
                found.setdefault(fields[0], []).append(fields[1])
            elif line.strip():
                reading.bad.add(path, number, "not a document, a tab and a code", line)
    return found


def _read_spans(reading: Reading, folder: Path, texts: dict[str, str], options: CodiespOptions) -> Iterator[Span]:
    """Spans of document, kind, code, quoted text and places; several places are parted by semicolons."""
    for path in sorted(folder.glob("*X.tsv")):
        for number, line in reading.lines(path):
            fields = line.rstrip("\n").split("\t")
            if len(fields) < 5 or fields[0] not in texts or fields[1] not in _KINDS:
                reading.bad.add(path, number, "not document, DIAGNOSTICO or PROCEDIMIENTO, code, text and places", line)
                continue
            if options.codes not in ("all", _KINDS[fields[1]]):
                continue
            for start, end in _places(reading, path, number, line):
                yield fields[0], fields[2], start, end, texts[fields[0]][start:end]


def _places(reading: Reading, path: Path, number: int, line: str) -> list[tuple[int, int]]:
    try:
        places = [tuple(map(int, place.split())) for place in line.split("\t")[4].split(";")]
        return [(start, end) for start, end in places if end > start]
    except ValueError:
        reading.bad.add(path, number, "places are not pairs of numbers", line)
        return []
