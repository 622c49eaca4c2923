"""The scorer `words`: cosine of a document's words with the relevance of words for a label by
mutual information.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from plant_cli.api import Counts, Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import (
    LABELS_LISTED,
    SparseScores,
    choose_columns,
    mutual_information,
    pack_matrix,
    pack_strings,
    unpack_matrix,
    unpack_strings,
)
from plant_scorers import WordsOptions
from plant_scorers.lexical import (
    count_known,
    inverse_frequency,
    leave_out_words,
    make_vectors,
    measure_relevance,
    stack_rows,
    weigh_numbers,
)
from plant_scorers.nearest import NearestDocuments
from plant_scorers.sparse_products import TermLists, multiply_best, score_blocks
from plant_scorers.vectors import name_largest

LABELS_COMPARED = 1_000  # by all words, of those that share rare words with a document
Integers = npt.NDArray[np.int64]


def positive_information(
    both: Integers, word: Integers, label: Integers, documents: int
) -> npt.NDArray[np.float64]:
    """Mutual information of words that are more frequent with the label than without it; 0 for
    the others.
    """
    gain = mutual_information(
        Counts(n_docs=documents, docs_with_word=word, docs_with_label=label, docs_with_both=both)
    )
    return np.where(both * documents > word * label, gain, 0.0)


def fit(options: WordsOptions, given: ScorerInput) -> FittedScorer:
    """Relevance of words for labels from the training documents; left-out scores are exact."""
    documents = given.documents
    frequencies = documents.frequencies
    known = frequencies >= min(options.min_df, max(1, len(documents) - 1))
    words, frequencies = tuple(compress(documents.vocabulary, known)), frequencies[known]
    counted = (csr_array(counts[:, known]) for counts in documents.count_blocks())
    counts = stack_rows(counted, len(documents), len(words), int(frequencies.sum()))
    weights = weigh_numbers(words)
    idf = (inverse_frequency(len(documents), frequencies) * weights).astype(np.float32)
    leaves_out = len(documents) > 1 and len(given.rows) > 0
    left_out = SparseScores.none(len(given.rows), given.gold.shape[1]).matrix
    with given.reporter.progress("words", given.gold.shape[1], "labels") as task:

        def advance(labels: int) -> None:
            task.advance(labels / (1 + leaves_out))  # all labels are looked at once, or twice

        relevance = measure_relevance(
            counts, given.gold, positive_information, options.terms, advance
        )
        if leaves_out:
            left_out = leave_out_words(
                counts,
                given.gold,
                positive_information,
                given.rows,
                min_df=options.min_df,
                weights=weights,
                advance=advance,
            ).matrix
    return FittedScorer(
        scorer=WordScorer.make(words, idf, relevance, options.exact), left_out=[left_out]
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class WordScorer:
    """Scores by the relevance of a document's words."""

    words: Sequence[str]  # the vocabulary [V]
    idf: npt.NDArray[np.float32]  # inverse document frequency of each word [V]
    relevance: (
        csr_array | csc_array
        # of words for labels [L, V]; rows of length 1, less what was pruned; csc where all are
        # compared
    )
    exact: int  # labels up to which all are compared

    @classmethod
    def make(
        cls, words: Sequence[str], idf: npt.NDArray[np.float32], relevance: csr_array, exact: int
    ) -> WordScorer:
        """From relevance, csr, which is kept by word alone where all labels are compared: it is
        the largest part of a model.
        """
        return cls(
            words=words,
            idf=idf,
            relevance=relevance.tocsc() if relevance.shape[0] <= exact else relevance,
            exact=exact,
        )

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def _transform(self, documents: Documents) -> csr_array:
        return documents.remember(
            ("plant_scorers.words", self),
            lambda: make_vectors(count_known(documents, self._places), self.idf),
        )

    def score(self, documents: Documents) -> list[csr_array]:
        """One view."""
        vectors, labels = self._transform(documents), self.relevance.shape[0]
        if labels <= self.exact:
            return [multiply_best(vectors, self._lists).matrix]
        return [
            score_blocks(
                len(documents),
                labels,
                lambda block: self._nearest.find(vectors[block], LABELS_LISTED),
            ).matrix
        ]

    @cached_property
    def _lists(self) -> TermLists:
        return TermLists(csr_array(self.relevance.T))

    @cached_property
    def _nearest(self) -> NearestDocuments:
        """Labels are found as documents are that have their words."""
        return NearestDocuments(csr_array(self.relevance), candidates=LABELS_COMPARED)

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The words of the document that add most to the cosine."""
        return name_largest(self.credit(document, labels)[0], document.vocabulary)

    def credit(self, document: Documents, labels: Sequence[int]) -> list[csr_array]:
        """Relevance times value of each word."""
        places, products = (
            document.find_words(self._places),
            self.relevance[list(labels)].multiply(self._transform(document)),
        )
        columns, known = np.full(len(self.words), -1), np.flatnonzero(places >= 0)
        columns[places[known]] = known
        return [choose_columns(csr_array(products), columns, len(places))]

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {
            "words": pack_strings(self.words),
            "idf": self.idf,
            **pack_matrix("relevance", csr_array(self.relevance)),
        }

    @classmethod
    def load(cls, options: WordsOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> WordScorer:
        """From arrays."""
        words, relevance = unpack_strings(tensors["words"]), unpack_matrix("relevance", tensors)
        return cls.make(words, tensors["idf"], relevance, options.exact)
