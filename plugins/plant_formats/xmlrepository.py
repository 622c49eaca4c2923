"""The XML repository's format with texts: trn.json.gz and lbl.json.gz, or trn_X.txt,
trn_X_Y.txt and Y.txt; and its filter files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from plant_cli.api import DataError, DataSection, Dataset, NoOptions, SplitName
from plant_formats.corpus_reader import (
    CorpusReader,
    Document,
    SplitPart,
    find_file,
    lacks_training,
)
from plant_formats.line_formats import XML_JSON, XML_TEXTS, NumberedLabels, read_names

_NAMES: dict[SplitName, str] = {"train": "trn", "validation": "val", "test": "tst"}
_FILTERS: dict[SplitName, str] = {
    "train": "filter_labels_train.txt",
    "test": "filter_labels_test.txt",
}


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a folder: JSON files if it has them, else texts and matrices. The pairs of the
    filter files are excluded from predictions.
    """
    reader = CorpusReader.of(data)
    described = find_file(reader.path, "lbl.json")
    labels = (
        read_names(reader, reader.path, XML_TEXTS.names)
        if described is None
        else _read_labels(reader, described)
    )
    excluded: list[tuple[str, str]] = []
    parts: dict[SplitPart, Iterator[Document]] = {}
    pairs = XML_TEXTS.find_pairs(reader.path)
    for split, name in _NAMES.items():
        documents = find_file(reader.path, f"{name}.json")
        if documents is not None:
            parts[split] = XML_JSON.read(reader, documents, None, labels)
        elif split in pairs:
            parts[split] = XML_TEXTS.read(reader, *pairs[split], labels)
        filters = (
            find_file(reader.path, _FILTERS[split])
            if split in _FILTERS and split in parts
            else None
        )
        if filters is not None:
            parts[split] = _exclude(reader, split, parts[split], filters, labels, excluded)
    if "train" not in parts:
        raise lacks_training(
            str(reader.path), "trn.json.gz and lbl.json.gz, or trn_X.txt, trn_X_Y.txt and Y.txt"
        )
    return reader.dataset(parts, labels.titles, excluded)


def recognise(data: DataSection) -> str | None:
    """Files trn.json and lbl.json, or trn_X.txt and trn_X_Y.txt, in a folder."""
    folder = Path(data.path or "")
    documents, labels = find_file(folder, "trn.json"), find_file(folder, "lbl.json")
    if data.path is None or documents is None or labels is None:
        return XML_TEXTS.recognise(data)
    return f"{XML_TEXTS.title} ({documents.name} and {labels.name})"


def _read_labels(reader: CorpusReader, path: Path) -> NumberedLabels:
    labels = []
    for number, line in enumerate(reader.all_lines(path), start=1):
        try:
            label = json.loads(line) if line.strip() else {}
            why = "" if isinstance(label, dict) else "no JSON object"
        except ValueError as error:
            why = str(error)
        if why:
            where, expected = (
                f"{path}, line {number:,}",
                '{"uid": …, "title": …} on every line: labels go by their line',
            )
            raise DataError(
                f"a label cannot be read: {why}",
                where=where,
                expected=expected,
                todo="mend the line",
            )
        labels += [label] if line.strip() else []
    ids = [str(label.get("uid", number)) for number, label in enumerate(labels)]
    if repeated := len(ids) - len(set(ids)):
        reader.remarks.append(
            f"{path}: {repeated:,} uids occur twice, so labels go by their number"
        )
        ids = [str(number) for number in range(len(ids))]
    return NumberedLabels(
        ids,
        {
            uid: str(label.get("title") or "") or None
            for uid, label in zip(ids, labels, strict=True)
        },
    )


def _exclude(
    reader: CorpusReader,
    split: SplitName,
    documents: Iterable[Document],
    path: Path,
    labels: NumberedLabels,
    excluded: list[tuple[str, str]],
) -> Iterator[Document]:
    """The same documents; on the way the pairs of a filter file (row of a document, number of a
    label) are added to `excluded`.
    """
    pairs: dict[
        int, list[tuple[int, str, str]]
    ] = {}  # by row: line of the file, its content, label
    for number, line in reader.lines(path):
        fields = line.split()
        try:
            if fields:
                pairs.setdefault(int(fields[0]), []).append(
                    (number, line, labels.name(int(fields[1])))
                )
        except (ValueError, IndexError):
            reader.bad.add(
                path,
                number,
                "not a row of the documents and a number of a label",
                line,
                expected="17 4096",
            )
    for document in documents:
        excluded += [
            (document.id or f"{split}-{document.number}", label)
            for _, _, label in pairs.pop(document.number - 1, ())
        ]
        yield document
    for number, line, _ in (pair for row in pairs.values() for pair in row):
        reader.bad.add(path, number, "there is no document in this row", line, expected="17 4096")
