"""Annif's JSON lines: {"document_id", "text", "metadata", "subjects": [{"uri", "label"}]}."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import DataSection, Dataset, NoOptions
from plant_datasets.formats.documents import Document, Part, Reading, check_text, find_parts
from plant_datasets.formats.sniffing import find_example, first_lines
from plant_datasets.formats.writing import Output


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a file or a folder of train.jsonl, validation.jsonl and test.jsonl; the labels of subjects become titles."""
    reading = Reading.of(data)
    titles: dict[str, str | None] = {}
    parts: dict[Part, Iterator[Document]] = {part: _read(reading, path, titles) for part, path in find_parts(reading.path, _fits).items()}
    frames = reading.read(parts)  # fills the titles
    columns = {"label": list(titles), "title": list(titles.values())}
    table = pl.DataFrame(columns, schema={"label": pl.String, "title": pl.String})
    return reading.gather(frames, table if any(titles.values()) else None)


def recognise(data: DataSection) -> str | None:
    """A JSON object with a text and a list of subjects in the first line."""
    example = find_example(data, _fits)
    return None if example is None else f"Annif's JSON lines (first line of {example.name}: '{first_lines(example, 1)[0][:30]}…')"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.jsonl, validation.jsonl and test.jsonl; nothing is lost."""
    output = Output(dataset, folder, suffix)
    titles = dict(output.labels.iter_rows())
    for split in output.splits:
        rows = (_describe(doc_id, text, labels, titles) for doc_id, text, labels in output.documents(split))
        output.write(f"{split}.jsonl", (json.dumps(row, ensure_ascii=False) for row in rows))
    return []


def _describe(doc_id: str, text: str, labels: Sequence[str], titles: dict[str, str | None]) -> dict[str, Any]:
    subjects = [{"uri": label, "label": titles[label]} if titles.get(label) else {"uri": label} for label in labels]
    return {"document_id": doc_id, "text": text, "subjects": subjects}


def _fits(path: Path) -> bool:
    line = next((line for line in first_lines(path) if line.strip()), "")
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and "text" in value and isinstance(value.get("subjects"), list)


def _read(reading: Reading, path: Path, titles: dict[str, str | None]) -> Iterator[Document]:
    for number, line in reading.lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            text, subjects, doc_id = row["text"], row.get("subjects") or [], row.get("document_id")
            labels = {str(subject["uri"]): subject.get("label") for subject in subjects}
            check_text(text or "")
        except json.JSONDecodeError as error:
            reading.bad.add(path, number, f"not JSON: {error.msg}", line, column=error.colno)
            continue
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reading.bad.add(path, number, f"not {{text, subjects: [{{uri}}]}}: {error}", line)
            continue
        for label, title in labels.items():
            titles[label] = titles.get(label) or (title if isinstance(title, str) else None)
        yield Document(number, text or "", list(labels), None if doc_id in (None, "") else str(doc_id))
