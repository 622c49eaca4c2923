"""The scorer `linear`: one-vs-rest linear regression on tf-idf, for all labels at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api import ComponentError, Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import (
    cut_folds,
    document_frequencies,
    invert_kernel,
    keep_largest,
    leave_out_ridge,
    merge_twins,
    multiply_signed,
    pack_matrix,
    regress_on_own_terms,
    score_blocks,
    solve_labels,
    unpack_matrix,
    weigh_terms,
)
from plant_scorers import LinearOptions
from plant_scorers.vectors import Train, Vectoriser, name_largest

COEFFICIENTS = 1 << 27  # of training documents that are kept, at most: 2 bytes each on disk, 4 in memory


def fit(options: LinearOptions, given: ScorerInput) -> FittedScorer:
    """Weights of terms for every label, pruned. By the inverse of the kernel, whole ones, too, and left-out scores of both."""
    train = Train.fit(given.documents, pieces=options.pieces)
    if options.inverts(len(given.documents)):
        return _invert(options, train, given)
    vectors = train.similarity.train
    weights = _solve_apart(options, vectors, given) if options.loss == "ridge" else _fit_hinge(options, vectors, given.gold)
    return FittedScorer(scorer=LinearScorer(vectoriser=train.vectoriser, weights=weights))


def _invert(options: LinearOptions, train: Train, given: ScorerInput) -> FittedScorer:
    """Ridge by the inverse of the kernel: the same inverse gives the weights without some documents."""
    inverse = invert_kernel(train.similarity.square(), options.strength)
    weights = weigh_terms(train.similarity, inverse, given.gold, options.terms)
    if len(given.documents) < 2:  # nothing is left to leave out from
        return FittedScorer(scorer=LinearScorer(vectoriser=train.vectoriser, weights=weights))
    whole = Whole.of(train, inverse, given.gold)
    scorer = LinearScorer(vectoriser=train.vectoriser, weights=weights, whole=whole)
    folds = cut_folds(len(given.documents), len(given.rows))
    left_out = [_leave_out_pruned(options, train, inverse, given, folds)]
    if whole is not None:
        rows, width = given.rows, given.gold.shape[1]
        left_out.append(score_blocks(len(rows), width, lambda block: leave_out_ridge(inverse[rows[block]], rows[block], given.gold)).matrix)
    return FittedScorer(scorer=scorer, left_out=left_out)


def _leave_out_pruned(
    options: LinearOptions, train: Train, inverse: npt.NDArray[np.float32], given: ScorerInput, folds: Sequence[npt.NDArray[np.int64]]
) -> csr_array:
    """Scores of training documents by pruned weights that were solved without their fold."""
    vectors, parts = train.similarity.train, []
    for fold in folds:
        rows = given.rows[fold]
        without = weigh_terms(train.similarity, inverse, given.gold, options.terms, without=rows)
        unknown = document_frequencies(vectors) == document_frequencies(vectors[rows])
        parts.append(multiply_signed(train.vectoriser.forget(vectors[rows], unknown), without).matrix)
    return csr_array(csr_array(vstack(parts, format="csr"))[np.argsort(np.concatenate(folds))])


def _solve_apart(options: LinearOptions, train: csr_array, given: ScorerInput) -> csr_array:
    """Ridge of each label on its own terms, more of them where it has more documents."""
    documents = np.bincount(given.gold.indices, minlength=given.gold.shape[1])
    terms = np.clip(options.terms + documents - 1, options.terms, max(options.terms, options.most_terms))
    with given.reporter.progress("linear", given.gold.shape[1], "labels") as task:
        return regress_on_own_terms(train, given.gold, options.own_strength, terms, task.advance)


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
    documents.indices, documents.indptr = documents.indices.astype(np.int32), documents.indptr.astype(np.int32)  # LIBLINEAR takes no others
    for label in range(gold.shape[1]):
        right = np.zeros(train.shape[0], dtype=bool)
        right[by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]] = True
        if right.all() or not right.any():  # LIBLINEAR knows no class alone: the label is always there, or never
            yield np.zeros((1, train.shape[1]), dtype=np.float32)
            continue
        model = LinearSVC(C=options.cost, fit_intercept=False, random_state=0).fit(documents, right)
        yield model.coef_.astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Whole:
    """Ridge with all its weights, in the form of coefficients of training documents, which are fewer."""

    train: Train  # the training documents N
    coefficients: npt.NDArray[np.float32]  # for each distinct set of documents that labels have [N, U]
    label_of: npt.NDArray[np.int64]  # the set of each label [L]

    @classmethod
    def of(cls, train: Train, inverse: npt.NDArray[np.float32], gold: csr_array) -> Whole | None:
        """From the inverse of the kernel; None where coefficients are too many to be kept."""
        if len(inverse) * merge_twins(gold)[0].shape[1] > COEFFICIENTS:
            return None
        coefficients, label_of = solve_labels(inverse, gold)
        return cls(train=train, coefficients=coefficients.astype(np.float16).astype(np.float32), label_of=label_of)

    def score(self, documents: Documents) -> csr_array:
        """Scores by all terms, csr [B, L]."""
        vectors = self.train.vectoriser.transform(documents)

        def score(block: slice) -> npt.NDArray[np.float32]:
            found: npt.NDArray[np.float32] = (self.train.similarity.multiply(vectors[block]) @ self.coefficients)[:, self.label_of]
            return found

        return score_blocks(len(documents), max(len(self.label_of), len(self.coefficients)), score).matrix[:, : len(self.label_of)]

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {**self.train.tensors(), "coefficients": self.coefficients.astype(np.float16), "label_of": self.label_of}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]]) -> Whole:
        """From arrays."""
        return cls(train=Train.load(tensors), coefficients=tensors["coefficients"].astype(np.float32), label_of=tensors["label_of"])


@dataclass(frozen=True, kw_only=True)
class LinearScorer:
    """Scores by the weights of a document's terms."""

    vectoriser: Vectoriser  # makes tf-idf vectors
    weights: csr_array  # of terms for labels, csr [L, V]
    whole: Whole | None = None  # scores by all weights; None where they were not kept

    def score(self, documents: Documents) -> list[csr_array]:
        """Views: the largest weights of a label, all of them."""
        pruned = multiply_signed(self.vectoriser.transform(documents), self.weights).matrix
        return [pruned] if self.whole is None else [pruned, self.whole.score(documents)]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The words of the document that add most to the score, each with its n-grams."""
        products = csr_array(self.weights[list(labels)].multiply(self.vectoriser.transform(document)))
        return name_largest(self.vectoriser.credit_words(document, products), document.vocabulary)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        own = self.vectoriser.tensors() if self.whole is None else self.whole.tensors()
        return {**own, **pack_matrix("weights", self.weights)}

    @classmethod
    def load(cls, options: LinearOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> LinearScorer:
        """From arrays."""
        whole = Whole.load(tensors) if "coefficients" in tensors else None
        vectoriser = Vectoriser.load(tensors) if whole is None else whole.train.vectoriser
        return cls(vectoriser=vectoriser, weights=unpack_matrix("weights", tensors), whole=whole)
