"""Engines of scorers that compare documents: similarities, nearest neighbours, and linear weights by ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import ssyrk
from scipy.linalg.lapack import spotrf, spotri
from scipy.sparse import csr_array, vstack

from plant_cli.api.options import FIXED_SEED
from plant_cli.data.blocks import top_k
from plant_cli.data.words import choose_columns
from plant_cli.scoring.lexical import cut_by_words
from plant_cli.scoring.sparse_scores import cut_rows, keep_best

Floats32 = npt.NDArray[np.float32]
AnyInts = npt.NDArray[np.integer[Any]]
NEIGHBOURS, NEIGHBOUR_POWER = 30, 2.0
DENSE_FROM = 20  # a term of one document in so many, or more, is multiplied densely
DENSE = 1 << 28  # entries of the dense part, at most
ROWS_PER_BLOCK = 1024  # rows of a block of a square matrix


class Similarity:
    """Multiplies documents with the training documents, csr [N, V] float32; rows of length 1 make the products cosines.

    `column_of` is which of the C distinct columns each term has [V].
    """

    def __init__(self, train: csr_array) -> None:
        self.train = train
        firsts, self.column_of = find_twins(train)
        self.columns = len(firsts)
        by_term = train.tocsc()[:, firsts]
        documents, frequency = train.shape[0], np.diff(by_term.indptr)
        order = np.argsort(-frequency, kind="stable")[: DENSE // max(1, documents)]
        self._dense = np.sort(order[frequency[order] * DENSE_FROM > documents])
        self._sparse = np.setdiff1d(np.arange(self.columns), self._dense)
        self._frequent: Floats32 = by_term[:, self._dense].toarray().T.astype(np.float32)
        self._rare = csr_array(by_term[:, self._sparse].T).astype(np.float32)

    def multiply(self, documents: csr_array) -> Floats32:
        """Dot products [B, N] float32 of some documents, csr [B, V], with the training documents."""
        dense, rare = self._part(documents)
        products: Floats32 = dense @ self._frequent
        for block in cut_rows(*products.shape):
            products[block] += (rare[block] @ self._rare).toarray()
        return products

    def square(self) -> Floats32:
        """Dot products [N, N] float32 of all pairs of training documents: the linear kernel, half of it computed."""
        sizes = np.sqrt(np.bincount(self.column_of, minlength=self.columns)).astype(np.float32)[:, None]
        documents = self._frequent.shape[1]
        products: Floats32 = np.zeros((documents, documents), dtype=np.float32, order="F")
        if products.size and len(self._dense):
            products = ssyrk(1.0, (self._frequent * sizes[self._dense]).T, c=products, overwrite_c=1, lower=1)
        rare = csr_array(self._rare.multiply(sizes[self._sparse])).astype(np.float32)
        by_document = csr_array(rare.T)
        for block in cut_rows(*products.shape):
            products[block, : block.stop] += (by_document[block] @ rare[:, : block.stop]).toarray()
        return mirror(products)

    def weigh(self, weights: Floats32) -> Floats32:
        """Sums of the training vectors with weights [N, R], each distinct column once: [C, R] float32."""
        sums: Floats32 = np.empty((self.columns, weights.shape[1]), dtype=np.float32)
        sums[self._dense] = self._frequent @ weights
        sums[self._sparse] = self._rare @ weights
        return sums

    def _part(self, documents: csr_array) -> tuple[Floats32, csr_array]:
        """Documents by distinct columns: those multiplied densely, and the others."""
        cells = (documents.data, self.column_of[documents.indices], documents.indptr)
        by_term = csr_array(cells, shape=(documents.shape[0], self.columns)).tocsc()
        by_term.sum_duplicates()
        return by_term[:, self._dense].toarray().astype(np.float32), csr_array(by_term[:, self._sparse]).astype(np.float32)


def find_twins(matrix: csr_array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The first of each set of equal columns [C], rising, and the set of each column [V] of a csr matrix whose columns ascend.

    Columns are told apart by two sums with random numbers, in double precision: equal columns have equal sums, and different ones
    agree in both with a probability of about 1e-30.
    """
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    marks = np.random.default_rng(FIXED_SEED).random((2, matrix.shape[0]))
    sums = [np.bincount(matrix.indices, matrix.data * mark[rows], matrix.shape[1]) for mark in marks]
    _, firsts, sets = np.unique(sums[0] + 1j * sums[1], return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return firsts[order], place[sets]


def mirror(lower: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy the lower triangle of a square matrix onto its upper one, in place."""
    for block in cut_rows(len(lower), ROWS_PER_BLOCK, ROWS_PER_BLOCK * ROWS_PER_BLOCK):
        square = np.tril(lower[block, block])
        lower[block, block] = square + np.tril(square, -1).T
        lower[block, block.stop :] = lower[block.stop :, block].T
    return lower


def score_neighbours(
    similarity: npt.NDArray[np.floating[Any]], gold: csr_array, neighbours: int = NEIGHBOURS, power: float = NEIGHBOUR_POWER
) -> csr_array:
    """Share of a document's nearest training documents that have each label, weighted by similarity^power, csr [B, L] float32 in [0, 1].

    Similarities to training documents are [B, N], those below 0 count as 0; gold labels are csr [N, L] of ones.
    """
    chosen = [top_k(row, neighbours) for row in similarity]
    weights = [np.maximum(row[near], 0.0) ** power for row, near in zip(similarity, chosen, strict=True)]
    shares = [row / (row.sum() or 1.0) for row in weights]
    cells = (
        np.concatenate([*shares, []]),
        np.concatenate([*chosen, []], casting="unsafe", dtype=np.int64),
        np.cumsum([0, *map(len, chosen)]),
    )
    scores = csr_array(csr_array(cells, shape=similarity.shape) @ gold, dtype=np.float32)
    scores.eliminate_zeros()
    return scores


def leave_out_neighbours(
    similarity: npt.NDArray[np.floating[Any]],
    rows: npt.NDArray[np.integer[Any]],
    gold: csr_array,
    neighbours: int = NEIGHBOURS,
    power: float = NEIGHBOUR_POWER,
) -> csr_array:
    """`score_neighbours` of training documents [b] among the others; exact, for vectors that do not change with a document left out."""
    others = similarity.copy()
    others[np.arange(len(rows)), rows] = 0.0
    return score_neighbours(others, gold, neighbours, power)


RIDGE_STRENGTH = 0.3
TERMS = 1000  # weights kept of a label
SYSTEM_ENTRIES = 1 << 26  # entries of systems of equations that are held at a time: 256 MB
COLUMNS_PER_SAMPLE = 8  # one column in so many is looked at first, to see how large the weights that are kept are


def invert_kernel(kernel: Floats32, strength: float = RIDGE_STRENGTH) -> Floats32:
    """M = (K + λ I)⁻¹ of a kernel, [N, N] float32, by a Cholesky factorisation in a copy of it.

    With vectors of length 1, λ > 0 is between 0.1 and 3. `ValueError` if the kernel is not positive semi-definite.
    """
    shifted = np.array(kernel, dtype=np.float32, order="F")
    np.fill_diagonal(shifted, shifted.diagonal() + np.float32(strength))
    factor, failed = spotrf(shifted, lower=1, overwrite_a=1)
    if failed:
        raise ValueError(f"the kernel with {strength} added to its diagonal is not positive definite")
    inverse: Floats32 = spotri(factor, lower=1, overwrite_c=1)[0]
    return mirror(inverse).T


def leave_out_ridge(inverse_rows: Floats32, rows: AnyInts, gold: csr_array) -> Floats32:
    """The scores that training documents `rows` [b] would have had without themselves [b, L]; exact.

    From their rows of M [b, N] and the labels of all training documents, csr [N, L] of ones.
    """
    smoothed: Floats32 = (csr_array(gold.T).astype(np.float32) @ inverse_rows.T).T
    scores = smoothed / -inverse_rows[np.arange(len(rows)), rows][:, None]
    gold_pairs = gold[rows].tocoo()
    scores[gold_pairs.row, gold_pairs.col] += 1
    return scores


def solve_labels(inverse: Floats32, gold: csr_array) -> tuple[Floats32, npt.NDArray[np.int64]]:
    """Coefficients of training documents, M Y, for each distinct set of documents that labels have [N, U], and the set of each label [L].

    A kernel of documents with the training documents [B, N] times these coefficients is their scores.
    """
    distinct, label_of = merge_twins(gold)
    return (csr_array(distinct.T).astype(np.float32) @ inverse).T, label_of


def weigh_terms(train: Similarity, inverse: Floats32, gold: csr_array, kept: int = TERMS, *, without: AnyInts | None = None) -> csr_array:
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
    """The terms of each distinct column: those of column c are in `terms` from ends[c] on."""

    terms: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @classmethod
    def of(cls, column_of: AnyInts) -> _Members:
        return cls(np.argsort(column_of, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(column_of))]))

    def list(self, columns: AnyInts) -> tuple[AnyInts, AnyInts]:
        """Terms of some columns, and the position of each one's column among these."""
        sizes = self.ends[columns + 1] - self.ends[columns]
        owners = np.repeat(np.arange(len(columns)), sizes)
        firsts = np.repeat(self.ends[columns] - (np.cumsum(sizes) - sizes), sizes)
        return self.terms[np.arange(len(owners)) + firsts], owners


def _keep_largest_columns(weights: Floats32, members: _Members, kept: int) -> csr_array:
    """The weights of largest magnitude of each label, csr [R, V], from those of distinct columns [C, R].

    The least of the largest of a sample of columns is no more than the least of the largest of all: what is below it need not be sorted.
    """
    sizes = np.abs(weights)
    sample = sizes[::COLUMNS_PER_SAMPLE]
    least = np.partition(sample, -kept, axis=0)[-kept] if len(sample) > kept else np.zeros(sizes.shape[1], dtype=np.float32)
    labels, columns = np.nonzero(((sizes >= least) & (sizes > 0)).T)
    ends = np.searchsorted(labels, np.arange(sizes.shape[1] + 1))
    terms, values = [], []
    for label, (first, last) in enumerate(pairwise(ends)):
        some = columns[first:last]
        some = some[top_k(sizes[some, label], kept, members.terms[members.ends[some]])]
        numbers, owners = members.list(some)
        of_terms = weights[some[owners], label]
        best = top_k(np.abs(of_terms), kept, numbers)
        terms.append(numbers[best])
        values.append(of_terms[best])
    cells = (np.concatenate([*values, []], dtype=np.float32), np.concatenate([*terms, []], dtype=np.int64, casting="unsafe"))
    return csr_array((*cells, np.cumsum([0, *map(len, terms)])), shape=(len(terms), len(members.terms)))


def keep_largest(weights: Floats32, kept: int) -> csr_array:
    """The weights [R, V] of largest magnitude of each row, so many kept, csr float32."""
    largest = keep_best(np.abs(weights), kept).matrix
    largest.data *= np.sign(weights[np.repeat(np.arange(len(weights)), np.diff(largest.indptr)), largest.indices])
    largest.eliminate_zeros()
    return largest


def merge_twins(gold: csr_array) -> tuple[csr_array, npt.NDArray[np.int64]]:
    """Distinct columns of gold labels [N, L], csr [N, U], and which of them each label has [L]: labels of equal documents score alike."""
    by_label = csr_array(gold.T)
    by_label.sort_indices()
    numbers: dict[bytes, int] = {}
    rows = zip(by_label.indptr[:-1], by_label.indptr[1:], strict=True)
    label_of = [numbers.setdefault(by_label.indices[first:last].tobytes(), len(numbers)) for first, last in rows]
    firsts = np.unique(label_of, return_index=True)[1] if label_of else np.zeros(0, dtype=np.int64)
    return csr_array(gold[:, firsts]), np.array(label_of, dtype=np.int64)


def regress_on_own_terms(
    train: csr_array, gold: csr_array, strength: float, terms: AnyInts, advance: Callable[[int], None] = lambda labels: None
) -> csr_array:
    """Ridge weights of labels on the terms that weigh most in their own documents, csr [L, V] float32.

    For a label with the terms F they are (X_Fᵀ X_F + λ m I)⁻¹ X_Fᵀ y: all documents count, those without the label with y = 0. m is the
    mean squared length of the label's documents in F, so that λ means the same for short documents and long ones. The products of terms
    are computed once for many labels and no [V, V] matrix is kept: time grows with the documents, not with documents times labels.

    Args:
        train: vectors X of the training documents, csr [N, V] float32, not negative, columns ascending.
        gold: their labels, csr [N, L] of ones.
        strength: λ > 0.
        terms: how many terms each label has at most, ≥ 1 [L].
        advance: told how many labels are done.
    """
    distinct, label_of = merge_twins(gold)
    firsts = np.unique(label_of, return_index=True)[1]
    own = _OwnTerms.choose(train, distinct, terms[firsts])
    used, columns = np.unique(own.terms, return_inverse=True)
    places = np.full(train.shape[1], -1, dtype=np.int64)
    places[used] = np.arange(len(used))
    documents = choose_columns(train, places, len(used))
    by_term, weights, order = csr_array(documents.T), np.zeros(len(own.terms), dtype=np.float32), np.argsort(-own.sizes, kind="stable")
    while len(order) and (width := int(own.sizes[order[0]])):
        similar = np.searchsorted(-own.sizes[order], -width / 2, side="right")  # few terms are not padded to many
        labels, order = np.split(order, [max(1, min(int(similar), SYSTEM_ENTRIES // width**2))])
        rows, at, cells = own.list(labels)
        padded, right = np.full((len(labels), width), len(used), dtype=np.int64), np.zeros((len(labels), width), dtype=np.float32)
        padded[rows, at], right[rows, at] = columns[cells], own.sums[cells]
        systems = _multiply_terms(documents, by_term, padded)
        diagonal = np.arange(width)
        systems[:, diagonal, diagonal] += np.where(padded < len(used), np.float32(strength) * own.mass[labels][:, None], np.float32(1))
        weights[cells] = np.linalg.solve(systems, right[:, :, None])[rows, at, 0]
        advance(len(labels))
    matrix = csr_array((weights, own.terms, np.concatenate([[0], np.cumsum(own.sizes)])), shape=(len(own.sizes), train.shape[1]))
    matrix.sort_indices()
    return csr_array(matrix[label_of])


@dataclass(frozen=True)
class _OwnTerms:
    """The terms of each of U labels, one label after the other."""

    terms: npt.NDArray[np.int64]
    sums: Floats32  # of the vectors of the label's documents, for each term
    sizes: npt.NDArray[np.int64]  # how many terms each label has [U]
    mass: Floats32  # mean squared length of a label's documents in its terms [U]

    @classmethod
    def choose(cls, train: csr_array, gold: csr_array, most: AnyInts) -> _OwnTerms:
        squared = csr_array((train.data**2, train.indices, train.indptr), shape=train.shape)
        terms, sums, sizes, mass = [], [], [], []
        for block in cut_by_words(train, gold):
            by_label = csr_array(gold[:, block].T).astype(np.float32)
            summed, squares = csr_array(by_label @ train), csr_array(by_label @ squared)
            summed.sort_indices()
            squares.sort_indices()
            for number, (first, last) in enumerate(pairwise(summed.indptr)):
                chosen = first + top_k(summed.data[first:last], int(most[block.start + number]), summed.indices[first:last])
                terms.append(summed.indices[chosen])
                sums.append(summed.data[chosen])
                sizes.append(len(chosen))
                mass.append(squares.data[chosen].sum() / max(1, by_label.indptr[number + 1] - by_label.indptr[number]))
        return cls(
            np.concatenate([*terms, []]).astype(np.int64),
            np.concatenate([*sums, []]).astype(np.float32),
            np.array(sizes, dtype=np.int64),
            np.array(mass, dtype=np.float32),
        )

    def list(self, labels: AnyInts) -> tuple[AnyInts, AnyInts, AnyInts]:
        """Of each term of some labels [P]: the position of its label among these, its position in the label, and its position here."""
        sizes = self.sizes[labels]
        rows = np.repeat(np.arange(len(labels)), sizes)
        at = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return rows, at, (np.cumsum(self.sizes) - self.sizes)[labels][rows] + at


def _multiply_terms(documents: csr_array, by_term: csr_array, wanted: AnyInts) -> Floats32:
    """Products X_Fᵀ X_F of the terms F of each of R labels [R, T, T], from these terms [R, T]; those beyond the last one are padding."""
    products = np.zeros((*wanted.shape, wanted.shape[1]), dtype=np.float32)
    flat, number = wanted.ravel(), by_term.shape[0]
    order = np.argsort(flat, kind="stable")[: np.count_nonzero(flat < number)]
    terms, starts = np.unique(flat[order], return_index=True)
    uses = np.split(order, starts[1:])
    row = np.zeros(number + 1, dtype=np.float32)
    for block in cut_rows(len(terms), number):
        of_terms = csr_array(by_term[terms[block]] @ documents)
        for use, (first, last) in zip(uses[block], pairwise(of_terms.indptr), strict=True):
            others = of_terms.indices[first:last]
            row[others] = of_terms.data[first:last]
            labels, at = np.divmod(use, wanted.shape[1])
            products[labels, at] = row[wanted[labels]]
            row[others] = 0
    return products
