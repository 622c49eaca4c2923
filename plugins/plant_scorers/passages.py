"""The best passage of each document for each label: long documents name a label in one place.

A passage of a document has no more of a term than the passage that has most of it. The product of
these highest weights with a name is no less than its cosine with any passage, and needs one product
for a document instead of one for each passage. The labels that are highest by it are compared with
the passages, and then those that may still be among the best: few, since the bound is close.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api.scorers import short_ends
from plant_cli.kit import LABELS_LISTED, SparseScores, top_k
from plant_scorers.sparse_products import Floats32, TermLists, join_lists, score_blocks

Indices = npt.NDArray[np.integer[Any]]
BOUND_ROUNDING = 1e-4  # by how much, at most, a bound may have been rounded down
COMPARED = 2  # times the labels to be kept that are compared with the passages first


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelNames:
    """Names of labels as vectors of terms."""

    vectors: csr_array  # csr [M, G] float32, rows of length 1, no value below 0
    label_of: Indices  # label of each name, rising [M]
    labels: int  # L

    @cached_property
    def _lists(self) -> TermLists:
        """The same by term."""
        return TermLists(csr_array(self.vectors.T))

    @cached_property
    def _firsts(self) -> npt.NDArray[np.intp]:
        """The first name of each label that has one [N]."""
        return np.flatnonzero(np.diff(self.label_of, prepend=-1))

    @cached_property
    def _sizes(self) -> npt.NDArray[np.intp]:
        """How many names each of these labels has [N]."""
        return np.diff(self._firsts, append=len(self.label_of))

    def score(
        self, passages: csr_array, document_of: Indices, documents: int, k: int = LABELS_LISTED
    ) -> SparseScores:
        """The k best labels of each of B documents, those above 0, by the highest cosine of a
        passage with a name.

        Args:
            passages: vectors, csr [S, G] with rows of length 1, no value below 0.
            document_of: document of each passage, rising [S].
            documents: B.
            k: labels kept of each document.
        """
        ends = np.searchsorted(document_of, np.arange(documents + 1))

        def score(block: slice) -> csr_array:
            spans = [slice(*span) for span in pairwise(ends[block.start : block.stop + 1].tolist())]
            terms, named = _Terms(passages), self.label_of[self._firsts]
            best = (self._find_best(terms, span, k) for span in spans)
            return join_lists(((named[places], values) for places, values in best), self.labels)

        return score_blocks(documents, self.labels, score, k)

    def _find_best(
        self, terms: _Terms, span: slice, k: int
    ) -> tuple[npt.NDArray[np.int64], Floats32]:
        """Places among the labels that have names, and scores, of one more than the k best of a
        document, and perhaps of others.
        """
        if span.stop - span.start <= 1:  # the bound of one passage is its score
            bounds = self._add_up(*terms.inside(span))
            chosen = top_k(bounds, k + 1)
            return _above_zero(chosen, bounds[chosen])
        weights = terms.spread(span)
        bounds = self._add_up(*weights.highest)
        chosen = top_k(bounds, COMPARED * k)
        scores = self._compare(weights, chosen)
        least = np.partition(scores, -k - 1)[-k - 1] if len(scores) > k else 0.0
        likely = (bounds > 0) & (bounds >= least * (1 - BOUND_ROUNDING))
        likely[chosen] = False
        if likely.any():
            others = np.flatnonzero(likely)
            chosen, scores = (
                np.concatenate([chosen, others]),
                np.concatenate([scores, self._compare(weights, others)]),
            )
            order = np.argsort(chosen)
            chosen, scores = chosen[order], scores[order]
        return _above_zero(chosen, scores)

    def _add_up(self, terms: Indices, weights: Floats32) -> Floats32:
        """The highest product of terms with a name of each label that has names [N]."""
        sums: Floats32 = self._lists.add_up(terms, weights)
        one_each = len(self._firsts) == len(self.label_of)
        return sums if one_each else np.maximum.reduceat(sums, self._firsts)

    def _compare(self, weights: _PassageWeights, places: Indices) -> Floats32:
        """The highest cosines of a document's passages with the names of some labels."""
        sizes = self._sizes[places]
        ends = np.cumsum(sizes)
        names = np.arange(sizes.sum()) + np.repeat(self._firsts[places] - ends + sizes, sizes)
        cosines = weights.multiply(self.vectors[names])
        highest: Floats32 = np.maximum.reduceat(cosines, ends - sizes) if len(ends) else cosines
        return highest


def _above_zero(
    places: npt.NDArray[np.int64], scores: Floats32
) -> tuple[npt.NDArray[np.int64], Floats32]:
    above = scores > 0
    return places[above], scores[above]


class _Terms:
    """The terms of the passages of one document after another; arrays over all terms are made
    once.
    """

    def __init__(self, passages: csr_array) -> None:
        self._passages = passages
        self._met = np.zeros(passages.shape[1], dtype=np.bool_)
        self._place = np.full(passages.shape[1], -1, dtype=np.int32)
        self._found = np.zeros(0, dtype=np.intp)

    def inside(self, span: slice) -> tuple[Indices, Floats32]:
        """The terms of some passages, one after the other, and their weights."""
        cells = slice(*self._passages.indptr[[span.start, span.stop]])
        return self._passages.indices[cells], self._passages.data[cells]

    def spread(self, span: slice) -> _PassageWeights:
        """The weights of the terms of some passages, until the next ones are asked for."""
        terms, values = self.inside(span)
        self._place[self._found] = -1
        self._met[terms] = True
        self._found = found = np.flatnonzero(self._met)
        self._met[found] = False
        self._place[found] = np.arange(len(found))
        weights = np.zeros((len(found), span.stop - span.start), dtype=np.float32)
        sizes = np.diff(self._passages.indptr[span.start : span.stop + 1])
        weights[self._place[terms], np.repeat(np.arange(len(sizes)), sizes)] = values
        return _PassageWeights(found, self._place, weights)


@dataclass(frozen=True)
class _PassageWeights:
    """Weights of terms in the passages of a document."""

    terms: npt.NDArray[np.intp]  # that any passage has, rising [T]
    place: npt.NDArray[np.int32]  # of each term among these, −1: it is none of them [G]
    weights: Floats32  # of these terms in each passage [T, P]

    @property
    def highest(self) -> tuple[Indices, Floats32]:
        """The terms, and the highest weight of each, the last first, as in vectors: sums are then
        rounded as those of a sparse product.
        """
        return self.terms[::-1], self.weights.max(axis=1)[::-1]

    def multiply(self, names: csr_array) -> Floats32:
        """The highest product of each name, csr [M, G], with a passage [M]."""
        places = self.place[names.indices]
        known = places >= 0
        ends = short_ends(np.append(0, np.cumsum(known))[names.indptr])
        products = (
            csr_array(
                (names.data[known], places[known], ends),
                shape=(names.shape[0], len(self.weights)),
            )
            @ self.weights
        )
        highest: Floats32 = products.max(axis=1, initial=0)
        return highest
