"""The scorer `neighbours`: labels of the training documents that are most alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array

from plant_cli.api import Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import (
    cut_leads,
    leave_out_neighbours,
    pack_matrix,
    pack_strings,
    score_blocks,
    score_neighbours,
    share_labels,
    top_k,
    unpack_matrix,
    unpack_strings,
)
from plant_scorers import NeighboursOptions
from plant_scorers.vectors import Train

NEIGHBOURS_NAMED = 2  # training documents of a reason


def fit(options: NeighboursOptions, given: ScorerInput) -> FittedScorer:
    """Vectors of the training documents; left-out scores compare a document with the others."""
    pieces = options.cuts_words(len(given.documents))
    views = [Train.fit(given.documents, pieces=pieces, reporter=given.reporter)]
    if options.lead:
        views.append(Train.fit(cut_leads(given.documents, options.lead), pieces=pieces, reporter=given.reporter))
    scorer = NeighbourScorer(options=options, views=views, gold=given.gold.astype(np.float32), doc_ids=tuple(given.doc_ids))
    return FittedScorer(scorer=scorer, left_out=[scorer.compare(view, view.vectors[given.rows], given.rows) for view in views])


@dataclass(frozen=True, kw_only=True)
class NeighbourScorer:
    """Scores by the labels of similar training documents."""

    options: NeighboursOptions  # how many neighbours, and their weight
    views: Sequence[Train]  # the training documents, whole, then perhaps their beginnings
    gold: csr_array  # labels of the training documents, csr [N, L] of ones
    doc_ids: Sequence[str]  # ids of the training documents [N]

    def score(self, documents: Documents) -> list[csr_array]:
        """Views: whole documents, their beginnings."""
        return [self.compare(view, view.vectoriser.transform(self._cut(documents, number))) for number, view in enumerate(self.views)]

    def _cut(self, documents: Documents, number: int) -> Documents:
        return cut_leads(documents, self.options.lead) if number else documents

    def compare(self, view: Train, vectors: csr_array, rows: npt.NDArray[np.int64] | None = None) -> csr_array:
        """Scores of vectors [b]; those of training documents `rows` are compared with the others."""
        options, gold = self.options, self.gold

        def score(block: slice) -> csr_array:
            own = None if rows is None else rows[block]
            if not options.compares_all(len(self.doc_ids)):
                return share_labels(view.nearest.find(vectors[block], options.neighbours, own), gold, options.power)
            similar = view.similarity.multiply(vectors[block])
            if own is not None:
                return leave_out_neighbours(similar, own, gold, options.neighbours, options.power)
            return score_neighbours(similar, gold, options.neighbours, options.power)

        return score_blocks(vectors.shape[0], gold.shape[1], score, held=gold.shape[0]).matrix

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The nearest training documents that have the label."""
        view, by_label = self.views[0], csr_array(self.gold.T)
        vector = view.vectoriser.transform(document).toarray()[0]
        return [self._explain(vector, by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]) for label in labels]

    def credit(self, document: Documents, labels: Sequence[int]) -> list[csr_array]:
        """What each word adds to the shares of the nearest training documents that have the labels."""
        return [self._credit(view, self._cut(document, number), labels) for number, view in enumerate(self.views)]

    def _credit(self, view: Train, document: Documents, labels: Sequence[int]) -> csr_array:
        vector, options = view.vectoriser.transform(document), self.options
        if options.compares_all(len(self.doc_ids)):
            cosines = view.similarity.multiply(vector)[0]
            near = top_k(cosines, options.neighbours)
            cosines = np.maximum(cosines[near], 0)
        else:
            found = view.nearest.find(vector, options.neighbours)
            near, cosines = found.indices.astype(np.int64), np.maximum(found.data, 0)
        shares = np.divide(cosines**options.power, cosines, out=np.zeros_like(cosines), where=cosines > 0)  # of a unit of the cosine
        having = csr_array(self.gold[near][:, list(labels)].T) @ diags_array(shares / ((cosines**options.power).sum() or 1.0))
        return view.vectoriser.credit_words(document, csr_array(csr_array(having @ view.vectors[near]).multiply(vector)))

    def _explain(self, vector: npt.NDArray[np.float32], having: npt.NDArray[np.int32]) -> Reason:
        similar = self.views[0].vectors[having] @ vector
        near = np.argsort(-similar, kind="stable")[:NEIGHBOURS_NAMED]
        shown = ", ".join(f"{self.doc_ids[having[place]]} ({similar[place]:.2f})" for place in near if similar[place] > 0)
        return Reason(text=f"similar to {shown}" if shown else "")

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        tensors = {"doc_ids": pack_strings(self.doc_ids), **pack_matrix("gold", self.gold)}
        for number, view in enumerate(self.views):
            tensors |= {f"{number}.{name}": part for name, part in view.tensors().items()}
        return tensors

    @classmethod
    def load(cls, options: NeighboursOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> NeighbourScorer:
        """From arrays."""
        views = []
        for number in range(2 if options.lead else 1):
            of_view = {name.removeprefix(f"{number}."): part for name, part in tensors.items() if name.startswith(f"{number}.")}
            views.append(Train.load(of_view))
        return cls(options=options, views=views, gold=unpack_matrix("gold", tensors), doc_ids=unpack_strings(tensors["doc_ids"]))
