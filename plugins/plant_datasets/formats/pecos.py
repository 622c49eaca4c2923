"""PECOS's and X-Transformer's format: X.trn.txt with one document a line, Y.trn.npz with its labels, output-items.txt with their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, save_npz

from plant_cli.api import DataError, DataSection, Dataset, NoOptions, SplitName
from plant_cli.kit import load_sparse
from plant_datasets.formats.documents import Document, NumberedLabels, Part, Reading, find_file, read_numbered
from plant_datasets.formats.writing import Output

_NAMES: dict[SplitName, str] = {"train": "trn", "validation": "val", "test": "tst"}
ITEMS = "output-items.txt"


def load(data: DataSection, options: NoOptions) -> Dataset:
    """Read a folder; a label is its number, and its line of output-items.txt the title."""
    reading = Reading.of(data)
    found = {split: _find(reading.path, name) for split, name in _NAMES.items()}
    places: dict[Part, tuple[Path, Path]] = {split: pair for split, pair in found.items() if pair is not None}
    if "train" not in places:
        raise DataError(
            "the folder has no training documents in PECOS's format",
            where=str(reading.path),
            expected="X.trn.txt and Y.trn.npz",
            todo="name the files so, or name another format with --dataset",
        )
    labels = read_numbered(reading, reading.path, (ITEMS,))
    return reading.dataset({part: _read(reading, *pair, labels) for part, pair in places.items()}, labels.table())


def recognise(data: DataSection) -> str | None:
    """Files X.trn.txt and Y.trn.npz in a folder."""
    pair = None if data.path is None or not Path(data.path).is_dir() else _find(Path(data.path), "trn")
    return None if pair is None else f"PECOS's and X-Transformer's format ({pair[0].name} and {pair[1].name})"


def write(dataset: Dataset, folder: Path, suffix: str) -> Sequence[str]:
    """Write X.trn.txt, Y.trn.npz, … and output-items.txt."""
    output = Output(dataset, folder, suffix)
    numbers = output.number_labels()
    output.write(ITEMS, output.titles())
    for split in output.splits:
        name = _NAMES[split]
        output.write(f"X.{name}.txt", (text for _, text, _ in output.rows(split)))
        save_npz(
            folder / f"Y.{name}.npz",
            _incidence([[numbers[label] for label in labels] for labels in output.column(split, "labels")], len(numbers)),
        )
    return output.remarks("document ids")


def _incidence(rows: Sequence[Sequence[int]], labels: int) -> csr_array:
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([number for row in rows for number in sorted(row)], dtype=np.int64)
    return csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=(len(rows), labels))


def _find(folder: Path, name: str) -> tuple[Path, Path] | None:
    texts, matrix = find_file(folder, f"X.{name}.txt"), folder / f"Y.{name}.npz"
    return None if texts is None or not matrix.is_file() else (texts, matrix)


def _read(reading: Reading, texts: Path, matrix: Path, labels: NumberedLabels) -> Iterator[Document]:
    gold = read_matrix(matrix)
    reading.files.append(matrix)
    if labels.ids is not None and len(labels.ids) != gold.shape[1]:
        raise _unlike(f"there are {len(labels.ids):,} names of labels, and {gold.shape[1]:,} labels", texts.with_name(ITEMS), matrix)
    count = 0
    for count, text in enumerate(reading.beside(texts), start=1):
        if count <= gold.shape[0]:
            numbers = gold.indices[gold.indptr[count - 1] : gold.indptr[count]]
            yield Document(count, text, [labels.name(int(number)) for number in numbers])
    if count != gold.shape[0]:
        raise _unlike(f"there are {count:,} texts, and labels of {gold.shape[0]:,} documents", texts, matrix)


def read_matrix(path: Path) -> csr_array:
    """A sparse matrix as scipy saves it, without its zeros; `DataError` if the file holds something else."""
    try:
        matrix = load_sparse(path)
    except ValueError as error:
        raise DataError(
            f"the matrix cannot be read: {error}",
            where=str(path),
            expected="a sparse matrix as scipy.sparse.save_npz writes it",
            todo="copy or make the file again",
        ) from error
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def _unlike(what: str, first: Path, second: Path) -> DataError:
    return DataError(what, where=f"{first}, {second}", expected="as many in both", todo="take the files of one distribution")
