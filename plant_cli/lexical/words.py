"""What a document's words say for a label by their relevance, and what they would say had the document not been in train."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack, vstack

from plant_cli.lexical.scores import KEPT, Scores, keep_best, multiply_best, no_scores, score_blocks
from plant_cli.lexical.vectors import document_frequencies, make_vectors, unit_rows

PAIRS = 1 << 22  # of word and label held at a time
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.integer[Any]]
Measure = Callable[[Counts, Counts, Counts, int], Floats]
"""Relevance, ≥ 0, from documents with word and label, with the word, with the label [P], and documents in all."""


def score_words(documents: csr_array, relevance: csr_array, k: int = KEPT, *, unit: bool = True) -> Scores:
    """Cosines of documents with the relevance of words for labels.

    Args:
        documents: tf-idf vectors, csr [B, V] with rows of length 1.
        relevance: of words for labels, csr [L, V], of any length.
        k: labels kept of each document.
        unit: whether rows of the relevance are to be scaled to length 1; they are not where they lost words after they had been.
    """
    return multiply_best(documents, unit_rows(relevance) if unit else relevance, k)


def measure_relevance(counts: csr_array, gold: csr_array, measure: Measure, kept: int | None = None) -> csr_array:
    """Relevance of words for labels, rows of length 1, csr [L, V] float32.

    Pairs of word and label are looked at for some labels at a time: memory holds `PAIRS` of them, and those that are kept.

    Args:
        counts: how often each word is in each training document, csr [N, V].
        gold: their labels, csr [N, L] of ones.
        measure: relevance from counts of documents.
        kept: words kept of each label, those of highest relevance, after its row was brought to length 1 (default: all above 0).
    """
    parts = []
    for labels in cut_labels(counts, gold):
        world = _World.of(counts, csr_array(gold[:, labels]))
        relevance = unit_rows(world.store(measure(world.both, world.with_word, world.with_label, world.documents)))
        relevance.eliminate_zeros()
        parts.append(relevance if kept is None else keep_best(relevance, kept).matrix)
    return csr_array(vstack(parts, format="csr")) if parts else no_scores(0, counts.shape[1])


def cut_labels(counts: csr_array, gold: csr_array, pairs: int | None = None) -> list[slice]:
    """Consecutive slices of labels that meet no more than so many words together, or one label each.

    Args:
        counts: how often each word is in each training document, csr [N, V].
        gold: their labels, csr [N, L] of ones.
        pairs: of word and label (default: `PAIRS`); words are counted once for each document that has them.
    """
    met = np.minimum(counts.shape[1], gold.T @ np.diff(counts.indptr)).astype(np.int64)
    slices, first, held = [], 0, 0
    for label, own in enumerate(met.tolist()):
        if label > first and held + own > (pairs or PAIRS):
            slices.append(slice(first, label))
            first, held = label, 0
        held += own
    return [*slices, slice(first, len(met))] if len(met) else []


def leave_out_words(
    counts: csr_array, gold: csr_array, measure: Measure, rows: Rows | None = None, *, k: int = KEPT, min_df: int = 1
) -> Scores:
    """`score_words` of training documents, each as if relevance and idf had been computed without it; exact.

    A document changes the counts of its own words and labels alone, so that the cosine with a label follows from two sparse products
    instead of a table for each document: the squared length of the label's relevance is that over all words, corrected for the
    document's.

    Args:
        counts: how often each word is in each training document, csr [N, V].
        gold: their labels, csr [N, L] of ones.
        measure: relevance from counts of documents; every word with relevance above 0 counts, not the best of a label only.
        rows: training documents to score [b] (default: all).
        k: labels kept of each document.
        min_df: a word that fewer other documents have counts for nothing.
    """
    remaining = document_frequencies(counts) - 1
    idf = np.where(remaining >= max(1, min_df), np.log(counts.shape[0] / np.maximum(1, remaining + 1)), 0.0)
    chosen = np.arange(counts.shape[0]) if rows is None else rows
    of_rows = csr_array(counts[chosen])
    vectors, occurs = make_vectors(of_rows, idf), csr_array(of_rows > 0).astype(np.float64)
    parts = []
    for labels in cut_labels(counts, gold):
        own = csr_array(gold[:, labels])
        left = _LeftOut(_World.of(counts, own), vectors, occurs, csr_array(own[chosen]), measure, min_df)
        parts.append(score_blocks(len(chosen), own.shape[1], left.score, k))
    return parts[0] if len(parts) == 1 else _keep_best_of(parts, (len(chosen), gold.shape[1]), k)


def _keep_best_of(parts: Sequence[Scores], shape: tuple[int, int], k: int) -> Scores:
    """The best labels of documents, from their best labels among some labels after others."""
    if not parts:
        return Scores(matrix=no_scores(*shape), floor=np.zeros(shape[0], dtype=np.float32))
    return keep_best(csr_array(hstack([part.matrix for part in parts], format="csr")), k)


@dataclass(frozen=True)
class _World:
    """Counts of documents for every word and label that occur together [P], in the order of a csr [L, V]."""

    documents: int
    both: Counts
    with_word: Counts
    with_label: Counts
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]
    shape: tuple[int, int]

    @classmethod
    def of(cls, counts: csr_array, gold: csr_array) -> _World:
        occurs = csr_array(counts > 0).astype(np.int64)
        met = csr_array(gold.T.astype(np.int64).tocsr() @ occurs)
        met.sort_indices()
        labels = np.repeat(np.arange(met.shape[0]), np.diff(met.indptr))
        docs_with_label = np.bincount(gold.indices, minlength=gold.shape[1]).astype(np.int64)
        with_word, with_label = document_frequencies(occurs)[met.indices], docs_with_label[labels]
        return cls(counts.shape[0], met.data, with_word, with_label, met.indices, met.indptr, met.shape)

    def store(self, values: Floats) -> csr_array:
        """Values of the pairs as a matrix [L, V]."""
        return csr_array((values, self.indices, self.indptr), shape=self.shape)


class _LeftOut:
    """Relevance in the four cases that a document left out can make: with and without its word, of its label and of another.

    Where a case cannot arise (a word that only documents of the label have, in a document without the label) the counts are clipped to
    possible ones, and what they give is never read.
    """

    def __init__(self, world: _World, vectors: csr_array, occurs: csr_array, gold: csr_array, measure: Measure, min_df: int) -> None:
        self.vectors, self.occurs, self.gold = vectors, occurs, gold
        rest, both, word, label = world.documents - 1, world.both, world.with_word, world.with_label
        frequent, known = word >= min_df, word - 1 >= min_df

        def measure_rest(both: Counts, word: Counts, label: Counts) -> Floats:
            label, word = np.minimum(label, rest), np.minimum(word, rest)
            both = np.clip(both, np.maximum(0, word + label - rest), np.minimum(word, label))
            return measure(both, word, label, rest)

        elsewhere = np.where(frequent, measure_rest(both, word, label), 0.0)  # the word is not in the document
        here = np.where(known, measure_rest(both, word - 1, label), 0.0)
        always = both == label  # all documents of the label have the word: one without it is none of them
        own_elsewhere = np.where(frequent & ~always, measure_rest(both, word, label - 1), 0.0)
        own_here = np.where(known, measure_rest(both - 1, word - 1, label - 1), 0.0)
        self.here, self.own_here = csr_array(world.store(here).T), world.store(own_here)
        self.change = csr_array(world.store(here**2 - elsewhere**2).T)
        self.own_change = world.store(own_here**2 - own_elsewhere**2)
        self.squares = world.store(elsewhere**2) @ np.ones(world.shape[1])
        self.own_squares = world.store(own_elsewhere**2) @ np.ones(world.shape[1])

    def score(self, block: slice) -> csr_array:
        """Cosines [b, L] of the documents in a block, those above 0."""
        vectors, occurs = self.vectors[block].astype(np.float64), self.occurs[block]
        scores = _divide((vectors @ self.here).toarray(), self.squares + (occurs @ self.change).toarray(), self.squares)
        own_rows, own_labels = self.gold[block].nonzero()
        for part in _cut_pairs(np.diff(self.own_here.indptr)[own_labels]):
            rows, labels = own_rows[part], own_labels[part]
            products = self.own_here[labels].multiply(vectors[rows]).sum(axis=1)
            squares = self.own_squares[labels] + self.own_change[labels].multiply(occurs[rows]).sum(axis=1)
            scores[rows, labels] = _divide(products, squares, self.squares[labels])
        return csr_array(np.maximum(scores, 0))


def _cut_pairs(sizes: Counts) -> Iterator[slice]:
    """Consecutive pairs that hold about `PAIRS` words together; a frequent label meets most of the vocabulary."""
    held = np.cumsum(sizes)
    cuts = np.searchsorted(held, np.arange(PAIRS, held[-1], PAIRS)).tolist() if len(held) else []
    return (slice(first, last) for first, last in pairwise([0, *cuts, len(held)]))


def _divide(products: Floats, squares: Floats, whole: Floats) -> npt.NDArray[np.float32]:
    """Products over lengths, 0 where nothing is left of a length but rounding."""
    exists = squares > 1e-12 * np.broadcast_to(whole, squares.shape)
    lengths = np.sqrt(np.where(exists, squares, 1.0))
    return np.where(exists, products / lengths, 0.0).astype(np.float32)
