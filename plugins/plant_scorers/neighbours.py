"""The scorer `neighbours`: labels of the training documents that are most alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api import Documents, FittedScorer, Reason, ScorerInput
from plant_cli.kit import keep_best, pack_matrix, pack_strings, top_k, unpack_matrix, unpack_strings
from plant_scorers import NeighboursOptions
from plant_scorers.lexical import cut_leads
from plant_scorers.nearest import share_labels
from plant_scorers.ridge import leave_out_neighbours, score_neighbours
from plant_scorers.sparse_products import score_blocks
from plant_scorers.vectors import Train

NEIGHBOURS_NAMED = 2  # training documents of a reason


def fit(options: NeighboursOptions, given: ScorerInput) -> FittedScorer:
    """Vectors of the training documents, and of names; left-out scores compare a document with
    the others.
    """
    pieces, read = options.cuts_words(len(given.documents)), [(given.documents, given.names)]
    if options.lead:
        read.append(
            (cut_leads(given.documents, options.lead), cut_leads(given.names, options.lead))
        )
    views = [Train.fit(some, pieces=pieces, reporter=given.reporter) for some, _ in read]
    gold, doc_ids = given.gold.astype(np.float32), [*given.doc_ids]
    if options.names and options.compares_all(len(given.documents) + len(given.names)):
        views = [view.add(names) for view, (_, names) in zip(views, read, strict=True)]
        doc_ids += [f"“{name}”" for name in given.names.texts or ()]
        gold = csr_array(vstack([gold, _mark(given.label_of, gold.shape[1])], format="csr"))
    scorer = NeighbourScorer(
        options=options,
        views=views,
        gold=gold,
        doc_ids=tuple(doc_ids),
    )
    return FittedScorer(
        scorer=scorer,
        left_out=[scorer.compare(view, view.vectors[given.rows], given.rows) for view in views],
    )


def _mark(label_of: npt.NDArray[np.int64], labels: int) -> csr_array:
    """A one for the label of each name, csr [M, L] float32."""
    cells = np.ones(len(label_of), dtype=np.float32), label_of, np.arange(len(label_of) + 1)
    return csr_array(cells, shape=(len(label_of), labels), dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class NeighbourScorer:
    """Scores by the labels of similar training documents."""

    options: NeighboursOptions  # how many neighbours, and their weight
    views: Sequence[Train]  # the training documents, whole, then perhaps their beginnings
    # labels of the training documents, and of names that count as such, csr [N, L] of ones
    gold: csr_array
    doc_ids: Sequence[str]  # ids of the training documents, and names in quotation marks [N]

    def score(self, documents: Documents) -> list[csr_array]:
        """Views: whole documents, their beginnings."""
        if len(documents) == 1 and self.options.compares_all(len(self.doc_ids)):
            given = self.gold, self.options.neighbours, self.options.power
            near = [
                score_neighbours(self._compare_one(documents, number)[None], *given)
                for number in range(len(self.views))
            ]
            return [keep_best(scores).matrix for scores in near]
        return [
            self.compare(view, view.vectoriser.transform(self._cut(documents, number)))
            for number, view in enumerate(self.views)
        ]

    def _compare_one(self, document: Documents, number: int) -> npt.NDArray[np.float32]:
        """Cosines of one document under a view with all training documents [N], made once: what
        is scored is then explained, too.
        """
        view = self.views[number]

        def make() -> npt.NDArray[np.float32]:
            cosines: npt.NDArray[np.float32] = view.similarity.multiply(
                view.vectoriser.transform(self._cut(document, number))
            )[0]
            return cosines

        return document.remember(("plant_scorers.cosines", view), make)

    def _cut(self, documents: Documents, number: int) -> Documents:
        lead = self.options.lead
        return (
            documents.remember(("plant_scorers.leads", lead), lambda: cut_leads(documents, lead))
            if number
            else documents
        )

    def compare(
        self, view: Train, vectors: csr_array, rows: npt.NDArray[np.int64] | None = None
    ) -> csr_array:
        """Scores of vectors [b]; those of training documents `rows` are compared with the
        others.
        """
        options, gold = self.options, self.gold

        def score(block: slice) -> csr_array:
            own = None if rows is None else rows[block]
            if not options.compares_all(len(self.doc_ids)):
                return share_labels(
                    view.nearest.find(vectors[block], options.neighbours, own), gold, options.power
                )
            similar = view.similarity.multiply(vectors[block])
            if own is not None:
                return leave_out_neighbours(similar, own, gold, options.neighbours, options.power)
            return score_neighbours(similar, gold, options.neighbours, options.power)

        return score_blocks(vectors.shape[0], gold.shape[1], score, held=gold.shape[0]).matrix

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """The nearest training documents that have the label."""
        view, by_label = self.views[0], self._by_label
        having = [
            by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
            for label in labels
        ]
        rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int32), *having]))
        similar = view.vectors[rows] @ view.vectoriser.transform(document).toarray()[0]
        return [self._explain(own, similar[np.searchsorted(rows, own)]) for own in having]

    @cached_property
    def _by_label(self) -> csr_array:
        return csr_array(self.gold.T)

    def credit(self, document: Documents, labels: Sequence[int]) -> list[csr_array]:
        """What each word adds to the shares of the nearest training documents that have the
        labels.
        """
        return [self._credit(document, number, labels) for number in range(len(self.views))]

    def _credit(self, document: Documents, number: int, labels: Sequence[int]) -> csr_array:
        view, options, cut = self.views[number], self.options, self._cut(document, number)
        vector = view.vectoriser.transform(cut)
        if options.compares_all(len(self.doc_ids)):
            cosines = self._compare_one(document, number)
            near = top_k(cosines, options.neighbours)
            cosines = np.maximum(cosines[near], 0)
        else:
            found = view.nearest.find(vector, options.neighbours)
            near, cosines = found.indices.astype(np.int64), np.maximum(found.data, 0)
        shares = np.divide(
            cosines**options.power, cosines, out=np.zeros_like(cosines), where=cosines > 0
        )  # of a unit of the cosine
        having = self.gold[near][:, list(labels)].toarray().T * (
            shares / ((cosines**options.power).sum() or 1.0)
        )
        added = having @ (
            view.vectors[near][:, vector.indices].toarray() * vector.data.astype(np.float64)
        )  # by the terms of the document alone [k, t]
        cells = (
            added.ravel(),
            np.tile(vector.indices, len(labels)),
            np.arange(len(labels) + 1) * len(vector.indices),
        )
        return view.vectoriser.credit_words(
            cut, csr_array(cells, shape=(len(labels), vector.shape[1]))
        )

    def _explain(self, having: npt.NDArray[np.int32], similar: npt.NDArray[np.float32]) -> Reason:
        near = np.argsort(-similar, kind="stable")[:NEIGHBOURS_NAMED]
        shown = ", ".join(
            f"{self.doc_ids[having[place]]} ({similar[place]:.2f})"
            for place in near
            if similar[place] > 0
        )
        return Reason(text=f"similar to {shown}" if shown else "")

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        tensors = {"doc_ids": pack_strings(self.doc_ids), **pack_matrix("gold", self.gold)}
        for number, view in enumerate(self.views):
            tensors |= {f"{number}.{name}": part for name, part in view.tensors().items()}
        return tensors

    @classmethod
    def load(
        cls, options: NeighboursOptions, tensors: Mapping[str, npt.NDArray[Any]]
    ) -> NeighbourScorer:
        """From arrays."""
        views = []
        for number in range(2 if options.lead else 1):
            of_view = {
                name.removeprefix(f"{number}."): part
                for name, part in tensors.items()
                if name.startswith(f"{number}.")
            }
            views.append(Train.load(of_view))
        return cls(
            options=options,
            views=views,
            gold=unpack_matrix("gold", tensors),
            doc_ids=unpack_strings(tensors["doc_ids"]),
        )
