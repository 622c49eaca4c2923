"""Dot products of documents with all training documents, as dense blocks.

A term of one document in twenty meets so many pairs that a sparse product spends most of its time on the few such terms. They are
multiplied as a dense matrix, by BLAS, and only the others as a sparse one. Terms that are in the same documents as often (most
n-grams of a rare word) have equal columns: they are multiplied once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import ssyrk
from scipy.sparse import csr_array

from plant_cli.lexical.scores import cut_rows

Floats = npt.NDArray[np.float32]
FREQUENT = 20  # a term of one document in so many, or more, is multiplied densely
DENSE = 1 << 28  # entries of the dense part, at most
SIDE = 1024  # rows of a block of a square matrix


class Similarity:
    """Multiplies documents with the training documents.

    Args:
        train: vectors of the training documents, csr [N, V] float32; rows of length 1 make the products cosines.

    Attributes:
        train: these vectors.
        column_of: which of the C distinct columns each term has [V].
    """

    def __init__(self, train: csr_array) -> None:
        self.train = train
        firsts, self.column_of = find_twins(train)
        self.columns = len(firsts)
        by_term = train.tocsc()[:, firsts]
        documents, frequency = train.shape[0], np.diff(by_term.indptr)
        order = np.argsort(-frequency, kind="stable")[: DENSE // max(1, documents)]
        self._dense = np.sort(order[frequency[order] * FREQUENT > documents])
        self._sparse = np.setdiff1d(np.arange(self.columns), self._dense)
        self._frequent: Floats = by_term[:, self._dense].toarray().T.astype(np.float32)
        self._rare = csr_array(by_term[:, self._sparse].T).astype(np.float32)

    def multiply(self, documents: csr_array) -> Floats:
        """Dot products [B, N] float32 of some documents, csr [B, V], with the training documents."""
        dense, rare = self._part(documents)
        products: Floats = dense @ self._frequent
        for block in cut_rows(*products.shape):
            products[block] += (rare[block] @ self._rare).toarray()
        return products

    def square(self) -> Floats:
        """Dot products [N, N] float32 of all pairs of training documents: the linear kernel, half of it computed."""
        sizes = np.sqrt(np.bincount(self.column_of, minlength=self.columns)).astype(np.float32)[:, None]
        documents = self._frequent.shape[1]
        products: Floats = np.zeros((documents, documents), dtype=np.float32, order="F")
        if products.size and len(self._dense):
            products = ssyrk(1.0, (self._frequent * sizes[self._dense]).T, c=products, overwrite_c=1, lower=1)
        rare = csr_array(self._rare.multiply(sizes[self._sparse])).astype(np.float32)
        by_document = csr_array(rare.T)
        for block in cut_rows(*products.shape):
            products[block, : block.stop] += (by_document[block] @ rare[:, : block.stop]).toarray()
        return mirror(products)

    def weigh(self, weights: Floats) -> Floats:
        """Sums of the training vectors with weights [N, R], each distinct column once: [C, R] float32."""
        sums: Floats = np.empty((self.columns, weights.shape[1]), dtype=np.float32)
        sums[self._dense] = self._frequent @ weights
        sums[self._sparse] = self._rare @ weights
        return sums

    def _part(self, documents: csr_array) -> tuple[Floats, csr_array]:
        """Documents by distinct columns: those multiplied densely, and the others."""
        cells = (documents.data, self.column_of[documents.indices], documents.indptr)
        by_term = csr_array(cells, shape=(documents.shape[0], self.columns)).tocsc()
        by_term.sum_duplicates()
        return by_term[:, self._dense].toarray().astype(np.float32), csr_array(by_term[:, self._sparse]).astype(np.float32)


def find_twins(matrix: csr_array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first of each set of equal columns [C], rising, and which set each column is of [V].

    Columns are told apart by two sums with random numbers, in double precision: equal columns have equal sums, and different ones
    agree in both with a probability of about 1e-30.

    Args:
        matrix: csr [N, V]; columns of a row ascend.
    """
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    marks = np.random.default_rng(0).random((2, matrix.shape[0]))
    sums = [np.bincount(matrix.indices, matrix.data * mark[rows], matrix.shape[1]) for mark in marks]
    _, firsts, sets = np.unique(sums[0] + 1j * sums[1], return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return firsts[order], place[sets]


def mirror(lower: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy the lower triangle of a square matrix onto its upper one, in place."""
    for block in cut_rows(len(lower), SIDE, SIDE * SIDE):
        square = np.tril(lower[block, block])
        lower[block, block] = square + np.tril(square, -1).T
        lower[block, block.stop :] = lower[block.stop :, block].T
    return lower
