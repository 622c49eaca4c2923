"""The nearest of very many training documents: their rarest terms name candidates, which are then
compared exactly.

A term has a list of the training documents that have it, those of highest weight if there are more
than `POSTINGS`. The terms of a document are looked up from the one with the shortest list on, as
long as the lists hold no more than `POSTINGS` documents together (the first one always). The
documents of highest product by these terms are the candidates, and the cosine by all terms decides.
Where all lists fit, the nearest are exact. Time and memory for a document do not grow with the
training documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api.scorers import short_ends
from plant_cli.kit import top_k
from plant_scorers.sparse_products import TermLists, cut_cells, join_lists

Floats32 = npt.NDArray[np.float32]
POSTINGS = 20_000  # training documents looked at for a document
CANDIDATES = 300  # of these that are compared by all terms


class NearestDocuments:
    """Finds the nearest of N training documents, csr [N, V] float32 without negative values;
    rows of length 1 make products cosines.
    """

    def __init__(
        self, train: csr_array, postings: int = POSTINGS, candidates: int = CANDIDATES
    ) -> None:
        self._train, self._postings, self._candidates = train, postings, candidates
        by_term = csr_array(train.T)
        by_term.sort_indices()
        sizes = np.diff(by_term.indptr)
        kept = np.ones(by_term.nnz, dtype=np.bool_)
        for term in np.flatnonzero(sizes > postings).tolist():
            inside = slice(*by_term.indptr[term : term + 2])
            kept[inside] = False
            kept[inside.start + top_k(by_term.data[inside], postings)] = True
        self._sizes = np.minimum(sizes, postings)
        by_term.data = by_term.data[kept]  # one after the other: memory holds fewer copies
        by_term.indices = by_term.indices[kept]
        by_term.indptr = short_ends(np.concatenate([[0], np.cumsum(self._sizes)]))  # type: ignore[assignment]
        self._lists = TermLists(by_term)

    def find(
        self, documents: csr_array, count: int, without: npt.NDArray[np.integer[Any]] | None = None
    ) -> csr_array:
        """Cosines of documents, csr [B, V], with the `count` nearest of each, csr [B, N] float32,
        columns ascending.

        A smaller index wins every tie. `without` is a training document of each that does not count
        [B], such as itself.
        """
        rare, found = self._choose_terms(documents), []
        query = np.zeros(documents.shape[1], dtype=np.float32)
        for row, (few, terms) in enumerate(zip(cut_cells(rare), cut_cells(documents), strict=True)):
            sums = self._lists.add_up(rare.indices[few], rare.data[few])
            if without is not None:
                sums[without[row]] = 0
            near = top_k(sums, self._candidates)
            near = near[sums[near] > 0]
            query[documents.indices[terms]] = documents.data[terms]
            values = self._train[near] @ query
            query[documents.indices[terms]] = 0
            best = top_k(values, count)
            found.append((near[best], values[best]))
        return join_lists(found, self._train.shape[0])

    def _choose_terms(self, documents: csr_array) -> csr_array:
        """The same documents by their terms of the shortest lists alone, csr [B, V]."""
        rows, sizes = (
            np.repeat(np.arange(documents.shape[0]), np.diff(documents.indptr)),
            self._sizes[documents.indices],
        )
        order = np.lexsort((sizes, rows))
        total = np.cumsum(sizes[order])
        before = np.concatenate([[0], total])[documents.indptr[:-1]]
        kept = np.zeros(len(order), dtype=np.bool_)
        kept[order] = total - before[rows] <= self._postings
        ends = short_ends(np.concatenate([[0], np.cumsum(kept)])[documents.indptr])
        return csr_array(
            (documents.data[kept], documents.indices[kept], ends), shape=documents.shape
        )


def share_labels(cosines: csr_array, gold: csr_array, power: float) -> csr_array:
    """Share of each document's nearest training documents that have each label, weighted by
    cosine^power, csr [B, L] float32 in [0, 1].

    Cosines, csr [B, N], below 0 count as 0; gold labels are csr [N, L] of ones.
    """
    weights = np.maximum(cosines.data, 0.0) ** power
    rows = np.repeat(np.arange(cosines.shape[0]), np.diff(cosines.indptr))
    sums = np.bincount(rows, weights, cosines.shape[0])
    shares = weights / np.where(sums > 0, sums, 1.0)[rows]
    scores = csr_array(
        csr_array((shares, cosines.indices, cosines.indptr), shape=cosines.shape) @ gold,
        dtype=np.float32,
    )
    scores.eliminate_zeros()
    scores.sort_indices()
    return scores
