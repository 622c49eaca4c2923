"""The scorer `linear`: one-vs-rest linear regression on tf-idf, for all labels at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, csr_matrix, vstack

from plant_cli.api import ComponentError, Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import pack_matrix, unpack_matrix
from plant_scorers import LinearOptions
from plant_scorers.ridge import keep_largest, merge_twins, regress_on_own_terms
from plant_scorers.sparse_products import TermLists, multiply_best
from plant_scorers.vectors import Train, Vectoriser, name_largest


def fit(options: LinearOptions, given: ScorerInput) -> FittedScorer:
    """Weights of terms for every label."""
    train = Train.fit(
        given.documents, pieces=options.cuts_words(len(given.documents)), reporter=given.reporter
    )
    vectors = train.vectors
    weights = (
        _solve(options, vectors, given)
        if options.loss == "ridge"
        else _fit_hinge(options, vectors, given.gold)
    )
    return FittedScorer(scorer=LinearScorer(vectoriser=train.vectoriser, weights=weights))


def _solve(options: LinearOptions, train: csr_array, given: ScorerInput) -> csr_array:
    """Ridge of each label on its own terms, more of them where it has more documents."""
    documents = np.bincount(given.gold.indices, minlength=given.gold.shape[1])
    terms = np.clip(
        options.terms + documents - 1, options.terms, max(options.terms, options.most_terms)
    )
    what = "linear" if len(given.rows) else "linear without documents left out"
    with given.reporter.progress(what, given.gold.shape[1], "labels") as task:
        return regress_on_own_terms(train, given.gold, options.strength, terms, task.advance)


def _fit_hinge(options: LinearOptions, train: csr_array, gold: csr_array) -> csr_array:
    """Weights [L, V] of one squared-hinge classifier for each set of training documents that
    labels have.
    """
    distinct, label_of = merge_twins(gold)
    parts = [keep_largest(row, options.terms) for row in _train_hinge(options, train, distinct)]
    return csr_array(csr_array(vstack(parts, format="csr"))[label_of])


def _train_hinge(
    options: LinearOptions, train: csr_array, gold: csr_array
) -> Iterator[npt.NDArray[np.float32]]:
    try:
        from sklearn.svm import LinearSVC
    except ImportError as error:
        raise ComponentError(
            "scikit-learn is not installed",
            where="scorer linear, option loss",
            expected="scikit-learn, which brings LIBLINEAR, for squared-hinge",
            todo="pip install scikit-learn, or leave the loss at ridge",
        ) from error
    documents, by_label = csr_matrix(train), csr_array(gold.T)
    documents.indices, documents.indptr = (
        documents.indices.astype(np.int32),
        documents.indptr.astype(np.int32),
    )  # LIBLINEAR takes no others
    for label in range(gold.shape[1]):
        right = np.zeros(train.shape[0], dtype=bool)
        right[by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]] = True
        if (
            right.all() or not right.any()
        ):  # LIBLINEAR knows no class alone: the label is always there, or never
            yield np.zeros((1, train.shape[1]), dtype=np.float32)
            continue
        model = LinearSVC(C=options.cost, fit_intercept=False, random_state=0).fit(documents, right)
        yield model.coef_.astype(np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearScorer:
    """Scores by the weights of a document's terms."""

    vectoriser: Vectoriser  # makes tf-idf vectors
    weights: csr_array  # of terms for labels, csr [L, V]

    def score(self, documents: Documents) -> list[csr_array]:
        """One view."""
        vectors = self.vectoriser.transform(documents)
        return [multiply_best(vectors, self._lists, signed=True).matrix]

    @cached_property
    def _lists(self) -> TermLists:
        return TermLists(csr_array(self.weights.T), self.vectoriser.order)

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The words of the document that add most to the score, each with its n-grams."""
        return name_largest(self.credit(document, labels)[0], document.vocabulary)

    def credit(self, document: Documents, labels: Sequence[int]) -> list[csr_array]:
        """Weight times value of each word's terms."""

        def make() -> csr_array:
            products = csr_array(
                self.weights[list(labels)].multiply(self.vectoriser.transform(document))
            )
            return self.vectoriser.credit_words(document, products)

        return [document.remember(("plant_scorers.linear", self, tuple(labels)), make)]

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {**self.vectoriser.tensors(), **pack_matrix("weights", self.weights)}

    @classmethod
    def load(cls, options: LinearOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> LinearScorer:
        """From arrays."""
        return cls(vectoriser=Vectoriser.load(tensors), weights=unpack_matrix("weights", tensors))
