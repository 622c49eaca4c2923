"""PECOS's text2text format: `0,1,2<TAB>text`, or `0::0.1,1::0.2<TAB>text` with weights, which are read and not kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from plant_cli.api import DataSection, Dataset, NoOptions
from plant_cli.kit import BadRows, bare_name, read_lines
from plant_datasets.formats.documents import (
    Document,
    NumberedLabels,
    Part,
    Reading,
    find_file,
    find_parts,
    is_line_file,
    read_numbered,
    rebase,
)
from plant_datasets.formats.pecos import ITEMS
from plant_datasets.formats.sniffing import find_example, first_lines, mostly
from plant_datasets.formats.writing import Output

_WEIGHT = r"(?:::[-+\d.eE]+)?"
LABELS = re.compile(rf"(?:\d+{_WEIGHT}(?:,\d+{_WEIGHT})*)?")
_NAMES = {"train": "train", "validation": "valid", "test": "test"}


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a file or a folder; a label is its number, and its line of output-items.txt the title."""
    reading = Reading.of(data)
    parts = find_parts(reading.path, _is_named_so)
    labels = read_numbered(reading, next(iter(parts.values())).parent, (ITEMS, "output_items.txt"))
    declared = None if labels.ids is None else len(labels.ids)
    labels = rebase(reading, labels, _numbers(reading, parts), declared)
    return reading.dataset({part: _read(reading, path, labels) for part, path in parts.items()}, labels.table())


def recognise(data: DataSection) -> str | None:
    """Numbers parted by commas, a tab and a text, on every line; some line has several numbers, or a file of their names is beside."""
    example = find_example(data, _fits)
    return None if example is None else f"PECOS's text2text format (first line of {example.name}: '{first_lines(example)[0][:30]}…')"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.txt, test.txt, … and output-items.txt."""
    output = Output(dataset, folder, suffix)
    numbers = output.number_labels()
    output.write(ITEMS, output.titles())
    for split in output.splits:
        rows = output.rows(split)
        output.write(
            f"{_NAMES[split]}.txt", (f"{','.join(str(n) for n in sorted(map(numbers.__getitem__, ls)))}\t{t}" for _, t, ls in rows)
        )
    return output.remarks("document ids")


def _is_named_so(path: Path) -> bool:
    return is_line_file(path) and not bare_name(path).startswith("output")


def _fits(path: Path) -> bool:
    if not mostly(first_lines(path), lambda line: "\t" in line and LABELS.fullmatch(line.partition("\t")[0])):
        return False
    heads = [line.partition("\t")[0] for line in first_lines(path)]
    return any("," in head or "::" in head for head in heads) or find_file(path.parent, ITEMS, "output_items.txt") is not None


def _numbers(reading: Reading, parts: dict[Part, Path]) -> Iterator[int]:
    for path in parts.values():
        for _, line in read_lines(path, BadRows(), reading.data.encoding):
            yield from (int(number) for number in re.findall(rf"(\d{{1,18}}){_WEIGHT}", line.partition("\t")[0]))


def _read(reading: Reading, path: Path, labels: NumberedLabels) -> Iterator[Document]:
    for number, line in reading.lines(path):
        head, tab, text = line.partition("\t")
        if not tab or not LABELS.fullmatch(head):
            why = "there is no tab" if not tab else f"'{head[:20]}' are no label numbers"
            reading.bad.add(path, number, why, line, column=1, expected="0,1,2<TAB>text")
            continue
        numbers = [int(part.partition("::")[0]) for part in head.split(",") if part]
        try:
            names = [labels.name(label) for label in numbers]
        except IndexError:
            reading.bad.add(path, number, f"a label number has no name in {len(labels.ids or ()):,} names", line, column=1)
            continue
        yield Document(number, text, names)
