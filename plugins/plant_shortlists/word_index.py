"""The shortlist `words`: an inverted index from relevant words to the labels that they
indicate; and `none`, which leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from plant_scorers.lexical import inverse_frequency, unit_rows, weigh_counts
from scipy.sparse import csr_array, diags_array

from plant_cli.api import NoOptions, ShortlistInput
from plant_shortlists import WordIndexOptions


class WordIndex:
    """Proposes the labels of highest Σ (1 + ln tf) · idf · relevance over a document's words, and
    the most frequent ones.

    Relevance is that of `plant mig`, each label's scaled to length 1, so that labels with many
    words are not favoured.
    """

    def __init__(self, options: WordIndexOptions, given: ShortlistInput) -> None:
        self.size, frequent = options.share_out(len(given.train_counts))
        self.frequent = np.argsort(-given.train_counts, kind="stable")[:frequent]
        idf = inverse_frequency(given.documents, given.docs_with_word)
        self.by_word = csr_array((unit_rows(given.relevance) @ diags_array(idf)).T).astype(
            np.float32
        )

    def propose(self, texts: Sequence[str], counts: csr_array) -> list[npt.NDArray[np.int64]]:
        """Labels of each document, rising."""
        weights = weigh_counts(counts.astype(np.float32))
        proposed = []
        for row in range(len(texts)):
            scores = weights[[row]] @ self.by_word  # one at a time: common words meet most labels
            best = scores.indices[np.argsort(-scores.data, kind="stable")[: self.size]]
            proposed.append(np.union1d(best.astype(np.int64), self.frequent))
        return proposed


class EveryLabel:
    """Proposes every label for every document."""

    def __init__(self, options: NoOptions, given: ShortlistInput) -> None:
        self.labels = len(given.train_counts)

    def propose(self, texts: Sequence[str], counts: csr_array) -> list[npt.NDArray[np.int64]]:
        """All labels for each document."""
        return [np.arange(self.labels, dtype=np.int64)] * len(texts)
