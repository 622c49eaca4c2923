"""Engines of scorers: linear weights by ridge regression, and nearest neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import spotrf, spotri
from scipy.sparse import csr_array, vstack

from plant_cli.scoring.scores import Similarity, choose_best, cut_rows, keep_best, mirror

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


Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer[Any]]
STRENGTH = 0.3
TERMS = 1000  # weights kept of a label
SAMPLED = 8  # one column in so many is looked at first, to see how large the weights that are kept are


def invert_kernel(kernel: Floats, strength: float = STRENGTH) -> Floats:
    """M = (K + λ I)⁻¹, [N, N] float32, by a Cholesky factorisation in a copy of the kernel.

    Args:
        kernel: positive semi-definite, [N, N].
        strength: λ > 0; with vectors of length 1, between 0.1 and 3.

    Raises:
        ValueError: the kernel is not positive semi-definite.
    """
    shifted = np.array(kernel, dtype=np.float32, order="F")
    np.fill_diagonal(shifted, shifted.diagonal() + np.float32(strength))
    factor, failed = spotrf(shifted, lower=1, overwrite_a=1)
    if failed:
        raise ValueError(f"the kernel with {strength} added to its diagonal is not positive definite")
    inverse: Floats = spotri(factor, lower=1, overwrite_c=1)[0]
    return mirror(inverse).T


def leave_out_ridge(inverse_rows: Floats, rows: Ints, gold: csr_array) -> Floats:
    """The scores that training documents would have had without themselves [b, L]; exact.

    Args:
        inverse_rows: rows of M for them [b, N].
        rows: which they are [b].
        gold: labels of the N training documents, csr [N, L] of ones.
    """
    smoothed: Floats = (csr_array(gold.T).astype(np.float32) @ inverse_rows.T).T
    scores = smoothed / -inverse_rows[np.arange(len(rows)), rows][:, None]
    found = gold[rows].tocoo()
    scores[found.row, found.col] += 1
    return scores


def solve_labels(inverse: Floats, gold: csr_array) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Coefficients of training documents, M Y, for each distinct set of documents that labels have [N, U], and the set of each label [L].

    A kernel of documents with the training documents [B, N] times these coefficients is their scores.

    Args:
        inverse: M, [N, N].
        gold: labels of the training documents, csr [N, L] of ones.
    """
    distinct, label_of = merge_twins(gold)
    return (csr_array(distinct.T).astype(np.float32) @ inverse).T, label_of


def weigh_terms(train: Similarity, inverse: Floats, gold: csr_array, kept: int = TERMS, *, without: Ints | None = None) -> csr_array:
    """Weights of terms for labels, Xᵀ M Y, csr [L, V] float32; `multiply_best` scores with them what k(x) M Y gives.

    Args:
        train: of the vectors X whose products are the kernel.
        inverse: M, [N, N].
        gold: labels of the training documents, csr [N, L] of ones.
        kept: weights kept of a label, those of largest magnitude.
        without: training documents that are left out: the weights are exactly those of a regression on the others.
    """
    distinct, label_of = merge_twins(gold)
    by_label = csr_array(distinct.T).astype(np.float32)
    members = _Members.of(train.column_of)
    held_out = None if without is None else (inverse[without], inverse[np.ix_(without, without)])
    parts = []
    for block in cut_rows(by_label.shape[0], max(train.columns, len(inverse))):
        solved = (by_label[block] @ inverse).T
        if held_out is not None:
            solved -= held_out[0].T @ np.linalg.solve(held_out[1], solved[without])
        parts.append(_keep_largest_columns(train.weigh(solved), members, kept))
    return csr_array(csr_array(vstack(parts, format="csr"))[label_of])


@dataclass(frozen=True)
class _Members:
    """The terms of each distinct column: those of column c stand in `terms` from ends[c] on."""

    terms: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, column_of: Ints) -> _Members:
        return cls(np.argsort(column_of, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(column_of))]))

    def list(self, columns: Ints) -> tuple[Ints, Ints]:
        """Terms of some columns, and the place of each one's column among these."""
        sizes = self.ends[columns + 1] - self.ends[columns]
        places = np.repeat(np.arange(len(columns)), sizes)
        firsts = np.repeat(self.ends[columns] - (np.cumsum(sizes) - sizes), sizes)
        return self.terms[np.arange(len(places)) + firsts], places


