"""Tf-idf vectors of length 1: their dot products are cosines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array, hstack

Floats = npt.NDArray[np.floating[Any]]


def inverse_frequency(documents: int, docs_with_term: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float64]:
    """ln((N + 1) / (n + 1)) of every term [V]: 0 for a term of every document, finite for one of none.

    Args:
        documents: documents N that the terms were counted in.
        docs_with_term: how many of them have the term, n [V].
    """
    weights: npt.NDArray[np.float64] = np.log((documents + 1) / (docs_with_term + 1))
    return weights


def weigh_counts(counts: csr_array, idf: Floats | None = None) -> csr_array:
    """(1 + ln tf) · idf of every stored count, csr [B, V] float32 (Salton and Buckley 1988, sublinear tf).

    Args:
        counts: how often each term is in each document, csr [B, V], > 0 where stored; logarithms are taken in its own type.
        idf: weight of each term [V]; without it, 1.
    """
    values = 1 + np.log(counts.data)
    if idf is not None:
        values = values * idf[counts.indices]
    return csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)


def unit_rows(matrix: csr_array) -> csr_array:
    """The matrix with rows scaled to length 1, float32; empty rows stay empty."""
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    scaled = diags_array(1.0 / np.where(lengths > 0, lengths, 1.0), dtype=np.float64) @ matrix
    return csr_array(scaled, dtype=np.float32)


def make_vectors(counts: csr_array, idf: Floats) -> csr_array:
    """Tf-idf vectors of documents, csr [B, V] float32 with rows of length 1.

    Args:
        counts: how often each term is in each document, csr [B, V].
        idf: weight of each term [V].
    """
    return unit_rows(weigh_counts(counts, idf))


def document_frequencies(counts: csr_array) -> npt.NDArray[np.int64]:
    """How many documents have each term [V].

    Args:
        counts: how often each term is in each document, csr [B, V] without stored zeros or repeats.
    """
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def join_views(views: Sequence[csr_array], weights: Sequence[float] | None = None) -> csr_array:
    """Several vectors of each document as one, csr [B, ΣV]: its dot products are the weighted mean of the views' cosines.

    Args:
        views: vectors of the same documents by different terms, csr [B, V_i] with rows of length 1.
        weights: of the views, > 0 (default: all alike).
    """
    given = np.ones(len(views)) if weights is None else np.asarray(weights, dtype=np.float64)
    factors = np.sqrt(given / given.sum())
    return csr_array(hstack([view * np.float32(factor) for view, factor in zip(views, factors, strict=True)], format="csr"))
