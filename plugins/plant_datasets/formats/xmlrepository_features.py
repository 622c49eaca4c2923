"""The XML repository's first format: a line `N D L`, then `labels feature:value …`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plant_cli.api import DataError, DataSection, Dataset
from plant_datasets.formats.documents import Reading, find_parts, read_numbered, rebase
from plant_datasets.formats.registration import FeatureOptions
from plant_datasets.formats.sniffing import find_example, first_lines
from plant_datasets.formats.sparse_lines import HEADER, SparseReader, is_sparse_file, label_numbers, write_sparse
from plant_datasets.formats.writing import Output

LONGEST_HEADER = 60  # characters
_LABELS = ("Y.txt", "label_names.txt", "labels.txt", "output-items.txt")


def load(data: DataSection, options: FeatureOptions) -> Dataset:
    """Read a file or a folder; labels and features count from 0, labels from 1 if their numbers say so."""
    reading = Reading.of(data)
    parts = find_parts(reading.path, is_sparse_file)
    folder = next(iter(parts.values())).parent
    labels = read_numbered(reading, folder, _LABELS)
    declared = max(map(_count_labels, parts.values()))
    labels = rebase(reading, labels, label_numbers(reading, parts.values(), 1), declared)
    reader = SparseReader(reading, labels, 0, None if options.features is None else Path(options.features))
    return reading.dataset({part: reader.read(part, path, 1) for part, path in parts.items()}, labels.table())


def _count_labels(path: Path) -> int:
    """How many labels the first line of a file says that there are."""
    line = next(iter(first_lines(path, 1)), "")
    if HEADER.fullmatch(line) is None or len(line) > LONGEST_HEADER:
        raise DataError(
            f"the first line does not say how large the corpus is: {line[:60]!r}",
            where=f"{path}, line 1",
            expected="three numbers: of documents, of features, of labels",
            todo="copy or make the file again",
        )
    return int(line.split()[2])


def recognise(data: DataSection) -> str | None:
    """A first line of three numbers, and features behind it."""
    example = find_example(data, _fits)
    return (
        None
        if example is None
        else f"the XML repository's format with features (first line of {example.name}: '{first_lines(example)[0]}')"
    )


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.txt, test.txt, … with counts of words, and the texts beside them."""
    output = Output(dataset, folder, suffix)
    return write_sparse(output, 0, {split: f"{split}.txt" for split in output.splits}, header=True)


def _fits(path: Path) -> bool:
    lines = first_lines(path, 2)
    return bool(lines) and HEADER.fullmatch(lines[0]) is not None and (len(lines) == 1 or lines[1] == " " or ":" in lines[1])
