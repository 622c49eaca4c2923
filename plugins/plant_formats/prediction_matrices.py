"""Predictions in matrices of documents and labels: what numpy and scipy write, numbers in text,
and the sparse text of the XML repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz

from plant_cli.api import DataError, PredictionFile, first_line, misread
from plant_formats.scored_labels import (
    NUMBER,
    DocumentPairs,
    LabelScore,
    PredictionFormat,
    read_dense,
)

_ARRAY, _ARCHIVE = b"\x93NUMPY", b"PK"  # the first bytes of such files
_POINT = NUMBER.replace("[.,]", "[.]")
_DENSE = re.compile(rf"\s*(?:{_POINT})(?:[\s,;]+(?:{_POINT}))+\s*")
_HEADER = re.compile(r"\s*\d+\s+\d+\s*")


def load_sparse(path: Path) -> csr_array:
    """A matrix that `scipy.sparse.save_npz` wrote.

    `ValueError` if the file holds something else, or is damaged; with what its reader says.
    """
    try:
        matrix = csr_array(load_npz(path))
        matrix.check_format(
            full_check=True
        )  # columns beyond the last one would be read outside of the memory
        return matrix
    # a damaged archive is refused by zipfile, zlib, numpy or scipy, each in its own way
    except Exception as error:
        raise ValueError(first_line(error)) from error


def _read_matrix(file: PredictionFile) -> DocumentPairs:
    try:
        matrix = load_sparse(file.path).tocoo()
    except ValueError as error:
        raise DataError(
            f"the file is no sparse matrix: {error}",
            where=str(file.path),
            expected="what scipy.sparse.save_npz writes",
            todo="write it again",
        ) from error
    file.require_rows(matrix.shape[0])
    rows: dict[str, list[LabelScore]] = {document: [] for document in file.documents}
    for row, column, score in zip(
        matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True
    ):
        rows[file.documents[row]].append((file.number(column, str(file.path)), float(score)))
    return rows


def _read_array(file: PredictionFile) -> DocumentPairs:
    """A dense matrix of scores, or of labels best first, as `numpy.save` writes it."""
    try:
        values = np.load(file.path, allow_pickle=False)
    except ValueError as error:
        raise DataError(
            f"the array cannot be read: {first_line(error)}",
            where=str(file.path),
            expected="an array of numbers, or of texts of fixed length",
            todo="write it again",
        ) from error
    if values.ndim != 2 or values.dtype.kind not in "fiubU":
        raise misread(
            f"the array has {values.ndim} dimensions and type {values.dtype}",
            str(file.path),
            "a matrix of documents and labels",
        )
    if values.dtype.kind != "U":
        return _read_numbers(values.astype(np.float64), file)
    file.require_rows(len(values))
    return {
        document: [(label, None) for label in row]
        for document, row in zip(file.documents, values.tolist(), strict=True)
    }


def _read_numbers(values: np.ndarray[Any, Any], file: PredictionFile) -> DocumentPairs:
    file.require_rows(len(values))
    labels = [file.number(column, str(file.path)) for column in range(values.shape[1])]
    return read_dense(values, labels, file.documents)


def _read_dense_text(file: PredictionFile) -> DocumentPairs:
    rows: list[list[float]] = []
    for number, line in enumerate(file.read_lines(file.path), start=1):
        cells = [cell for cell in re.split(r"[\s,;]+", line) if cell]
        sound = all(re.fullmatch(NUMBER, cell) for cell in cells)
        if not sound or (rows and len(cells) != len(rows[0])):
            raise misread(
                "this is no row of the matrix",
                f"{file.path}, line {number}",
                f"{len(rows[0])} numbers",
            )
        rows.append([float(cell) for cell in cells])
    return _read_numbers(np.array(rows, dtype=np.float64), file)


def _read_sparse_text(file: PredictionFile) -> DocumentPairs:
    """Lines of `number:score` below a header of two numbers."""
    lines = file.read_lines(file.path)[1:]
    file.require_rows(len(lines))
    rows = {}
    for number, (document, line) in enumerate(zip(file.documents, lines, strict=True), start=2):
        where = f"{file.path}, line {number}"
        rows[document] = [_part_pair(word, file, where) for word in line.split()]
    return rows


def _part_pair(word: str, file: PredictionFile, where: str) -> LabelScore:
    label, _, score = word.rpartition(":")
    try:
        return file.number(int(label), where), float(score)
    except ValueError as error:
        raise misread(
            f"this is no label and score: {word[:60]}", where, "label:score, separated by blanks"
        ) from error


MATRIX = PredictionFormat(
    "a sparse matrix (npz)",
    lambda file: file.head.startswith(_ARCHIVE) and not file.start,
    _read_matrix,
)
ARRAY = PredictionFormat("a matrix (npy)", lambda file: file.head.startswith(_ARRAY), _read_array)
SPARSE_TEXT = PredictionFormat(
    "XMLRepository sparse text",
    lambda file: _HEADER.fullmatch(file.first) is not None,
    _read_sparse_text,
)
DENSE_TEXT = PredictionFormat(
    "a matrix in text", lambda file: _DENSE.fullmatch(file.first) is not None, _read_dense_text
)
