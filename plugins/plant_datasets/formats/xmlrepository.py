"""The XML repository's format with texts: trn.json.gz and lbl.json.gz, or trn_X.txt, trn_X_Y.txt and Y.txt; and the filter files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import DataError, DataSection, Dataset, NoOptions, SplitName
from plant_cli.kit import BadRows, read_lines
from plant_datasets.formats.documents import Document, NumberedLabels, Part, Reading, check_text, find_file, pair, read_numbered
from plant_datasets.formats.writing import Output

_NAMES: dict[SplitName, str] = {"train": "trn", "validation": "val", "test": "tst"}
_FILTERS: dict[SplitName, str] = {"train": "filter_labels_train.txt", "test": "filter_labels_test.txt"}


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a folder: the JSON files where they are, else the texts and matrices. What the filter files list is left out of the labels."""
    reading = Reading.of(data)
    described = find_file(reading.path, "lbl.json")
    labels = read_numbered(reading, reading.path, ("Y.txt",)) if described is None else _read_labels(reading, described)
    parts: dict[Part, Iterator[Document]] = {}
    for split, name in _NAMES.items():
        as_json = find_file(reading.path, f"{name}.json")
        texts, matrix = find_file(reading.path, f"{name}_X.txt"), find_file(reading.path, f"{name}_X_Y.txt")
        if as_json is not None:
            parts[split] = _read_json(reading, as_json, labels)
        elif texts is not None and matrix is not None:
            parts[split] = _read_texts(reading, texts, matrix, labels)
    if "train" not in parts:
        raise DataError(
            "the folder has no training documents in the XML repository's format",
            where=str(reading.path),
            expected="trn.json.gz and lbl.json.gz, or trn_X.txt, trn_X_Y.txt and Y.txt",
            todo="name the files so, or name another format with --dataset",
        )
    filters = {split: path for split, name in _FILTERS.items() if split in parts and (path := find_file(reading.path, name)) is not None}
    ids: dict[Part, dict[int, str]] = {split: dict.fromkeys(_filtered_rows(reading, path), "") for split, path in filters.items()}
    frames = reading.read({split: _note_ids(rows, str(split), ids.get(split, {})) for split, rows in parts.items()})
    return reading.gather(frames, labels.table(), _read_filters(reading, filters, ids, labels))