def _keep_largest_columns(weights: Floats, members: _Members, kept: int) -> csr_array:
    """The weights of largest magnitude of each label, csr [R, V], from those of distinct columns [C, R].

    The least of the largest of a sample of columns is no more than the least of the largest of all: what is below it need not be sorted.
    """
    sizes = np.abs(weights)
    sample = sizes[::SAMPLED]
    least = np.partition(sample, -kept, axis=0)[-kept] if len(sample) > kept else np.zeros(sizes.shape[1], dtype=np.float32)
    labels, columns = np.nonzero(((sizes >= least) & (sizes > 0)).T)
    ends = np.searchsorted(labels, np.arange(sizes.shape[1] + 1))
    terms, values = [], []
    for label, (first, last) in enumerate(pairwise(ends)):
        some = columns[first:last]
        some = some[choose_best(sizes[some, label], members.terms[members.ends[some]], kept)]
        own, places = members.list(some)
        found = weights[some[places], label]
        best = choose_best(np.abs(found), own, kept)
        terms.append(own[best])
        values.append(found[best])
    cells = (np.concatenate([*values, []], dtype=np.float32), np.concatenate([*terms, []], dtype=np.int64, casting="unsafe"))
    return csr_array((*cells, np.cumsum([0, *map(len, terms)])), shape=(len(terms), len(members.terms)))


def keep_largest(weights: Floats, kept: int) -> csr_array:
    """The weights of largest magnitude of each row, csr [R, V] float32.

    Args:
        weights: [R, V].
        kept: weights of a row.
    """
    found = keep_best(np.abs(weights), kept).matrix
    found.data *= np.sign(weights[np.repeat(np.arange(len(weights)), np.diff(found.indptr)), found.indices])
    found.eliminate_zeros()
    return found


def merge_twins(gold: csr_array) -> tuple[csr_array, npt.NDArray[np.int64]]:
    """Distinct columns of gold labels, csr [N, U], and which of them each label has [L]: labels of the same documents are scored alike.

    Args:
        gold: csr [N, L] of ones.
    """
    by_label = csr_array(gold.T)
    by_label.sort_indices()
    numbers: dict[bytes, int] = {}
    rows = zip(by_label.indptr[:-1], by_label.indptr[1:], strict=True)
    label_of = [numbers.setdefault(by_label.indices[first:last].tobytes(), len(numbers)) for first, last in rows]
    firsts = np.unique(label_of, return_index=True)[1] if label_of else np.zeros(0, dtype=np.int64)
    return csr_array(gold[:, firsts]), np.array(label_of, dtype=np.int64)


def solve_ridge(documents: csr_array, right: Floats, strength: float = STRENGTH, tolerance: float = 1e-4, steps: int = 500) -> Floats:
    """(X Xᵀ + λ I)⁻¹ R by conjugate gradients, [N, R] float32, for documents too many for a kernel [N, N].

    With gold labels as R, Xᵀ of the result is the weights of terms. With columns of the identity it is rows of M, for exact
    leave-one-out scores of some documents. Memory is 4 matrices of the size of R.

    Args:
        documents: X, csr [N, V] float32.
        right: R, [N, R].
        strength: λ > 0.
        tolerance: of the residual, as a share of the length of each column of R.
        steps: at most.
    """
    by_term, found, residual = csr_array(documents.T), np.zeros_like(right, dtype=np.float32), np.array(right, dtype=np.float32)
    direction, squares = residual.copy(), np.einsum("ij,ij->j", residual, residual)
    wanted = squares * tolerance**2
    for _ in range(steps):
        if np.all(squares <= wanted):
            break
        image = documents @ (by_term @ direction) + np.float32(strength) * direction
        step = squares / np.maximum(np.einsum("ij,ij->j", direction, image), np.finfo(np.float32).tiny)
        found += step * direction
        residual -= step * image
        former, squares = squares, np.einsum("ij,ij->j", residual, residual)
        direction *= squares / np.maximum(former, np.finfo(np.float32).tiny)
        direction += residual
    return found
