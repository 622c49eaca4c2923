"""Annif's CSV of documents: the columns text and subject_uris, perhaps document_id and metadata."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from plant_cli.api import DataError, DataSection, Dataset, NoOptions
from plant_cli.kit import writing_text
from plant_datasets.formats.documents import Document, Reading, find_parts
from plant_datasets.formats.sniffing import find_example, first_lines
from plant_datasets.formats.writing import Output

_WRONG = re.compile("[\udc80-\udcff]")
TEXT, SUBJECTS, ID = "text", "subject_uris", "document_id"


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a file or a folder of train.csv, validation.csv and test.csv; metadata stay unread."""
    reading = Reading.of(data)
    return reading.dataset({part: _read(reading, path) for part, path in find_parts(reading.path, _fits).items()})


def recognise(data: DataSection) -> str | None:
    """The columns text and subject_uris in the first line."""
    example = find_example(data, _fits)
    return None if example is None else f"Annif's CSV format (columns of {example.name}: {first_lines(example, 1)[0][:60]})"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.csv, validation.csv and test.csv with the columns document_id, text and subject_uris."""
    output = Output(dataset, folder, suffix)
    output.refuse_signs(" <>\t\r\n", "the labels, parted by blanks")
    for split in output.splits:
        with writing_text(folder / f"{split}.csv{suffix}") as stream:
            writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a carriage return alone would not be quoted else
            writer.writerow((ID, TEXT, SUBJECTS))
            writer.writerows((doc_id, text, " ".join(f"<{label}>" for label in labels)) for doc_id, text, labels in output.documents(split))
    return output.remarks("titles of labels")


def _fits(path: Path) -> bool:
    lines = first_lines(path, 1)
    return bool(lines) and {TEXT, SUBJECTS} <= set(_header(lines[0]))


def _header(line: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([line]), [])]


def _read(reading: Reading, path: Path) -> Iterator[Document]:
    csv.field_size_limit(2**31 - 1)
    last = ""

    def lines() -> Iterator[str]:
        nonlocal last
        for _, last in reading.lines(path, ends=True, surrogates=True):
            yield last

    reader = csv.reader(lines())
    columns = [name.strip() for name in next(reader, [])]
    if not {TEXT, SUBJECTS} <= set(columns):
        raise DataError(
            f"the columns are {', '.join(columns)}",
            where=f"{path}, line 1",
            expected=f"{TEXT} and {SUBJECTS}",
            todo="name them so, or name another format with --dataset",
        )
    yield from _documents(reading, path, _rows(reading, path, reader, lambda: last), columns)


def _rows(reading: Reading, path: Path, reader: Any, last: Callable[[], str]) -> Iterator[tuple[int, list[str]]]:
    """All rows that are CSV, with the line in which each begins."""
    while True:
        start = reader.line_num + 1
        try:
            yield start, next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            why = "a carriage return stands in a field without quotes" if "new-line" in str(error) else str(error)
            reading.bad.add(path, start, why, last(), expected="fields with line breaks in double quotes")
            yield start, []


def _documents(reading: Reading, path: Path, rows: Iterable[tuple[int, list[str]]], columns: Sequence[str]) -> Iterator[Document]:
    for number, (line, row) in enumerate(rows, start=1):
        if not row or any(_WRONG.search(cell) for cell in row):  # lines with wrong bytes have been taken note of
            continue
        if len(row) != len(columns):
            reading.bad.add(path, line, f"{len(row)} fields, the first line has {len(columns)}", _as_line(row))
            continue
        cells = dict(zip(columns, row, strict=True))
        uris = [uri.strip("<>") for uri in cells[SUBJECTS].split()]
        yield Document(number, cells[TEXT], [uri for uri in uris if uri], cells.get(ID) or None)


def _as_line(row: Sequence[str]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="").writerow(row)
    return out.getvalue()
