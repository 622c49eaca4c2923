"""How well a document names a label: the cosine with the label's title or other names. It needs no training document of the label."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.lexical.scores import KEPT, Scores, cut_rows, join_scores, keep_best

Ints = npt.NDArray[np.integer[Any]]


def score_passages(
    passages: csr_array, document_of: Ints, names: csr_array, label_of: Ints, shape: tuple[int, int], k: int = KEPT
) -> Scores:
    """The highest cosine of a passage of each document with a name of each label: long documents name a label in one place.

    Args:
        passages: tf-idf vectors, csr [S, G] with rows of length 1.
        document_of: document of each passage [S], rising.
        names: of labels, csr [M, G] likewise.
        label_of: label of each name [M].
        shape: documents B and labels L.
        k: labels kept of each document.
    """
    by_term, (documents, labels) = csr_array(names.T), shape
    passages_each = -(-len(document_of) // max(1, documents))
    parts = []
    for block in cut_rows(documents, max(labels, names.shape[0] * max(1, passages_each))):
        first, last = np.searchsorted(document_of, [block.start, block.stop])
        cosines = csr_array(passages[first:last] @ by_term)
        inside = (block.stop - block.start, labels)
        parts.append(keep_best(fold_highest(cosines, document_of[first:last] - block.start, label_of, inside), k))
    return join_scores(parts)


def fold_highest(values: csr_array, row_of: Ints, column_of: Ints, shape: tuple[int, int]) -> csr_array:
    """The highest of the values, ≥ 0, that fall together in each row and column, csr.

    Args:
        values: csr [S, M].
        row_of: row of the result for each row [S].
        column_of: column of the result for each column [M].
        shape: of the result.
    """
    rows = np.repeat(row_of, np.diff(values.indptr))
    highest = np.zeros(shape, dtype=values.dtype)
    np.maximum.at(highest, (rows, column_of[values.indices]), values.data)
    return csr_array(highest)
