"""Labels of the nearest training documents, each with the sum of its documents' similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.lexical.scores import choose_best

NEIGHBOURS, POWER = 30, 2.0


def score_neighbours(
    similarity: npt.NDArray[np.floating[Any]], gold: csr_array, neighbours: int = NEIGHBOURS, power: float = POWER
) -> csr_array:
    """Share of a document's nearest training documents that have each label, weighted by similarity, csr [B, L] float32 in [0, 1].

    Args:
        similarity: of documents to training documents [B, N]; below 0 counts as 0.
        gold: labels of the training documents, csr [N, L] of ones.
        neighbours: training documents that count, those of highest similarity.
        power: of the similarity in the weight: the higher, the more the nearest count.
    """
    columns = np.arange(similarity.shape[1])
    chosen = [choose_best(row, columns, neighbours) for row in similarity]
    weights = [np.maximum(row[near], 0.0) ** power for row, near in zip(similarity, chosen, strict=True)]
    shares = [row / (row.sum() or 1.0) for row in weights]
    cells = (
        np.concatenate([*shares, []]),
        np.concatenate([*chosen, []], casting="unsafe", dtype=np.int64),
        np.cumsum([0, *map(len, chosen)]),
    )
    found = csr_array(csr_array(cells, shape=similarity.shape) @ gold, dtype=np.float32)
    found.eliminate_zeros()
    return found


def leave_out_neighbours(
    similarity: npt.NDArray[np.floating[Any]],
    rows: npt.NDArray[np.integer[Any]],
    gold: csr_array,
    neighbours: int = NEIGHBOURS,
    power: float = POWER,
) -> csr_array:
    """`score_neighbours` of training documents among the others; exact, for vectors that do not change with a document left out.

    Args:
        similarity: of some training documents to all [b, N].
        rows: which they are [b].
        gold: labels of the training documents, csr [N, L] of ones.
        neighbours: see `score_neighbours`.
        power: see `score_neighbours`.
    """
    others = similarity.copy()
    others[np.arange(len(rows)), rows] = 0.0
    return score_neighbours(others, gold, neighbours, power)
