"""Predictions in JSON, and Annif's output: its JSON lines, its batches, and its folders."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plant_cli.api import DataError, PredictionFile, misread
from plant_cli.kit import find_mismatch
from plant_formats.prediction_cells import part_cell
from plant_formats.prediction_lines import require_new
from plant_formats.scored_labels import (
    DocumentPairs,
    LabelScore,
    PredictionFormat,
    choose_known,
    parse_score,
)

_ANNIF = '{"document_id": …, "results": [{"uri": …, "score": …}]}'
_SUGGESTIONS = "<uri>, label and score between tabs"
_BESIDE = {".txt", ".key"}  # of files in a folder in which Annif keeps texts and suggestions
_NO_OBJECT = {"doc_id", "document_id", "results"}  # keys of a line, not ids of documents
_KEYS_IN = 1 << 12  # characters


def _is_annif(file: PredictionFile) -> bool:
    begins = file.first.lstrip()[:1] in ("{", "[")
    return begins and '"results"' in file.start.split("}")[0] + file.first


def _read_annif(file: PredictionFile) -> DocumentPairs:
    """Annif's JSON lines, or its list for a batch of documents."""
    if file.first.lstrip().startswith("["):
        entries = file.content if isinstance(file.content, list) else []
        place, lines = "entry", [json.dumps(one) for one in entries]
    else:
        place, lines = "line", [line for line in file.read_lines(file.path) if line.strip()]
    if not lines:
        raise misread("this is no list of Annif's results", str(file.path), f"[{_ANNIF}, …]")
    numbered = '"document_id"' not in lines[0]
    if numbered:
        file.require_rows(len(lines))
    rows: dict[str, list[LabelScore]] = {}
    for number, line in enumerate(lines, start=1):
        where = f"{file.path}, {place} {number}"
        try:
            entry = json.loads(line)
            document = file.documents[number - 1] if numbered else str(entry["document_id"])
            require_new(document, rows, where)
            rows[document] = [_read_result(one, file) for one in entry["results"]]
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
            RecursionError,
        ) as error:
            what = f"this is no line of Annif's output: {line[:60]}"
            raise misread(what, where, _ANNIF) from error
    return rows


def _read_result(result: Any, file: PredictionFile) -> LabelScore:
    names = [str(result[key]) for key in ("uri", "notation", "label") if result.get(key)]
    return choose_known(names, file.known_labels), float(result["score"])


def _read_folder(file: PredictionFile) -> DocumentPairs:
    """Annif's suggestions: a file for each document, named by it, with lines of `<uri>`, label
    and score between tabs.
    """
    entries = sorted(file.path.iterdir())
    files = [one for one in entries if one.is_file() and not one.name.startswith(".")]
    endings = Counter(one.suffix for one in files if one.suffix not in _BESIDE)
    if not endings:
        raise DataError(
            "this folder holds no predictions",
            where=str(file.path),
            expected="a file of predictions, or a folder of Annif's suggestions: doc_id.annif "
            f"with lines of {_SUGGESTIONS}",
            todo="name a file",
        )
    ending = ".annif" if ".annif" in endings else endings.most_common(1)[0][0]
    return {
        one.name.removesuffix(ending): list(_read_suggestions(one, file))
        for one in files
        if one.suffix == ending
    }


def _read_suggestions(path: Path, file: PredictionFile) -> Iterator[LabelScore]:
    for number, line in enumerate(file.read_lines(path), start=1):
        *cells, score = (cell.strip() for cell in line.split("\t"))
        if not line.strip():
            continue
        names = [name.removeprefix("<").removesuffix(">") for name in cells if name]
        try:
            yield choose_known(names, file.known_labels), parse_score(score)
        except (ValueError, IndexError) as error:
            raise misread(
                "this is no label and score", f"{path}, line {number}", _SUGGESTIONS
            ) from error


def _is_object(file: PredictionFile) -> bool:
    if not file.start.lstrip().startswith("{"):
        return False
    keys = set(re.findall(r'"([^"\\]*)"\s*:', file.start[:_KEYS_IN]))
    content = None if keys & _NO_OBJECT else file.content
    if not isinstance(content, dict):
        return False
    if not all(isinstance(one, dict | list) for one in content.values()):
        return False
    known = file.known_documents
    return not known.isdisjoint(content) or find_mismatch(content, known) is not None


def _read_object(file: PredictionFile) -> DocumentPairs:
    return {document: _part(row, document, file) for document, row in file.content.items()}


def _is_nested(file: PredictionFile) -> bool:
    nested = re.match(r"\s*\[\s*\[", file.start) is not None
    content = file.content if nested else None
    return isinstance(content, list) and all(isinstance(row, list) for row in content)


def _read_nested(file: PredictionFile) -> DocumentPairs:
    file.require_rows(len(file.content))
    rows = zip(file.documents, file.content, strict=True)
    return {document: _part(row, document, file) for document, row in rows}


def _part(row: Any, document: str, file: PredictionFile) -> list[LabelScore]:
    pairs = part_cell(row, file.known_labels, f"{file.path}, document {document}")
    return [(file.name(label, str(file.path)), score) for label, score in pairs]


ANNIF_RESULTS = PredictionFormat("Annif's JSON lines", _is_annif, _read_annif)
SUGGESTIONS = PredictionFormat(
    "a folder with a file for each document",
    lambda file: file.path.is_dir(),
    _read_folder,
    pairs=True,
)
PAIRS_BY_ID = PredictionFormat(
    "a JSON object with a list for each document", _is_object, _read_object, pairs=True
)
NESTED_LISTS = PredictionFormat("JSON lists, one for each document", _is_nested, _read_nested)
