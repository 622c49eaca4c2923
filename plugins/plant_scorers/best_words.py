"""The scorer `table`: the relevance table alone, by the best words of a document for each
label, and how frequent the label is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, product
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api import Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import (
    LABELS_LISTED,
    keep_best,
    pack_matrix,
    pack_strings,
    top_k,
    unpack_matrix,
    unpack_strings,
)
from plant_scorers import TableOptions
from plant_scorers.lexical import count_known
from plant_scorers.sparse_products import score_blocks

COUNTED_WORDS = (1, 2, 3, 5)  # how many best words of a document may count
PRIORS = (0.0, 0.05, 0.1, 0.2, 0.5)  # what the logarithm of a label's frequency may weigh
LABEL_BITS = 32  # a key holds a label above the bits of a value
VALUE_BITS = (1 << LABEL_BITS) - 1
SingleFloats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def fit(options: TableOptions, given: ScorerInput) -> FittedScorer:
    """Relevance by the rule of the run; how many words count, and how much the frequency, by
    documents that are left out.
    """
    best = 2 if options.words is None else options.words
    scorer = BestWordScorer.make(given, best, 0.1 if options.prior is None else options.prior)
    if len(given.rows) == 0 or len(given.documents) < 2:
        return FittedScorer(scorer=scorer)
    parts, folds = [], given.cut_folds()
    with given.reporter.progress("table", len(folds), "parts left out") as task:
        for fold in folds:
            rows = given.rows[fold]
            others = BestWordScorer.make(_leave_out(given, rows), scorer.best, scorer.prior)
            parts.append((others, others.add_up(given.documents.take(rows))))
            task.advance(1)
    tried = product(
        COUNTED_WORDS if options.words is None else (options.words,),
        PRIORS if options.prior is None else (options.prior,),
    )
    gold = given.gold[given.rows[np.concatenate(folds)]].toarray() > 0

    def judge(chosen: tuple[int, float]) -> float:
        best, prior = chosen
        scored = (
            (labels, others.weigh(labels, sums, best, prior))
            for others, found in parts
            for labels, sums in found
        )
        return sum(
            _average_precision(labels, scores, right)
            for (labels, scores), right in zip(scored, gold, strict=True)
        )

    best, prior = max(tried, key=judge)
    ranked = [replace(others, best=best, prior=prior).rank(found) for others, found in parts]
    left_out = csr_array(csr_array(vstack(ranked, format="csr"))[np.argsort(np.concatenate(folds))])
    return FittedScorer(scorer=replace(scorer, best=best, prior=prior), left_out=[left_out])


def _leave_out(given: ScorerInput, rows: Ints) -> ScorerInput:
    kept = np.setdiff1d(np.arange(len(given.documents)), rows)
    return replace(
        given,
        documents=given.documents.take(kept),
        doc_ids=[given.doc_ids[row] for row in kept],
        gold=csr_array(given.gold[kept]),
        rows=np.zeros(0, dtype=np.int64),
    )


def _average_precision(labels: Ints, scores: SingleFloats, right: npt.NDArray[np.bool_]) -> float:
    """Of one document, by the scores of some labels [m], of which some of all are right [L]."""
    best = np.sort(top_k(scores, LABELS_LISTED))
    hits = right[labels[best[np.argsort(-scores[best], kind="stable")]]]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum()) / max(1, int(np.count_nonzero(right)))


WordSums = list[tuple[Ints, SingleFloats]]
"""Of each document the labels that may be listed, rising [m], and the sums of their 1, 2, …
best words [m, most].
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class BestWordScorer:
    """Scores by the sum of a label's best words in a document, and by its frequency."""

    words: Sequence[str]  # the vocabulary [V]
    relevance: csr_array  # of words for labels, csr [V, L]; the largest of each label is 1
    counts: Ints  # training documents of each label [L]
    best: int  # words that count
    prior: float  # weight of the logarithm of the frequency

    @classmethod
    def make(cls, given: ScorerInput, best: int, prior: float) -> BestWordScorer:
        """With the relevance that the run's rule finds in the documents."""
        words, relevance = given.relate(given.documents, given.gold)
        largest = relevance.max(axis=1).toarray()
        sizes = np.diff(relevance.indptr)
        values = relevance.data / np.repeat(np.where(largest > 0, largest, 1), sizes)
        scaled = csr_array(
            (values.astype(np.float32), relevance.indices, relevance.indptr), relevance.shape
        )
        used = np.bincount(relevance.indices, minlength=len(words)) > 0
        return cls(
            words=tuple(compress(words, used)),
            relevance=csr_array(scaled[:, used].T.tocsr()),
            counts=np.bincount(given.gold.indices, minlength=given.gold.shape[1]),
            best=best,
            prior=prior,
        )

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def _keys(self) -> Ints:
        """A number for each value of relevance that sorts by label, and the largest values of a
        label first.
        """
        bits = self.relevance.data.astype(np.float32).view(np.uint32).astype(np.int64)
        keys: Ints = self.relevance.indices.astype(np.int64) << LABEL_BITS
        return keys + (VALUE_BITS - bits)

    @cached_property
    def _frequency(self) -> SingleFloats:
        """The logarithm of each label's frequency; the rarest label's is 0 [L]."""
        logs = np.log(np.maximum(self.counts, 1))
        frequency: SingleFloats = (logs - logs.min(initial=np.inf)).astype(np.float32)
        return frequency

    @cached_property
    def _frequent(self) -> Ints:
        """Keys of relevance 0 for the most frequent labels: they may be listed whatever the
        words of a document are.
        """
        labels: Ints = top_k(self.counts, LABELS_LISTED)
        return (labels << LABEL_BITS) + VALUE_BITS

    def add_up(self, documents: Documents, most: int = max(COUNTED_WORDS)) -> WordSums:
        """WordSums of the best words of documents."""
        known = csr_array(count_known(documents, self._places))
        return [
            self._add_up(known.indices[first:last], most)
            for first, last in zip(known.indptr[:-1], known.indptr[1:], strict=True)
        ]

    def _add_up(self, words: npt.NDArray[Any], most: int) -> tuple[Ints, SingleFloats]:
        starts, stops = self.relevance.indptr[words], self.relevance.indptr[words + 1]
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        keys = np.concatenate([self._frequent, *(self._keys[first:last] for first, last in spans)])
        keys.sort()
        labels = keys >> LABEL_BITS
        first = np.flatnonzero(np.diff(labels, prepend=-1))
        bits = VALUE_BITS - (keys & VALUE_BITS)
        values = np.append(bits.astype(np.uint32).view(np.float32), np.float32(0))
        sizes = np.diff(np.append(first, len(keys)))
        places = np.arange(most)
        inside = np.where(places < sizes[:, None], first[:, None] + places, len(keys))
        sums: SingleFloats = np.cumsum(values[inside], axis=1)
        return labels[first], sums

    def weigh(self, labels: Ints, sums: SingleFloats, best: int, prior: float) -> SingleFloats:
        """Scores of labels [m] by the sums of so many best words, and by their frequency."""
        scores: SingleFloats = sums[:, best - 1] + np.float32(prior) * self._frequency[labels]
        return scores

    def rank(self, sums: WordSums) -> csr_array:
        """The best labels of documents by sums of their words, csr [B, L] float32."""
        scores = [self.weigh(labels, added, self.best, self.prior) for labels, added in sums]
        cells = (
            np.concatenate([np.zeros(0, dtype=np.float32), *scores]),
            np.concatenate([np.zeros(0, dtype=np.int64), *(labels for labels, _ in sums)]),
            np.cumsum([0, *map(len, scores)]),
        )
        return keep_best(csr_array(cells, shape=(len(sums), len(self.counts)))).matrix

    def score(self, documents: Documents) -> list[csr_array]:
        """One view."""

        def score(block: slice) -> csr_array:
            some = documents.take(np.arange(*block.indices(len(documents))))
            return self.rank(self.add_up(some, self.best))

        return [score_blocks(len(documents), len(self.counts), score).matrix]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The words that count."""
        known = csr_array(count_known(document, self._places)).indices
        values = self.relevance[known][:, list(labels)].toarray()
        best = np.argsort(-values, axis=0, kind="stable")[: self.best]
        return [
            Reason(words=tuple(self.words[known[row]] for row in rows if values[row, column] > 0))
            for column, rows in enumerate(best.T)
        ]

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {
            "words": pack_strings(self.words),
            "counts": self.counts,
            "best": np.array([self.best]),
            "prior": np.array([self.prior]),
            **pack_matrix("relevance", self.relevance),
        }

    @classmethod
    def load(cls, options: TableOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> BestWordScorer:
        """From arrays."""
        return cls(
            words=unpack_strings(tensors["words"]),
            relevance=unpack_matrix("relevance", tensors),
            counts=tensors["counts"],
            best=int(tensors["best"][0]),
            prior=float(tensors["prior"][0]),
        )