def recognise(data: DataSection) -> str | None:
    """Files trn.json and lbl.json, or trn_X.txt and trn_X_Y.txt, in a folder."""
    folder = None if data.path is None else Path(data.path)
    if folder is None or not folder.is_dir():
        return None
    for first, second in (("trn.json", "lbl.json"), ("trn_X.txt", "trn_X_Y.txt")):
        texts, labels = find_file(folder, first), find_file(folder, second)
        if texts is not None and labels is not None:
            return f"the XML repository's format with texts ({texts.name} and {labels.name})"
    return None


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write both layouts: trn.json, …, lbl.json; and trn_X.txt, trn_X_Y.txt, …, Y.txt; and the filter file of test."""
    output = Output(dataset, folder, suffix)
    table = output.labels
    numbers = {label: number for number, label in enumerate(table["label"])}
    output.write("lbl.json", (_dump({"uid": label, "title": title or ""}) for label, title in table.iter_rows()))
    output.write("Y.txt", output.titles())
    for split in output.splits:
        name = _NAMES[split]
        described = (_describe(doc_id, text, labels, numbers) for doc_id, text, labels in output.documents(split))
        output.write(f"{name}.json", map(_dump, described))
        output.write(f"{name}_X.txt", (text for _, text, _ in output.rows(split)))
        wanted = output.column(split, "labels")
        rows = (" ".join(f"{number}:1" for number in sorted(numbers[label] for label in labels)) for labels in wanted)
        output.write(f"{name}_X_Y.txt", iter([f"{len(wanted)} {len(numbers)}", *rows]))
    _write_filters(output, numbers)
    return []


def _dump(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _describe(doc_id: str, text: str, labels: Sequence[str], numbers: dict[str, int]) -> dict[str, Any]:
    title, _, content = text.partition("\n")
    title, content = (title, content) if title and content else (text, "")
    wanted = [numbers[label] for label in labels]
    return {"uid": doc_id, "title": title, "content": content, "target_ind": wanted, "target_rel": [1.0] * len(wanted)}


def _write_filters(output: Output, numbers: dict[str, int]) -> None:
    excluded = None if output.dataset.excluded is None else output.dataset.excluded.collect()
    for split, name in _FILTERS.items():
        if excluded is None or split not in output.splits:
            continue
        rows = {doc_id: row for row, doc_id in enumerate(output.column(split, "doc_id"))}
        pairs = [(rows[doc_id], numbers[label]) for doc_id, label in excluded.iter_rows() if doc_id in rows and label in numbers]
        if pairs:
            output.write(name, (f"{row} {number}" for row, number in sorted(pairs)))


def _read_labels(reading: Reading, path: Path) -> NumberedLabels:
    found = [_object(line, path, number) for number, line in enumerate(reading.aligned(path), start=1) if line.strip()]
    ids = [str(label.get("uid", number)) for number, label in enumerate(found)]
    if len(set(ids)) < len(ids):
        reading.remarks.append(f"{path}: {len(ids) - len(set(ids)):,} uids occur twice, so labels go by their number")
        ids = [str(number) for number in range(len(ids))]
    return NumberedLabels(ids, [str(label.get("title") or "") or None for label in found])


def _object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise _no_label(path, number, str(error)) from error
    if not isinstance(value, dict):
        raise _no_label(path, number, "no JSON object")
    return value


def _no_label(path: Path, number: int, why: str) -> DataError:
    where, expected = f"{path}, line {number:,}", '{"uid": …, "title": …} on every line: labels go by their line'
    return DataError(f"a label cannot be read: {why}", where=where, expected=expected, todo="mend the line")


def _read_json(reading: Reading, path: Path, labels: NumberedLabels) -> Iterator[Document]:
    for number, line in reading.lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            text = "\n".join(part for part in (row.get("title"), row.get("content")) if part)
            check_text(text)
            yield Document(number, text, [labels.name(int(label)) for label in row.get("target_ind", [])], _id(row))
        except json.JSONDecodeError as error:
            reading.bad.add(path, number, f"not JSON: {error.msg}", line, column=error.colno)
        except IndexError:
            reading.bad.add(path, number, f"a number in target_ind has no name in {len(labels.ids or ()):,} labels", line)
        except (AttributeError, TypeError, ValueError) as error:
            reading.bad.add(path, number, f"not {{title, content, target_ind}}: {error}", line)


def _id(row: dict[str, Any]) -> str | None:
    return None if row.get("uid") in (None, "") else str(row["uid"])


def _read_texts(reading: Reading, texts: Path, matrix: Path, labels: NumberedLabels) -> Iterator[Document]:
    def differ(rows: int, labelled: int) -> DataError:
        return DataError(
            f"there are {rows:,} texts, and labels of {labelled:,} documents",
            where=f"{texts}, {matrix}",
            expected="a line 'N L', then one line of labels for each text",
            todo="take the files of one distribution",
        )

    rows, lines = reading.beside(texts), reading.beside(matrix)
    next(lines, "")
    for number, text, line in pair(rows, lines, differ):
        try:
            names = [labels.name(int(part.partition(":")[0])) for part in line.split()]
        except (ValueError, IndexError):
            known = "" if labels.ids is None else f", of {len(labels.ids):,}"
            reading.bad.add(matrix, number + 1, f"not label numbers with :1{known}", line, expected="3:1 17:1")
            continue
        yield Document(number, text, names)


def _filtered_rows(reading: Reading, path: Path) -> Iterator[int]:
    """The rows that a filter file names, as far as they can be read."""
    for _, line in read_lines(path, BadRows(), reading.data.encoding):
        fields = line.split()
        if fields and fields[0].isdecimal() and len(fields[0]) < 19:
            yield int(fields[0])


def _note_ids(documents: Iterable[Document], split: str, wanted: dict[int, str]) -> Iterator[Document]:
    """The same documents; the ids of wanted rows are noted on the way."""
    for document in documents:
        if document.number - 1 in wanted:
            wanted[document.number - 1] = document.id or f"{split}-{document.number}"
        yield document


def _read_filters(
    reading: Reading, filters: Mapping[SplitName, Path], ids: Mapping[Part, dict[int, str]], labels: NumberedLabels
) -> pl.LazyFrame | None:
    pairs: list[tuple[str, str]] = []
    for split, path in filters.items():
        pairs += _read_pairs(reading, path, {row: doc_id for row, doc_id in ids[split].items() if doc_id}, labels)
    if not pairs:
        return None
    return pl.LazyFrame(pairs, schema={"doc_id": pl.String, "label": pl.String}, orient="row")


def _read_pairs(reading: Reading, path: Path, by_row: dict[int, str], labels: NumberedLabels) -> Iterator[tuple[str, str]]:
    for number, line in reading.lines(path):
        fields = line.split()
        if not fields:
            continue
        try:
            yield by_row[int(fields[0])], labels.name(int(fields[1]))
        except (ValueError, IndexError, KeyError):
            reading.bad.add(path, number, "not a row of the documents and a number of a label", line, expected="17 4096")
