"""What proposes the labels worth scoring where there are too many to score them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from scipy.sparse import csr_array


@dataclass(frozen=True, kw_only=True)
class ShortlistInput:
    """What a shortlist is built from; all of it is fitted on train.

    Args:
        words: the vocabulary [V], lower-cased.
        relevance: of words for labels, csr [L, V] in [0, 1].
        docs_with_word: training documents with each word [V].
        train_counts: training documents of each label [L].
        documents: training documents N.
    """

    words: Sequence[str]
    relevance: csr_array
    docs_with_word: npt.NDArray[np.int64]
    train_counts: npt.NDArray[np.int64]
    documents: int


class Shortlist(Protocol):
    """Proposes labels for documents, before any network has read them."""

    def propose(self, texts: Sequence[str], counts: csr_array) -> Sequence[npt.NDArray[np.int64]]:
        """Distinct label indices for each document, in any order; the same whatever other documents are asked for.

        Args:
            texts: the documents [B].
            counts: how often each word of the vocabulary is in them, csr [B, V].
        """
        ...
