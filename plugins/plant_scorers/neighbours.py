"""The scorer `neighbours`: labels of the training documents that are most alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import (
    cut_leads,
    leave_out_neighbours,
    pack_matrix,
    pack_strings,
    score_blocks,
    score_neighbours,
    unpack_matrix,
    unpack_strings,
)
from plant_scorers import NeighboursOptions
from plant_scorers.vectors import Train

NEIGHBOURS_NAMED = 2  # training documents of a reason


def fit(options: NeighboursOptions, given: ScorerInput) -> FittedScorer:
    """Vectors of the training documents; left-out scores compare a document with the others."""
    whole = Train.fit(given.documents, pieces=options.pieces)
    views = [whole]
    if options.lead:
        views.append(Train.fit(cut_leads(given.documents, options.lead), pieces=options.pieces))
    scorer = NeighbourScorer(options=options, views=views, gold=given.gold.astype(np.float32), doc_ids=tuple(given.doc_ids))
    left_out = [scorer.leave_out(view, given.rows) for view in views]
    return FittedScorer(scorer=scorer, left_out=left_out)


@dataclass(frozen=True, kw_only=True)
class NeighbourScorer:
    """Scores by the labels of similar training documents."""

    options: NeighboursOptions  # how many neighbours, and their weight
    views: Sequence[Train]  # the training documents, whole, then perhaps their beginnings
    gold: csr_array  # labels of the training documents, csr [N, L] of ones
    doc_ids: Sequence[str]  # ids of the training documents [N]

    def score(self, documents: Documents) -> list[csr_array]:
        """Views: whole documents, their beginnings."""
        return [self._score(view, self._cut(documents, number)) for number, view in enumerate(self.views)]

    def _cut(self, documents: Documents, number: int) -> Documents:
        return cut_leads(documents, self.options.lead) if number else documents

    def _score(self, view: Train, documents: Documents) -> csr_array:
        vectors, options = view.vectoriser.transform(documents), self.options

        def score(block: slice) -> csr_array:
            return score_neighbours(view.similarity.multiply(vectors[block]), self.gold, options.neighbours, options.power)

        return score_blocks(len(documents), max(self.gold.shape), score).matrix[:, : self.gold.shape[1]]

    def leave_out(self, view: Train, rows: npt.NDArray[np.int64]) -> csr_array:
        """Scores of training documents [b] among the others."""
        options = self.options

        def score(block: slice) -> csr_array:
            similar = view.similarity.multiply(view.similarity.train[rows[block]])
            return leave_out_neighbours(similar, rows[block], self.gold, options.neighbours, options.power)

        return score_blocks(len(rows), max(self.gold.shape), score).matrix[:, : self.gold.shape[1]]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The nearest training documents that have the label."""
        view = self.views[0]
        similar = view.similarity.multiply(view.vectoriser.transform(document))[0]
        by_label = csr_array(self.gold.T)
        return [self._explain(similar, by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]) for label in labels]

    def _explain(self, similar: npt.NDArray[np.float32], having: npt.NDArray[np.int32]) -> Reason:
        near = having[np.argsort(-similar[having], kind="stable")[:NEIGHBOURS_NAMED]]
        shown = ", ".join(f"{self.doc_ids[row]} ({similar[row]:.2f})" for row in near if similar[row] > 0)
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
