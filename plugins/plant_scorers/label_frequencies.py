"""The scorer `frequencies`: each label by how many training documents have it, the same for
every text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import Documents, FittedScorer, NoOptions, Reason, ScorerInput
from plant_cli.kit import LABELS_LISTED, top_k

Ints = npt.NDArray[np.int64]


def fit(options: NoOptions, given: ScorerInput) -> FittedScorer:
    """Count the documents of each label; a document that is left out counts one less for its
    own labels.
    """
    counts = np.bincount(given.gold.indices, minlength=given.gold.shape[1])
    scorer = FrequencyScorer(counts=counts, documents=len(given.documents))
    own = csr_array(given.gold[given.rows])
    left_out = []
    for first, last in pairwise(own.indptr):
        others = counts.copy()
        others[own.indices[first:last]] -= 1
        left_out.append(list_frequent(others))
    return FittedScorer(scorer=scorer, left_out=[_stack(left_out, len(counts))])


def list_frequent(counts: Ints) -> tuple[Ints, npt.NDArray[np.float32]]:
    """The most frequent labels, rising, and ln (n + 1) of their documents, by the documents of
    each label [L].
    """
    best = top_k(counts, LABELS_LISTED)
    return best, np.log1p(counts[best]).astype(np.float32)


def _stack(lists: Sequence[tuple[Ints, npt.NDArray[np.float32]]], labels: int) -> csr_array:
    """Labels and scores of documents as scores, csr [B, L]."""
    cells = (
        np.concatenate([np.zeros(0, dtype=np.float32), *(scores for _, scores in lists)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(listed for listed, _ in lists)]),
        np.cumsum([0, *(len(listed) for listed, _ in lists)]),
    )
    return csr_array(cells, shape=(len(lists), labels))


@dataclass(frozen=True, kw_only=True, eq=False)
class FrequencyScorer:
    """Scores by how frequent labels are in train."""

    counts: npt.NDArray[np.int64]  # training documents of each label [L]
    documents: int  # training documents in all

    def score(self, documents: Documents) -> list[csr_array]:
        """One view: ln (n + 1) of n training documents."""
        return [_stack([list_frequent(self.counts)] * len(documents), len(self.counts))]

    def explain(self, document: Documents, labels: Sequence[int]) -> list[Reason]:
        """How frequent the labels are."""
        shares = self.counts / max(1, self.documents)
        return [Reason(text=f"{shares[label]:.1%} of train") for label in labels]

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {"counts": self.counts, "documents": np.array([self.documents])}

    @classmethod
    def load(cls, options: NoOptions, tensors: Mapping[str, npt.NDArray[Any]]) -> FrequencyScorer:
        """From arrays."""
        return cls(counts=tensors["counts"], documents=int(tensors["documents"][0]))
