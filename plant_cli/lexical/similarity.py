"""Dot products of documents with all training documents, as dense blocks.

A term of one document in twenty meets so many pairs that a sparse product spends most of its time on the few such terms. They are
multiplied as a dense matrix, by BLAS, and only the others as a sparse one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.lexical.scores import cut_rows
from plant_cli.lexical.vectors import count_documents

Floats = npt.NDArray[np.float32]
FREQUENT = 20  # a term of one document in so many, or more, is multiplied densely
DENSE = 1 << 28  # entries of the dense part, at most


class Similarity:
    """Multiplies documents with the training documents.

    Args:
        train: vectors of the training documents, csr [N, V] float32; rows of length 1 make the products cosines.
    """

    def __init__(self, train: csr_array) -> None:
        documents, self.terms = train.shape
        frequency = count_documents(train)
        order = np.argsort(-frequency, kind="stable")[: DENSE // max(1, documents)]
        self._dense = np.sort(order[frequency[order] * FREQUENT > documents])
        self._sparse = np.setdiff1d(np.arange(self.terms), self._dense)
        by_term = train.tocsc()
        self._frequent: Floats = by_term[:, self._dense].toarray().T.astype(np.float32)
        self._rare = csr_array(by_term[:, self._sparse].T).astype(np.float32)

    def multiply(self, documents: csr_array) -> Floats:
        """Dot products [B, N] float32 of some documents, csr [B, V], with the training documents."""
        by_term = documents.tocsc()
        products = by_term[:, self._dense].toarray().astype(np.float32) @ self._frequent
        rare = csr_array(by_term[:, self._sparse]).astype(np.float32)
        for block in cut_rows(*products.shape):
            products[block] += (rare[block] @ self._rare).toarray()
        return products

    def weigh(self, weights: Floats) -> Floats:
        """Sums of the training vectors with weights [N, R]: their transpose times the weights, [V, R] float32."""
        sums: Floats = np.empty((self.terms, weights.shape[1]), dtype=np.float32)
        sums[self._dense] = self._frequent @ weights
        sums[self._sparse] = self._rare @ weights
        return sums


def multiply_all(train: csr_array) -> Floats:
    """Dot products [N, N] float32 of all pairs of training documents, csr [N, V]: the linear kernel."""
    return Similarity(train).multiply(train)
