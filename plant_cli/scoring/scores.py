"""Sparse scores of labels for documents, and similarities of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import ssyrk
from scipy.sparse import csr_array, vstack

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
KEPT = 200  # labels that a top list holds
SHARE = 5  # no more than one training document in so many is left out at a time
PAIRS = 1 << 24  # (document, label) pairs held at a time


@dataclass(frozen=True, kw_only=True)
class Scores:
    """The best labels of documents by one scorer.

    Args:
        matrix: their scores, csr [B, L] float32; columns of a row ascend, a stored zero counts.
        floor: what a label that is not stored has at most [B]: the smallest stored score where a list was cut or goes below 0, else 0.
    """

    matrix: csr_array
    floor: Floats

    @classmethod
    def of(cls, matrix: csr_array, k: int = KEPT) -> Scores:
        """Top lists as scores: a list of k labels, or one that goes below 0, is taken to be cut.

        Args:
            matrix: csr [B, L], at most k labels of a document.
            k: labels that a list holds at most.
        """
        found = csr_array(matrix.astype(np.float32))
        found.sort_indices()
        sizes = np.diff(found.indptr)
        least = np.full(len(sizes), np.inf, dtype=np.float32)
        filled = np.flatnonzero(sizes)
        if len(filled):
            least[filled] = np.minimum.reduceat(found.data, found.indptr[filled])
        cut = (sizes > 0) & ((sizes >= k) | (least < 0))
        return cls(matrix=found, floor=np.where(cut, least, np.float32(0)).astype(np.float32))

    def look_up(self, rows: Ints, labels: Ints) -> Floats:
        """Scores of (document, label) pairs [P]; the floor of the document where none is stored."""
        at = find_pairs(self.matrix, rows, labels)
        stored: Floats = np.append(self.matrix.data, np.float32(0))[at]  # the last one is that of pairs not found, at −1
        return np.where(at >= 0, stored, self.floor[rows])

    def rank(self, k: int) -> Ints:
        """The k best labels of each document, best first, a smaller index first among equals [B, k]; −1 where a list ends."""
        ranked = np.full((self.matrix.shape[0], k), -1, dtype=np.int64)
        rows = np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr))
        order = np.lexsort((self.matrix.indices, -self.matrix.data, rows))
        position = np.arange(len(order)) - self.matrix.indptr[rows]
        listed = position < k
        ranked[rows[listed], position[listed]] = self.matrix.indices[order][listed]
        return ranked


def order_shares(scores: Scores, gold: csr_array) -> npt.NDArray[np.float64]:
    """The share of (label, other label) pairs of each document that scores put in the right order, ties counting half: 0.5 by chance.

    Labels that are not listed tie below those that are.

    Args:
        scores: of B documents.
        gold: their labels, csr [B, L] of ones.

    Returns:
        Of the documents with labels and without all of them [≤ B].
    """
    shares, labels = [], gold.shape[1]
    for row in range(gold.shape[0]):
        inside, own = (slice(*matrix.indptr[row : row + 2]) for matrix in (scores.matrix, gold))
        mine = np.isin(scores.matrix.indices[inside], gold.indices[own])
        count = own.stop - own.start
        others = labels - count
        if not count or not others:
            continue
        listed, wrong = scores.matrix.data[inside][mine], np.sort(scores.matrix.data[inside][~mine])
        below = others - len(wrong)  # not listed
        passed = below + (np.searchsorted(wrong, listed, "left") + np.searchsorted(wrong, listed, "right")) / 2
        shares.append((passed.sum() + (count - len(listed)) * below / 2) / (count * others))
    return np.array(shares, dtype=np.float64)


def no_scores(documents: int, labels: int) -> csr_array:
    """A matrix [B, L] without any score."""
    cells = (np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int32), np.zeros(documents + 1, dtype=np.int64))
    return csr_array(cells, shape=(documents, labels))


def find_pairs(matrix: csr_array, rows: Ints, columns: Ints) -> Ints:
    """Where (row, column) pairs [P] are stored in a csr matrix whose columns ascend; −1 for those that are not."""
    keys = list_pairs(matrix)
    wanted = rows * np.int64(matrix.shape[1]) + columns
    at = np.searchsorted(keys, wanted)
    found = np.append(keys, -1)[at] == wanted
    return np.where(found, at, -1)


def list_pairs(matrix: csr_array) -> Ints:
    """Row · width + column of every stored entry of a csr matrix, ascending where its columns do."""
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    keys: Ints = rows * matrix.shape[1] + matrix.indices
    return keys


def keep_best(values: Floats | csr_array, k: int = KEPT) -> Scores:
    """The k best labels of each document; a smaller index wins every tie.

    Args:
        values: scores [B, L], an array, or csr of the labels that have one.
        k: labels kept of each document.
    """
    labels, kept, floor = [], [], []
    for columns, scores in _dense_rows(values) if isinstance(values, np.ndarray) else _stored_rows(values):
        chosen = choose_best(scores, columns, k)
        labels.append(columns[chosen])
        kept.append(scores[chosen])
        least = scores[chosen].min(initial=np.inf)
        floor.append(least if len(chosen) and (len(chosen) < len(scores) or least < 0) else 0)
    ends = np.cumsum([0, *map(len, labels)])
    cells = (np.concatenate([*kept, []], dtype=np.float32), np.concatenate([*labels, []], dtype=np.int32, casting="unsafe"), ends)
    return Scores(matrix=csr_array(cells, shape=(len(ends) - 1, values.shape[1])), floor=np.array(floor, dtype=np.float32))


def choose_best(values: npt.NDArray[Any], labels: npt.NDArray[Any], k: int) -> Ints:
    """Positions of the k largest of some values, by rising label; a smaller label wins every tie.

    Args:
        values: to choose from [n].
        labels: whose they are [n], distinct.
        k: how many to choose.
    """
    if len(values) > k:
        least = -np.partition(-values, k - 1)[
            k - 1
        ]  # falling: many equal values at the low end, as of labels that no list has, cost nothing
        above, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
        chosen = np.concatenate([above, equal[np.argsort(labels[equal], kind="stable")[: k - len(above)]]])
    else:
        chosen = np.arange(len(values))
    found: Ints = chosen[np.argsort(labels[chosen])]
    return found


def join_scores(parts: Iterable[Scores]) -> Scores:
    """Scores of consecutive documents as one."""
    found = list(parts)
    matrix = csr_array(vstack([part.matrix for part in found], format="csr"))
    return Scores(matrix=matrix, floor=np.concatenate([part.floor for part in found]))


def score_blocks(documents: int, labels: int, score: Callable[[slice], Floats | csr_array], k: int = KEPT) -> Scores:
    """The k best labels of each of B documents, scored block after block so that few pairs are held at a time.

    Args:
        documents: B.
        labels: L.
        score: gives the scores [b, L] of the documents in a slice.
        k: labels kept of each document.
    """
    if not documents:
        return Scores(matrix=csr_array(np.zeros((0, labels), dtype=np.float32)), floor=np.zeros(0, dtype=np.float32))
    return join_scores(keep_best(score(block), k) for block in cut_rows(documents, labels))


def cut_rows(rows: int, width: int, pairs: int = PAIRS) -> Iterator[slice]:
    """Consecutive slices of rows, each of at most so many pairs and of at least one row."""
    step = max(1, pairs // max(1, width))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def cut_folds(documents: int, wanted: int) -> list[Ints]:
    """Places of documents that are left out together, so that no more than a fifth of train is missing at a time.

    Args:
        documents: of train, two or more.
        wanted: of them are to be left out once.
    """
    number = -(-wanted // max(1, documents // SHARE))
    fold = np.random.default_rng(0).permutation(wanted) % max(1, number)
    return [np.flatnonzero(fold == part) for part in range(number)]


def multiply_best(documents: csr_array, by_label: csr_array, k: int = KEPT) -> Scores:
    """The k labels of highest dot product above 0 for each document.

    Args:
        documents: vectors, csr [B, V].
        by_label: vectors of the labels, csr [L, V].
        k: labels kept of each document.
    """
    columns = csr_array(by_label.T)

    def multiply(block: slice) -> csr_array:
        products = csr_array(documents[block] @ columns)
        products.data = np.maximum(products.data, 0)
        products.eliminate_zeros()
        return products

    return score_blocks(documents.shape[0], by_label.shape[0], multiply, k)


def multiply_signed(documents: csr_array, by_label: csr_array, k: int = KEPT) -> Scores:
    """The k labels of highest dot product for each document, products below 0 too.

    Args:
        documents: vectors, csr [B, V].
        by_label: vectors of the labels, csr [L, V].
        k: labels kept of each document.
    """
    columns = csr_array(by_label.T)
    return score_blocks(documents.shape[0], by_label.shape[0], lambda block: (documents[block] @ columns).toarray().astype(np.float32), k)


def _dense_rows(values: Floats) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    columns = np.arange(values.shape[1])
    return ((columns, row) for row in values)


def _stored_rows(values: csr_array) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    ends = zip(values.indptr[:-1], values.indptr[1:], strict=True)
    return ((values.indices[first:last], values.data[first:last]) for first, last in ends)


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
