"""LibSVM's multi-label format: `1,3,5 1:0.1 9:0.2`, features numbered from 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from plant_cli.api import DataSection, Dataset
from plant_datasets.formats.documents import Reading, find_parts, read_numbered, rebase
from plant_datasets.formats.registration import FeatureOptions
from plant_datasets.formats.sniffing import find_example, first_lines, mostly
from plant_datasets.formats.sparse_lines import SparseReader, is_sparse_file, label_numbers, write_sparse
from plant_datasets.formats.writing import Output

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_LINE = re.compile(rf"(?:\d+(?:,\d+)*)?(?:\s+\d+:{_NUMBER})+\s*|\d+:{_NUMBER}(?:\s+\d+:{_NUMBER})*\s*")
_SIZES = re.compile(r"\s*\d+(?:\s+\d+){1,2}\s*")  # the first line of the XML repository's formats: `N D L`, or `N L` of a matrix
_LABELS = ("label_names.txt", "labels.txt", "output-items.txt")


def load(data: DataSection, options: FeatureOptions) -> Dataset:
    """Read a file or a folder; labels count from 0, or from 1 if a file of their names says so."""
    reading = Reading.of(data)
    parts = find_parts(reading.path, is_sparse_file)
    labels = read_numbered(reading, next(iter(parts.values())).parent, _LABELS)
    declared = None if labels.ids is None else len(labels.ids)
    labels = rebase(reading, labels, label_numbers(reading, parts.values(), 0), declared)
    reader = SparseReader(reading, labels, 1, None if options.features is None else Path(options.features))
    return reading.dataset({part: reader.read(part, path, 0) for part, path in parts.items()}, labels.table())


def recognise(data: DataSection) -> str | None:
    """Numbers of labels, then `feature:value`, on every line."""
    example = find_example(data, _fits)
    return None if example is None else f"LibSVM's multi-label format (first line of {example.name}: '{first_lines(example)[0][:30]}…')"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write train.svm, test.svm, … with counts of words, and the texts beside them."""
    output = Output(dataset, folder, suffix)
    return write_sparse(output, 1, {split: f"{split}.svm" for split in output.splits}, header=False)


def _fits(path: Path) -> bool:
    lines = first_lines(path)
    return not any(map(_SIZES.fullmatch, lines[:1])) and mostly(lines, _LINE.fullmatch)
