"""EURLEX57K: a JSON file for each law, in train, dev and test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api import DataError, DataSection, Dataset, first_line
from plant_cli.kit import BadRows, read_lines
from plant_datasets.corpora.registration import Eurlex57kOptions
from plant_datasets.corpora.split_folders import find_split_folders
from plant_datasets.formats.documents import Document, Part, Reading, check_text


def load(data: DataSection, options: Eurlex57kOptions) -> Dataset:
    """Read header, recitals and main body of each law; a label is the number of a EuroVoc concept."""
    reading = Reading.of(data)
    folders = find_split_folders(reading.path, "*.json")
    parts: dict[Part, list[Document]] = {split: list(_read(reading, folder, options)) for split, folder in folders.items()}
    return reading.dataset(parts, _read_names(reading))


def _read(reading: Reading, folder: Path, options: Eurlex57kOptions) -> Iterator[Document]:
    for number, path in enumerate(sorted(folder.glob("*.json")), start=1):
        content = "\n".join(line for _, line in reading.lines(path))
        try:
            law = json.loads(content)
            body = law["main_body"] if isinstance(law["main_body"], list) else [law["main_body"]]
            attached = [law.get("attachments") or ""] if options.attachments else []
            pieces = [law.get("header") or law.get("title"), law.get("recitals"), *body, *attached]
            labels = [str(concept) for concept in law["concepts"]]
            text = "\n".join(str(piece) for piece in pieces if piece)
            check_text(text)
        except json.JSONDecodeError as error:
            reading.bad.add(path, error.lineno, f"not JSON: {error.msg}", content[:500], column=error.colno)
            continue
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reading.bad.add(path, 1, f"not {{celex_id, header, recitals, main_body, concepts}}: {error}", content[:500])
            continue
        yield Document(number, text, labels, str(law.get("celex_id") or path.stem))


def _read_names(reading: Reading) -> pl.DataFrame | None:
    """Names of concepts: a JSON object by number, or a JSON object for each on its line."""
    pattern = "*[Ee][Uu][Rr][Oo][Vv][Oo][Cc]*.json*"
    beside = [path for folder in (reading.path, reading.path.parent) for path in sorted(folder.glob(pattern))]
    if not beside:
        return None
    reading.files.append(beside[0])
    text = "\n".join(line for _, line in read_lines(beside[0], BadRows(strict=True), reading.data.encoding))
    try:
        concepts = _parse_names(text)
        rows = [(number, concept.get("title") or concept.get("label"), _alternatives(concept)) for number, concept in concepts.items()]
        return pl.DataFrame(rows, schema={"label": pl.String, "title": pl.String, "alternatives": pl.List(pl.String)}, orient="row")
    except (ValueError, KeyError, TypeError, AttributeError, PolarsError) as error:
        raise DataError(
            f"the names of EuroVoc's concepts cannot be read: {first_line(error)}",
            where=str(beside[0]),
            expected='a JSON object of objects by number, or on each line an object with "id" and "title"',
            todo="mend the file, or move it away: titles can come from --vocabulary",
        ) from error


def _parse_names(text: str) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(found, dict):
        return {str(number): concept for number, concept in found.items() if isinstance(concept, dict)}
    return {str(concept["id"]): concept for concept in found}


def _alternatives(concept: dict[str, Any]) -> list[str]:
    return [str(name) for name in concept.get("alt_titles") or concept.get("alt_labels") or []]
