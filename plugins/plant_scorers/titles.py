"""The scorer `titles`: how well a document names a label. It needs no training document of the
label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import (
    cut_rows,
    pack_matrix,
    pack_strings,
    unpack_matrix,
    unpack_strings,
)
from plant_scorers import TitlesOptions
from plant_scorers.lexical import (
    GramColumns,
    count_pieces,
    cut_documents,
    cut_leads,
    cut_vocabulary,
    cut_word,
    document_frequencies,
    inverse_frequency,
    make_vectors,
    number_grams,
)
from plant_scorers.passages import LabelNames
from plant_scorers.vectors import credit_terms

Integers = npt.NDArray[np.int64]
View = tuple[Documents, Integers, csr_array]
"""The passages that a view looks at, the document of each, and their vectors."""
DOCUMENTS_PER_BLOCK = 256  # documents cut into passages at a time
SHARED_NGRAMS = (
    0.5  # of a title word's n-grams that a word of the document must have to be shown beside it
)


def fit(options: TitlesOptions, given: ScorerInput) -> FittedScorer:
    """Vectors of the titles; n-grams are weighed by how many training documents and titles have
    them.
    """
    pieces = tuple(number_grams(given.names.vocabulary))
    places = GramColumns(pieces)
    counts = count_pieces(given.names.counts, cut_vocabulary(given.names, places))
    frequency, words = document_frequencies(counts), cut_vocabulary(given.documents, places)
    with given.reporter.progress("titles", len(given.documents), "documents") as task:
        for block in cut_rows(len(given.documents), 1, DOCUMENTS_PER_BLOCK):
            some = given.documents.take(np.arange(block.start, block.stop))
            frequency += document_frequencies(count_pieces(some.counts, words))
            task.advance(len(some))
    idf = inverse_frequency(len(given.documents) + len(given.names), frequency).astype(np.float32)
    titles = tuple(
        " ".join(given.names.vocabulary[number] for number in given.names.numbers[first:last])
        for first, last in zip(given.names.ends[:-1], given.names.ends[1:], strict=True)
    )
    scorer = TitleScorer(
        options=options,
        pieces=pieces,
        idf=idf,
        titles=titles,
        vectors=make_vectors(counts, idf),
        label_of=given.label_of,
        labels=given.gold.shape[1],
    )
    return FittedScorer(scorer=scorer, left_out=scorer.score(given.documents.take(given.rows)))


def _find_nearest(document: Documents, parts: Sequence[str]) -> dict[str, str]:
    """The word of a document that shares most n-grams with each word of titles, where enough
    are shared.
    """
    if not parts:
        return {}
    numbers, used = number_grams(parts), np.unique(document.numbers)
    grams = [sorted({numbers[gram] for gram in cut_word(part)}) for part in parts]
    ends = np.cumsum([0, *map(len, grams)])
    wanted = csr_array(
        (np.ones(ends[-1]), np.concatenate(grams), ends), shape=(len(parts), len(numbers))
    )
    shared = csr_array(wanted @ (cut_vocabulary(document, numbers)[used] > 0).T.astype(np.float64))
    shared.sort_indices()
    nearest = {}
    for part, own, inside in zip(parts, grams, pairwise(shared.indptr), strict=True):
        counts = shared.data[slice(*inside)]
        if counts.max(initial=0) >= SHARED_NGRAMS * len(own):
            nearest[part] = document.vocabulary[
                used[shared.indices[inside[0] + int(counts.argmax())]]
            ]
    return nearest


def _give_reason(title: str, nearest: Mapping[str, str]) -> Reason:
    alike = tuple(dict.fromkeys(nearest[part] for part in title.split() if part in nearest))
    return Reason(
        text=(f"“{title}”" if title else "") + (f": {', '.join(alike)}" if alike else ""),
        words=alike,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TitleScorer:
    """Scores by how well a document names a label."""

    options: TitlesOptions  # how documents are cut
    pieces: Sequence[str]  # character n-grams of the titles [G]
    idf: npt.NDArray[np.float32]  # weight of each n-gram [G]
    titles: Sequence[str]  # words of each title or other name [M]
    vectors: csr_array  # of the titles, csr [M, G], rows of length 1
    label_of: npt.NDArray[np.int64]  # label of each title, rising [M]
    labels: int  # L

    @cached_property
    def _places(self) -> GramColumns:
        return GramColumns(self.pieces)

    @cached_property
    def _names(self) -> LabelNames:
        return LabelNames(vectors=self.vectors, label_of=self.label_of, labels=self.labels)

    def _cut(self, documents: Documents) -> csr_array:
        return cut_vocabulary(documents, self._places)

    def score(self, documents: Documents) -> list[csr_array]:
        """Views: the whole document, its best passage, its beginning."""
        views = self._view_one(documents) if len(documents) == 1 else self._view(documents)
        return [
            self._names.score(vectors, owners, len(documents)).matrix
            for _, owners, vectors in views
        ]

    def _view(self, documents: Documents) -> Iterator[View]:
        every, pieces = np.arange(len(documents)), self._cut(documents)
        views = [(documents, every)]
        if self.options.passage:
            views.append(cut_documents(documents, self.options.passage))
        if self.options.lead:
            views.append((cut_leads(documents, self.options.lead), every))
        return (
            (passages, owners, make_vectors(count_pieces(passages.counts, pieces), self.idf))
            for passages, owners in views
        )

    def _view_one(self, document: Documents) -> Sequence[View]:
        """The same of one document, made once: what is scored is then explained, too.

        What a document remembers must not hold it: a cycle would keep both in memory after their
        use.
        """
        views = document.remember(
            ("plant_scorers.titles", self),
            lambda: [
                (None if passages is document else passages, owners, vectors)
                for passages, owners, vectors in self._view(document)
            ],
        )
        return [
            (document if passages is None else passages, owners, vectors)
            for passages, owners, vectors in views
        ]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The title that fits best, with the words of the document that are alike."""
        (names, ends), vector = (
            self._find_names(labels),
            self._view_one(document)[0][2].toarray()[0],
        )
        cosines = self.vectors[names] @ vector
        spans = [slice(*inside) for inside in pairwise(ends.tolist())]
        titles = [
            self.titles[names[own.start + int(cosines[own].argmax())]] if cosines[own].any() else ""
            for own in spans
        ]
        nearest = _find_nearest(
            document, list(dict.fromkeys(part for title in titles for part in title.split()))
        )
        return [_give_reason(title, nearest) for title in titles]

    def credit(self, document: Documents, labels: Sequence[int]) -> list[csr_array]:
        """What the n-grams of each word add to the cosine of the best name and the best passage."""
        (names, ends), pieces = self._find_names(labels), self._cut(document)
        return [
            self._credit(passages, vectors, pieces, self.vectors[names], ends)
            for passages, _, vectors in self._view_one(document)
        ]

    def _credit(
        self,
        passages: Documents,
        vectors: csr_array,
        pieces: csr_array,
        names: csr_array,
        ends: Integers,
    ) -> csr_array:
        """Of one view, csr [k, W], by the names of the labels, csr [m, G], and where those of
        each end [k + 1].
        """
        named, cosines = np.diff(ends) > 0, (vectors @ names.T).toarray()
        best = [
            divmod(int(cosines[:, first:last].argmax()), last - first)
            for first, last in pairwise(ends.tolist())
            if first < last
        ]
        passage, name = np.array(best, dtype=np.int64).reshape(-1, 2).T
        name += ends[:-1][named]
        credit = credit_terms(
            passages.counts[passage], pieces, csr_array(vectors[passage].multiply(names[name]))
        )
        rows = credit.indptr[np.append(0, np.cumsum(named))]
        return csr_array(
            (credit.data, credit.indices, rows), shape=(len(named), len(passages.vocabulary))
        )

    def _find_names(self, labels: Sequence[int]) -> tuple[Integers, Integers]:
        """The names of some labels, those of one after those of another [m], and where those of
        each end [k + 1].
        """
        places = [
            np.arange(*np.searchsorted(self.label_of, [label, label + 1])) for label in labels
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *places]), np.cumsum(
            [0, *map(len, places)]
        )

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {
            "pieces": pack_strings(self.pieces),
            "idf": self.idf,
            "titles": pack_strings(self.titles),
            "label_of": self.label_of,
            "labels": np.array([self.labels]),
            **pack_matrix("vectors", self.vectors),
        }

    @classmethod
    def load(cls, options: TitlesOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> TitleScorer:
        """From arrays."""
        return cls(
            options=options,
            pieces=unpack_strings(tensors["pieces"]),
            idf=tensors["idf"],
            titles=unpack_strings(tensors["titles"]),
            vectors=unpack_matrix("vectors", tensors),
            label_of=tensors["label_of"],
            labels=int(tensors["labels"][0]),
        )
