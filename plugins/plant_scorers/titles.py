"""The scorer `titles`: how well a document names a label. It needs no training document of the label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api import Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import (
    count_pieces,
    cut_documents,
    cut_leads,
    cut_rows,
    cut_vocabulary,
    cut_word,
    document_frequencies,
    inverse_frequency,
    make_vectors,
    no_scores,
    number_grams,
    pack_matrix,
    pack_strings,
    score_passages,
    unpack_matrix,
    unpack_strings,
)
from plant_scorers import TitlesOptions
from plant_scorers.vectors import credit_terms

DOCUMENTS_PER_BLOCK = 256  # documents cut into passages at a time
SHARED_NGRAMS = 0.5  # of a title word's n-grams that a word of the document must have to be shown beside it


def fit(options: TitlesOptions, given: ScorerInput) -> FittedScorer:
    """Vectors of the titles; n-grams are weighed by how many training documents and titles have them."""
    pieces = tuple(number_grams(given.names.vocabulary))
    places = {piece: place for place, piece in enumerate(pieces)}
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


@dataclass(frozen=True, kw_only=True)
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
    def _places(self) -> Mapping[str, int]:
        return {piece: place for place, piece in enumerate(self.pieces)}

    def _cut(self, documents: Documents) -> csr_array:
        return cut_vocabulary(documents, self._places)

    def _transform(self, documents: Documents, pieces: csr_array) -> csr_array:
        return make_vectors(count_pieces(documents.counts, pieces), self.idf)

    def score(self, documents: Documents) -> list[csr_array]:
        """Views: the whole document, its best passage, its beginning."""
        pieces = self._cut(documents)
        return [self._score(passages, owners, pieces) for passages, owners in self._view(documents)]

    def _view(self, documents: Documents) -> Iterator[tuple[Documents, npt.NDArray[np.int64]]]:
        """The passages that each view looks at, and the document of each."""
        yield documents, np.arange(len(documents))
        if self.options.passage:
            yield cut_documents(documents, self.options.passage)
        if self.options.lead:
            yield cut_leads(documents, self.options.lead), np.arange(len(documents))

    def _score(self, passages: Documents, owners: npt.NDArray[np.int64], pieces: csr_array) -> csr_array:
        shape = (int(owners[-1]) + 1 if len(owners) else 0, self.labels)
        return score_passages(self._transform(passages, pieces), owners, self.vectors, self.label_of, shape).matrix

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The title that fits best, with the words of the document that are alike."""
        vector = self._transform(document, self._cut(document))
        words = [document.vocabulary[number] for number in np.unique(document.numbers)]
        return [self._explain(words, vector, label) for label in labels]

    def credit(self, document: Documents, labels: Sequence[int]) -> list[csr_array]:
        """What the n-grams of each word add to the cosine of the best name and the best passage."""
        pieces = self._cut(document)
        views = [(passages, self._transform(passages, pieces)) for passages, _ in self._view(document)]
        return [csr_array(vstack([self._credit(*view, pieces, label) for label in labels], format="csr")) for view in views]

    def _credit(self, passages: Documents, vectors: csr_array, pieces: csr_array, label: int) -> csr_array:
        first, last = np.searchsorted(self.label_of, [label, label + 1])
        names = self.vectors[first:last]
        cosines = csr_array(vectors @ names.T).tocoo()
        if not cosines.nnz:
            return no_scores(1, len(passages.vocabulary))
        passage, name = (places[[int(cosines.data.argmax())]] for places in cosines.coords)
        return credit_terms(passages.counts[passage], pieces, csr_array(vectors[passage].multiply(names[name])))

    def _explain(self, words: Sequence[str], vector: csr_array, label: int) -> Reason:
        first, last = np.searchsorted(self.label_of, [label, label + 1])
        cosines = (self.vectors[first:last] @ vector.T).toarray()[:, 0] if first < last else np.zeros(0)
        if not cosines.any():
            return Reason(text="")
        title = self.titles[first + int(cosines.argmax())]
        alike = dict.fromkeys(word for part in title.split() if (word := self._nearest(part, words)))
        return Reason(text=f"“{title}”" + (f": {', '.join(alike)}" if alike else ""), words=tuple(alike))

    def _nearest(self, part: str, words: Sequence[str]) -> str:
        """The word of the document that shares most n-grams with a word of the title; none: too few are shared."""
        wanted = set(cut_word(part))
        shares = {word: len(wanted & set(cut_word(word))) / len(wanted) for word in words}
        best = max(shares, key=lambda word: shares[word], default="")
        return best if best and shares[best] >= SHARED_NGRAMS else ""

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
