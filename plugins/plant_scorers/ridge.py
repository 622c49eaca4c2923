"""Engines of scorers that compare documents: similarities, nearest neighbours, and linear
weights by ridge regression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api.scorers import short_ends
from plant_cli.kit import (
    choose_columns,
    count_workers,
    cut_blocks,
    cut_rows,
    default_threads,
    keep_best,
    map_blocks,
    stop_if_asked,
    top_k,
    work_ahead,
)
from plant_scorers.lexical import cut_by_words
from plant_scorers.sparse_products import TermLists, multiply_out

Floats32 = npt.NDArray[np.float32]
AnyInts = npt.NDArray[np.integer[Any]]
DENSE_FROM = 20  # a term of one document in so many, or more, is multiplied densely
DENSE = 1 << 28  # entries of the dense part, at most
BY_TERM_FROM = 8  # documents from which it pays to have the training documents by term


class Similarity:
    """Multiplies documents with the training documents, csr [N, V] float32; rows of length 1
    make the products cosines.
    """

    def __init__(self, train: csr_array) -> None:
        self.train = train

    def multiply(self, documents: csr_array) -> Floats32:
        """Dot products [B, N] float32 of some documents, csr [B, V], with the training
        documents.
        """
        if documents.shape[0] < BY_TERM_FROM:
            return np.ascontiguousarray((self.train @ documents.T.toarray()).T, dtype=np.float32)
        frequent, place, rare = self._by_term
        products: Floats32 = (
            documents[:, np.flatnonzero(place < 0)].toarray().astype(np.float32, copy=False)
            @ frequent
        )
        products += multiply_out(choose_columns(documents, place, rare.shape[0]), rare)
        return products

    @cached_property
    def _by_term(self) -> tuple[Floats32, npt.NDArray[np.int64], TermLists]:
        """Frequent terms, densely [D, N]; the place of each term among the others, −1 for a
        frequent one [V]; the others [R, N].
        """
        by_term = csr_array(self.train.T)
        documents, frequency = self.train.shape[0], np.diff(by_term.indptr)
        order = np.argsort(-frequency, kind="stable")[: DENSE // max(1, documents)]
        dense = np.zeros(len(frequency), dtype=np.bool_)
        dense[order] = frequency[order] * DENSE_FROM > documents
        place = np.where(dense, -1, np.cumsum(~dense) - 1)
        return (
            by_term[np.flatnonzero(dense)].toarray(),
            place,
            TermLists(
                csr_array(by_term[np.flatnonzero(~dense)]), np.arange(np.count_nonzero(~dense))
            ),
        )


def score_neighbours(
    similarity: npt.NDArray[np.floating[Any]], gold: csr_array, neighbours: int, power: float
) -> csr_array:
    """Share of a document's nearest training documents that have each label, weighted by
    similarity^power, csr [B, L] float32 in [0, 1].

    Similarities to training documents are [B, N], those below 0 count as 0; gold labels are csr [N,
    L] of ones.
    """
    chosen = [top_k(row, neighbours) for row in similarity]
    weights = [
        np.maximum(row[near], 0.0) ** power for row, near in zip(similarity, chosen, strict=True)
    ]
    shares = [row / (row.sum() or 1.0) for row in weights]
    cells = (
        np.concatenate([*shares, []]),
        np.concatenate([*chosen, []], casting="unsafe", dtype=np.int32),
        short_ends(np.cumsum([0, *map(len, chosen)])),
    )
    scores = csr_array(csr_array(cells, shape=similarity.shape) @ gold, dtype=np.float32)
    scores.eliminate_zeros()
    return scores


def leave_out_neighbours(
    similarity: npt.NDArray[np.floating[Any]],
    rows: npt.NDArray[np.integer[Any]],
    gold: csr_array,
    neighbours: int,
    power: float,
) -> csr_array:
    """`score_neighbours` of training documents [b] among the others; exact, for vectors that do
    not change with a document left out.
    """
    others = similarity.copy()
    others[np.arange(len(rows)), rows] = 0.0
    return score_neighbours(others, gold, neighbours, power)


SYSTEM_ENTRIES = 1 << 25  # entries of systems of equations that are held at a time: 128 MB
DENSE_SPEED = 400  # dense products that take as long as one that is looked up
DENSE_PRODUCTS = 1 << 13  # terms that are multiplied densely, at most: 256 MB
# documents that have fewer than one in so many of the frequent terms are multiplied as sparse rows
FEW_TERMS = 20
FREQUENT = 200  # documents from which on a label gets more terms after a first solution
OTHERS = 50_000  # documents that a label is told apart from when more terms are chosen
# terms of documents that are looked at in the time in which a document is written out and erased
TERMS_PER_VISIT = 2_000
SCORES_HIGH = 0.1  # score from which on a document without the label counts there


def keep_largest(weights: Floats32, kept: int) -> csr_array:
    """The weights [R, V] of largest magnitude of each row, so many kept, csr float32."""
    largest = keep_best(np.abs(weights), kept).matrix
    largest.data *= np.sign(
        weights[np.repeat(np.arange(len(weights)), np.diff(largest.indptr)), largest.indices]
    )
    largest.eliminate_zeros()
    return largest


def merge_twins(gold: csr_array) -> tuple[csr_array, npt.NDArray[np.int64]]:
    """Distinct columns of gold labels [N, L], csr [N, U], and which of them each label has [L]:
    labels of equal documents score alike.
    """
    by_label = csr_array(gold.T)
    by_label.sort_indices()
    numbers: dict[bytes, int] = {}
    rows = zip(by_label.indptr[:-1], by_label.indptr[1:], strict=True)
    label_of = [
        numbers.setdefault(by_label.indices[first:last].tobytes(), len(numbers))
        for first, last in rows
    ]
    firsts = np.unique(label_of, return_index=True)[1] if label_of else np.zeros(0, dtype=np.int64)
    return csr_array(gold[:, firsts]), np.array(label_of, dtype=np.int64)


def regress_on_own_terms(
    train: csr_array,
    gold: csr_array,
    strength: float,
    terms: AnyInts,
    advance: Callable[[float], None] = lambda labels: None,
) -> csr_array:
    """Ridge weights of labels on the terms that weigh most in their own documents, csr [L, V]
    float32.

    For a label with the terms F they are (X_Fᵀ X_F + λ m I)⁻¹ X_Fᵀ y: all documents count, those
    without the label with y = 0. m is the mean squared length of the label's documents in F, so
    that λ means the same for short documents and long ones. A label of `FREQUENT` documents or more
    is solved twice, the second time with as many terms again: those by which the first solution
    would gain most.

    Args:
        train: vectors X of the training documents, csr [N, V] float32, not negative, columns
            ascending.
        gold: their labels, csr [N, L] of ones.
        strength: λ > 0.
        terms: how many terms each label has at most, ≥ 1 [L]; twice as many, where it is solved
            twice.
        advance: told how many labels are done; one with more terms counts as several.
    """
    distinct, label_of = merge_twins(gold)
    firsts = np.unique(label_of, return_index=True)[1]
    if (workers := count_workers()) == 1:
        return csr_array(
            _solve(
                train,
                strength,
                (distinct, terms[firsts]),
                lambda share: advance(share * len(label_of)),
            )[label_of]
        )
    blocks = [
        np.arange(number, len(firsts), workers) for number in range(workers)
    ]  # each has as many frequent labels as the others
    parts = []
    for part in map_blocks(
        partial(_solve, train, strength),
        [(csr_array(distinct[:, block]), terms[firsts[block]]) for block in blocks],
    ):
        parts.append(part)
        advance(len(label_of) / workers)
    place = np.argsort(np.concatenate(blocks))
    return csr_array(csr_array(vstack(parts, format="csr"))[place[label_of]])


def _solve(
    train: csr_array,
    strength: float,
    labels: tuple[csr_array, AnyInts],
    advance: Callable[[float], None] = lambda share: None,
) -> csr_array:
    """Weights of some labels, csr [U, V], by their documents, csr [N, U], and how many terms
    each has at most [U].
    """
    gold, terms = labels
    frequent = np.flatnonzero(np.bincount(gold.indices, minlength=gold.shape[1]) >= FREQUENT)
    work = terms.astype(np.float64) ** 2
    first = work.sum() / max(1.0, work.sum() + 4 * work[frequent].sum())
    weights = _OwnTerms.choose(train, gold, terms).solve(
        train, strength, lambda share: advance(share * first)
    )
    if not len(frequent):
        return weights
    more = _OwnTerms.add(train, csr_array(gold[:, frequent]), csr_array(weights[frequent]))
    again = more.solve(train, strength, lambda share: advance(share * (1 - first)))
    place = np.arange(gold.shape[1])
    place[frequent] = len(place) + np.arange(len(frequent))
    return csr_array(csr_array(vstack([weights, again], format="csr"))[place])


@dataclass(frozen=True)
class _OwnTerms:
    """The terms of each of U labels, one label after the other."""

    terms: npt.NDArray[np.int64]
    sums: Floats32  # of the vectors of the label's documents, for each term
    sizes: npt.NDArray[np.int64]  # how many terms each label has [U]
    mass: Floats32  # mean squared length of a label's documents in its terms [U]

    @classmethod
    def join(cls, parts: Sequence[tuple[AnyInts, npt.NDArray[Any], float]]) -> _OwnTerms:
        """From each label's terms, the sums of these, and its mass."""
        return cls(
            np.concatenate([*(terms for terms, _, _ in parts), []]).astype(np.int64),
            np.concatenate([*(sums for _, sums, _ in parts), []]).astype(np.float32),
            np.array([len(terms) for terms, _, _ in parts], dtype=np.int64),
            np.array([mass for _, _, mass in parts], dtype=np.float32),
        )

    @classmethod
    def choose(cls, train: csr_array, gold: csr_array, most: AnyInts) -> _OwnTerms:
        """Those that weigh most in the label's documents."""
        parts = []
        for block in cut_by_words(train, gold):
            of_block = csr_array(gold[:, block])
            having = np.flatnonzero(np.diff(of_block.indptr))
            by_label, own = (
                csr_array(of_block[having].T).astype(np.complex64),
                csr_array(train[having]),
            )
            summed = csr_array(
                by_label
                @ csr_array((own.data + 1j * own.data**2, own.indices, own.indptr), shape=own.shape)
            )  # two sums at once
            for number, (first, last) in enumerate(pairwise(summed.indptr)):
                stop_if_asked()
                sums, terms = summed.data[first:last], summed.indices[first:last]
                chosen = top_k(sums.real, int(most[block.start + number]), terms)
                documents = max(1, by_label.indptr[number + 1] - by_label.indptr[number])
                parts.append(
                    (terms[chosen], sums.real[chosen], float(sums.imag[chosen].sum()) / documents)
                )
        return cls.join(parts)

    @classmethod
    def add(cls, train: csr_array, gold: csr_array, weights: csr_array) -> _OwnTerms:
        """Those of the weights and as many again: terms of the label's documents that score
        low, and of others that score high.
        """
        by_label, step, parts = csr_array(gold.T), -(-train.shape[0] // OTHERS), []
        others, gold_of_others = csr_array(train[::step]), csr_array(gold[::step])
        for block in cut_rows(by_label.shape[0], others.shape[0]):
            high = (others @ csr_array(weights[block].T)).toarray()
            high[(high < SCORES_HIGH) | (gold_of_others[:, block].toarray() > 0)] = 0
            too_high = csr_array(csr_array(high.T) @ others)
            for number in range(block.start, block.stop):
                stop_if_asked()
                own = csr_array(
                    train[by_label.indices[by_label.indptr[number] : by_label.indptr[number + 1]]]
                )
                known = weights[[number]].toarray()[0]
                gain = np.abs(
                    (1 - own @ known) @ own - step * too_high[[number - block.start]].toarray()[0]
                )
                chosen = weights.indices[weights.indptr[number] : weights.indptr[number + 1]]
                gain[chosen] = 0
                more = top_k(gain, len(chosen))
                chosen = np.sort(np.concatenate([chosen, more[gain[more] > 0]]))
                squares = np.bincount(own.indices, own.data**2, len(gain))
                parts.append(
                    (
                        chosen,
                        np.bincount(own.indices, own.data, len(gain))[chosen],
                        squares[chosen].sum() / own.shape[0],
                    )
                )
        return cls.join(parts)

    def solve(
        self,
        train: csr_array,
        strength: float,
        advance: Callable[[float], None] = lambda share: None,
    ) -> csr_array:
        """Ridge weights on these terms, csr [U, V]; `advance` is told shares of the work."""
        used = np.flatnonzero(np.bincount(self.terms, minlength=train.shape[1]))
        places = np.full(train.shape[1], -1, dtype=np.int64)
        places[used] = np.arange(len(used))
        columns = places[self.terms]
        products = _TermProducts(
            choose_columns(train, places, len(used)),
            np.bincount(columns, np.repeat(self.sizes, self.sizes)),
        )
        weights, order, work = (
            np.zeros(len(self.terms), dtype=np.float32),
            np.argsort(-self.sizes, kind="stable"),
            self.sizes**2,
        )
        while len(order) and (width := int(self.sizes[order[0]])):
            similar = np.searchsorted(
                -self.sizes[order], -width / 2, side="right"
            )  # few terms are not padded to many
            labels, order = np.split(order, [max(1, min(int(similar), SYSTEM_ENTRIES // width**2))])
            rows, at, cells = self._list(labels)
            padded, right = (
                np.full((len(labels), width), len(used), dtype=np.int64),
                np.zeros((len(labels), width), dtype=np.float32),
            )
            padded[rows, at], right[rows, at] = columns[cells], self.sums[cells]
            systems, diagonal = products.multiply(padded), np.arange(width)
            systems[:, diagonal, diagonal] += np.where(
                padded < len(used), np.float32(strength) * self.mass[labels][:, None], np.float32(1)
            )
            weights[cells] = np.linalg.solve(systems, right[:, :, None])[rows, at, 0]
            advance(float(work[labels].sum() / work.sum()))
        matrix = csr_array(
            (weights, self.terms, np.concatenate([[0], np.cumsum(self.sizes)])),
            shape=(len(self.sizes), train.shape[1]),
        )
        matrix.sort_indices()
        return matrix

    def _list(self, labels: AnyInts) -> tuple[AnyInts, AnyInts, AnyInts]:
        """Of each term of some labels [P]: the position of its label among these, its position
        in the label, and its position here.
        """
        sizes = self.sizes[labels]
        rows = np.repeat(np.arange(len(labels)), sizes)
        at = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return rows, at, (np.cumsum(self.sizes) - self.sizes)[labels][rows] + at


class _TermProducts:
    """Products X_Fᵀ X_F of the terms of labels: of terms that are `wanted` often, computed at
    once, of others for each label.
    """

    def __init__(self, documents: csr_array, wanted: npt.NDArray[Any]) -> None:
        self._documents = documents
        number, terms = documents.shape
        self._sizes = np.diff(documents.indptr)
        frequency = np.bincount(documents.indices, minlength=terms)
        work = frequency * wanted
        order = np.argsort(-work, kind="stable")[:DENSE_PRODUCTS]
        dense = np.sort(order[work[order] * DENSE_SPEED > number * np.arange(len(order))])
        self._place = np.full(
            terms + 1, -1, dtype=np.int64
        )  # of a term among those that are multiplied densely; −1: it is not
        self._place[dense] = np.arange(len(dense))
        self._by_term = csr_array(documents.T)
        self._products: Floats32 = np.zeros((len(dense), len(dense)), dtype=np.float32)
        each = -(-int(frequency[dense].sum()) // max(1, number))  # of these terms in a document
        few = FEW_TERMS * each < len(dense)
        for block in (
            cut_rows(number, each, SYSTEM_ENTRIES) if few else cut_rows(number, len(dense))
        ):
            stop_if_asked()
            part = choose_columns(documents[block], self._place[:-1], len(dense))
            if few:
                self._products += csr_array(part.T @ part).toarray()
            else:
                cells: Floats32 = part.toarray()
                self._products += cells.T @ cells

    def multiply(self, wanted: AnyInts) -> Floats32:
        """Products of the terms of each of R labels [R, T, T], from these [R, T]; what is
        beyond the last term has products 0.
        """
        number, width = wanted.shape
        products: Floats32 = np.zeros((number, width, width), dtype=np.float32)
        rows, at = np.nonzero((self._place[wanted] < 0) & (wanted < len(self._place) - 1))
        cells = (
            np.ones(len(rows), dtype=np.float32),
            (rows.astype(np.int32), wanted[rows, at].astype(np.int32)),
        )
        rare = csr_array(cells, shape=(number, len(self._place) - 1))
        met = csr_array(
            rare @ self._by_term
            # documents with such terms of each label: they alone have a part in the products of
            # these
        )
        many = []  # labels with too many documents to write them out
        for first, last in pairwise(cut_blocks(np.diff(met.indptr), SYSTEM_ENTRIES // width)):
            stop_if_asked()
            some = csr_array(met[first:last])
            if some.nnz * width > SYSTEM_ENTRIES:
                many.append(first)
                continue
            found = self._fetch(some, wanted[first:last])
            for label, (start, end) in enumerate(pairwise(some.indptr), first):
                products[label] = found[start:end].T @ found[start:end]
        for _ in work_ahead(
            lambda label: self._multiply_rare(wanted[label], products[label]),
            many,
            default_threads(),
        ):
            stop_if_asked()
        for terms, of_label in zip(self._place[wanted], products, strict=True):
            dense = np.flatnonzero(terms >= 0)
            of_label[np.ix_(dense, dense)] = self._products[np.ix_(terms[dense], terms[dense])]
        return products

    def _multiply_rare(self, wanted: AnyInts, products: Floats32) -> None:
        """Write the products of rare terms with all terms of a label [T] into its products [T,
        T].
        """
        known = np.flatnonzero(wanted < len(self._place) - 1)
        rare = known[self._place[wanted[known]] < 0]
        found = csr_array(
            self._by_term[wanted[known]] @ csr_array(self._by_term[wanted[rare]]).T
        ).toarray()
        products[np.ix_(known, rare)], products[np.ix_(rare, known)] = found, found.T

    def _fetch(self, met: csr_array, wanted: AnyInts) -> Floats32:
        """What documents have of the terms of labels [P, T], for P pairs of label and document,
        csr [R, N], and terms [R, T].
        """
        having, cells = (
            np.flatnonzero(np.bincount(met.indices, minlength=met.shape[1])),
            np.zeros((met.nnz, wanted.shape[1]), dtype=np.float32),
        )
        if self._sizes[met.indices].sum() < TERMS_PER_VISIT * len(
            having
        ):  # few terms: each pair looks at those of its document
            place = np.full(len(self._place), -1, dtype=np.int64)
            for terms, (first, last) in zip(wanted, pairwise(met.indptr), strict=True):
                documents, place[terms] = (
                    self._documents[met.indices[first:last]],
                    np.arange(len(terms)),
                )
                at = place[documents.indices]
                found = np.flatnonzero(at >= 0)
                rows = np.repeat(np.arange(first, last), np.diff(documents.indptr))
                cells[rows[found], at[found]] = documents.data[found]
                place[terms] = -1
            return cells
        by_document = csr_array(
            (np.arange(met.nnz), met.indices, met.indptr), shape=met.shape
        ).tocsc()  # the pairs by number
        row = np.zeros(len(self._place), dtype=np.float32)
        for document in having.tolist():
            pairs = slice(*by_document.indptr[document : document + 2])
            inside = slice(*self._documents.indptr[document : document + 2])
            row[self._documents.indices[inside]] = self._documents.data[inside]
            cells[by_document.data[pairs]] = row[wanted[by_document.indices[pairs]]]
            row[self._documents.indices[inside]] = 0
        return cells
