"""The scorer `linear`: one-vs-rest linear regression on tf-idf, for all labels at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api import ComponentError, Documents, FittedScorer, ScorerInput
from plant_cli.kit.lexical import (
    Similarity,
    count_documents,
    cut_folds,
    cut_rows,
    invert_kernel,
    keep_largest,
    merge_twins,
    multiply_signed,
    pack_matrix,
    solve_ridge,
    unpack_matrix,
    weigh_terms,
)
from plant_scorers.options import LinearOptions
from plant_scorers.vectors import Vectoriser

SHOWN = 3  # words of an explanation


def fit(options: LinearOptions, given: ScorerInput) -> FittedScorer:
    """Weights of terms for every label, pruned. By the inverse of the kernel, left-out scores are of weights without the documents."""
    vectoriser, similarity = Vectoriser.fit(given.documents, pieces=options.pieces)
    if options.loss == "squared-hinge":
        weights = _fit_hinge(options, similarity.train, given.gold)
    elif len(given.documents) > options.largest:
        weights = _iterate(options, similarity.train, given)
    else:
        return _invert(options, vectoriser, similarity, given)
    return FittedScorer(scorer=LinearScorer(vectoriser=vectoriser, weights=weights))


def _invert(options: LinearOptions, vectoriser: Vectoriser, similarity: Similarity, given: ScorerInput) -> FittedScorer:
    """Ridge by the inverse of the kernel: the same inverse gives the weights without some documents."""
    inverse = invert_kernel(similarity.square(), options.strength)
    weights = weigh_terms(similarity, inverse, given.gold, options.terms)
    scorer = LinearScorer(vectoriser=vectoriser, weights=weights)
    parts, folds = [], cut_folds(len(given.documents), len(given.rows))
    if len(given.documents) < 2 or not folds:
        return FittedScorer(scorer=scorer)
    for fold in folds:
        rows = given.rows[fold]
        without = weigh_terms(similarity, inverse, given.gold, options.terms, without=rows)
        unknown = count_documents(similarity.train) == count_documents(similarity.train[rows])
        parts.append(multiply_signed(vectoriser.forget(similarity.train[rows], unknown), without).matrix)
    order = np.argsort(np.concatenate(folds))
    return FittedScorer(scorer=scorer, left_out=[csr_array(csr_array(vstack(parts, format="csr"))[order])])


def _iterate(options: LinearOptions, train: csr_array, given: ScorerInput) -> csr_array:
    """Ridge by conjugate gradients, some labels at a time: weights [L, V]."""
    distinct, label_of = merge_twins(given.gold)
    by_term, parts = csr_array(train.T), []
    for block in cut_rows(distinct.shape[1], max(train.shape)):
        found = solve_ridge(train, distinct[:, block].toarray().astype(np.float32), options.strength)
        parts.append(keep_largest((by_term @ found).T, options.terms))
    return csr_array(csr_array(vstack(parts, format="csr"))[label_of])


def _fit_hinge(options: LinearOptions, train: csr_array, gold: csr_array) -> csr_array:
    """Weights [L, V] of one squared-hinge classifier for each set of training documents that labels have."""
    distinct, label_of = merge_twins(gold)
    parts = [keep_largest(row, options.terms) for row in _train_hinge(options, train, distinct)]
    return csr_array(csr_array(vstack(parts, format="csr"))[label_of])


def _train_hinge(options: LinearOptions, train: csr_array, gold: csr_array) -> Iterator[npt.NDArray[np.float32]]:
    try:
        from sklearn.svm import LinearSVC
    except ImportError as error:
        raise ComponentError(
            "scikit-learn is not installed",
            where="scorer linear, option loss",
            expected="scikit-learn, which brings LIBLINEAR, for squared-hinge",
            todo="pip install scikit-learn, or leave the loss at ridge",
        ) from error
    from scipy.sparse import csr_matrix

    documents, by_label = csr_matrix(train), csr_array(gold.T)
    documents.indices, documents.indptr = documents.indices.astype(np.int32), documents.indptr.astype(np.int32)  # all that LIBLINEAR takes
    for label in range(gold.shape[1]):
        right = np.zeros(train.shape[0], dtype=bool)
        right[by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]] = True
        if right.all() or not right.any():  # LIBLINEAR knows no class alone: the label is always there, or never
            yield np.zeros((1, train.shape[1]), dtype=np.float32)
            continue
        model = LinearSVC(C=options.cost, fit_intercept=False, random_state=0).fit(documents, right)
        yield model.coef_.astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class LinearScorer:
    """See `plant_cli.api.Scorer`.

    Args:
        vectoriser: makes tf-idf vectors.
        weights: of terms for labels, csr [L, V].
    """

    vectoriser: Vectoriser
    weights: csr_array

    def score(self, documents: Documents) -> list[csr_array]:
        """See `Scorer.score`; one view."""
        return [multiply_signed(self.vectoriser.transform(documents), self.weights).matrix]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[str]:
        """The terms of the document that add most to the score."""
        vector = self.vectoriser.transform(document)
        products = csr_array(self.weights[list(labels)].multiply(vector))
        found = []
        for first, last in zip(products.indptr[:-1], products.indptr[1:], strict=True):
            best = first + np.argsort(-products.data[first:last], kind="stable")[:SHOWN]
            found.append(", ".join(self.vectoriser.name(int(products.indices[place])) for place in best if products.data[place] > 0))
        return found

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """See `Scorer.tensors`."""
        return {**self.vectoriser.tensors(), **pack_matrix("weights", self.weights)}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]]) -> LinearScorer:
        """The scorer again."""
        return cls(vectoriser=Vectoriser.load(tensors), weights=unpack_matrix("weights", tensors))
