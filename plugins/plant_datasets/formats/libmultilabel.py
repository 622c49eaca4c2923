"""LibMultiLabel's format: `LAB1 LAB2<TAB>text`, or with an id before it, `id<TAB>LAB1 LAB2<TAB>text`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from plant_cli.api import DataSection, Dataset, NoOptions
from plant_datasets.formats.documents import Document, Reading, find_parts, is_line_file
from plant_datasets.formats.sniffing import find_example, first_lines, mostly
from plant_datasets.formats.text2text import LABELS
from plant_datasets.formats.writing import Output

_NAMES = {"train": "train", "validation": "valid", "test": "test"}
_HEADING = re.compile(r"[^\W\d]\w*")
_MUCH_LONGER = 2.0


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a file or a folder of train.txt, valid.txt and test.txt."""
    reading = Reading.of(data)
    return reading.dataset({part: _read(reading, path) for part, path in find_parts(reading.path, is_line_file).items()})


def recognise(data: DataSection) -> str | None:
    """Two or three fields on every line, parted by tabs, the last by far the longest; no line of column names."""
    example = find_example(data, _fits)
    return None if example is None else f"LibMultiLabel's format (first line of {example.name}: '{first_lines(example)[0][:30]}…')"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.txt, valid.txt and test.txt with ids."""
    output = Output(dataset, folder, suffix, tabs=False)
    output.refuse_signs(" \t\r\n", "the labels, parted by blanks")
    ids = list(chain.from_iterable(output.column(split, "doc_id") for split in output.splits))
    output.refuse_signs("\t\r\n", "the ids of documents", ids)
    for split in output.splits:
        output.write(f"{_NAMES[split]}.txt", (f"{doc_id}\t{' '.join(labels)}\t{text}" for doc_id, text, labels in output.rows(split)))
    return output.remarks("titles of labels")


def _fits(path: Path) -> bool:
    lines = first_lines(path)
    fields = next((line.count("\t") for line in lines if line), 0)
    if fields not in (1, 2) or not mostly(lines, lambda line: line.count("\t") == fields):
        return False
    rows = [row for line in lines if len(row := line.split("\t")) == fields + 1]
    if all(_HEADING.fullmatch(name) for name in rows[0]) or any(row[-1].lstrip().startswith("<http") for row in rows):
        return False
    numbers = all(LABELS.fullmatch(row[0]) for row in rows) and len(rows[0]) == 2
    return not numbers and sum(len(row[-1]) for row in rows) > _MUCH_LONGER * sum(len(row[-2]) for row in rows)


def _read(reading: Reading, path: Path) -> Iterator[Document]:
    first = next((line for line in first_lines(path, 1) if line), "")
    wanted = min(first.count("\t"), 2)
    for number, line in reading.lines(path):
        fields = line.split("\t", wanted)
        if len(fields) <= max(wanted, 1):
            if line:
                why = f"{len(fields)} fields, line 1 has {wanted + 1}"
                reading.bad.add(path, number, why, line, expected="LAB1 LAB2<TAB>text, or id<TAB>LAB1 LAB2<TAB>text")
            continue
        yield Document(number, fields[-1], [name for name in fields[-2].split(" ") if name], fields[0] if wanted == 2 else None)
