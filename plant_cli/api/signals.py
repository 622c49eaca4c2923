"""The one count table that every relevance signal is a pure function of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of (label, word) pairs; the arrays have, or broadcast to, one shape.

    Args:
        n_docs: training documents N.
        docs_with_word: documents that hold the word, n_w.
        docs_with_label: documents that carry the label, n_l.
        docs_with_both: documents with both, n_lw (0 for pairs that never co-occur).
        occurrences: times the word occurs in the documents of the label (only when the signal asks for it).
        words_with_label: words, counted with repeats, in the documents of the label (likewise).
        pairs: a number for each pair, the same in every run: label index · V + word index (likewise).
    """

    n_docs: int
    docs_with_word: npt.NDArray[Any]
    docs_with_label: npt.NDArray[Any]
    docs_with_both: npt.NDArray[Any]
    occurrences: npt.NDArray[Any] | None = None
    words_with_label: npt.NDArray[Any] | None = None
    pairs: npt.NDArray[Any] | None = None
