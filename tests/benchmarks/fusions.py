"""Title match, and fusions of tools: their scores added by weights that validation has chosen.

A fusion adds what its tools say of a label: the score over the best of the document, or a
reciprocal rank. How, and by which weights, is whatever has the best P@5 on validation; it gets no
other documents to choose by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer

KEPT = 100
# of the logistic function; it, and the borders and rarity of n-grams, give the figures of baselines
# measured elsewhere
STEEPNESS = 3.0
TENTHS = 10
FUSIONS = {
    "fusion-omikuji-knn-title": ("omikuji-bonsai", "knn", "title"),
    "fusion-one-vs-rest-title": ("one-vs-rest", "title"),
    "fusion-one-vs-rest-knn-title": ("one-vs-rest", "knn", "title"),
}
SCALES = (None, 10, 60)  # None: scores over the document's best; a number c: 1 / (c + rank)

Scored = list[list[tuple[int, float]]]  # per document (label index, score), best first
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fusion:
    """How tools are added.

    Args:
        tools: their names.
        scale: one of `SCALES`.
        weights: of the tools, in tenths.
        precision: P@5 on validation, 0 to 1.
    """

    tools: tuple[str, ...]
    scale: int | None
    weights: tuple[int, ...]
    precision: float


@dataclass(frozen=True)
class Candidates:
    """The labels that any tool lists for a document.

    Args:
        labels: their indices in rising order, padded with -1 [N, C].
        said: what each tool says of them, 0 where it does not list them [T, N, C].
    """

    labels: npt.NDArray[np.int64]
    said: Floats


def match_titles(
    train: Sequence[str], titles: Sequence[str | None], asked: Sequence[str]
) -> Scored:
    """Labels by the cosine of their titles and the document: TF-IDF of character 3- to 5-grams
    within words, fitted on train.
    """
    vectorizer = TfidfVectorizer(
        analyzer="char_wb", ngram_range=(3, 5), min_df=2, sublinear_tf=True
    ).fit(train)
    named = csr_array(vectorizer.transform([title or "" for title in titles]))
    return list_best(csr_array(csr_array(vectorizer.transform(asked)) @ named.T))


def list_best(scores: csr_array) -> Scored:
    """The best labels of each row, of those that have a score [N, L]."""
    rows = np.split(np.column_stack([scores.indices, scores.data]), scores.indptr[1:-1])
    return [
        [
            (int(label), float(score))
            for label, score in row[np.argsort(-row[:, 1], kind="stable")[:KEPT]]
        ]
        for row in rows
    ]


def squash(scored: Scored) -> Scored:
    """Signed distances as numbers from 0 to 1, in the same order."""
    return [[(label, float(expit(STEEPNESS * score))) for label, score in row] for row in scored]


def fit_fusion(tools: tuple[str, ...], scored: Mapping[str, Scored], gold: csr_array) -> Fusion:
    """The scale and weights with the best P@5; of equals the first.

    Args:
        tools: names of those that are added.
        scored: lists of each tool for the documents of validation.
        gold: of the same documents [N, L].
    """
    tried = [
        Fusion(
            tools,
            scale,
            weights,
            _count_hits(_add(candidates, weights), right) / (5 * gold.shape[0]),
        )
        for scale in SCALES
        for candidates, right in [_gather_judged([scored[tool] for tool in tools], scale, gold)]
        for weights in _divide(len(tools))
    ]
    return max(tried, key=lambda fusion: fusion.precision)


def fuse(fusion: Fusion, scored: Mapping[str, Scored]) -> Scored:
    """The best labels of the documents for which the tools give these lists."""
    candidates = gather([scored[tool] for tool in fusion.tools], fusion.scale)
    added = _add(candidates, fusion.weights)
    best = np.argsort(-added, axis=1, kind="stable")[:, :KEPT]
    return [
        [(int(labels[place]), float(row[place])) for place in chosen if row[place] > 0]
        for labels, row, chosen in zip(candidates.labels, added, best, strict=True)
    ]


def gather(lists: Sequence[Scored], scale: int | None) -> Candidates:
    """What tools say of the labels that any of them lists, by one of `SCALES`."""
    listed = [
        sorted({label for row in rows for label, _ in row}) for rows in zip(*lists, strict=True)
    ]
    labels = np.full((len(listed), max(map(len, listed))), -1)
    said = np.zeros((len(lists), *labels.shape))
    for document, known in enumerate(listed):
        labels[document, : len(known)] = known
        for tool, scored in enumerate(lists):
            row = scored[document]
            shares = [
                score / row[0][1] if scale is None else 1 / (scale + rank)
                for rank, (_, score) in enumerate(row, start=1)
            ]
            said[tool, document, np.searchsorted(known, [label for label, _ in row])] = shares
    return Candidates(labels, said)


def _gather_judged(
    lists: Sequence[Scored], scale: int | None, gold: csr_array
) -> tuple[Candidates, npt.NDArray[np.bool_]]:
    """The candidates, and which of them are right [N, C]."""
    candidates = gather(lists, scale)
    found = np.take_along_axis(gold.toarray() > 0, candidates.labels.clip(0), axis=1)
    return candidates, found & (candidates.labels >= 0)


def _divide(tools: int) -> Iterator[tuple[int, ...]]:
    """Every way to divide ten tenths among tools."""
    return (
        weights for weights in product(range(TENTHS + 1), repeat=tools) if sum(weights) == TENTHS
    )


def _add(candidates: Candidates, weights: tuple[int, ...]) -> Floats:
    added: Floats = np.tensordot(np.asarray(weights, dtype=np.float64), candidates.said, axes=1)
    return added


def _count_hits(added: Floats, right: npt.NDArray[np.bool_]) -> int:
    """Right labels among the first five of each document; a label without a score is in no list."""
    best = np.argsort(-added, axis=1, kind="stable")[:, :5]
    return int(np.take_along_axis(right & (added > 0), best, axis=1).sum())
