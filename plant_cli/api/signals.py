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
    """Counts of (label, word) pairs; the arrays have, or broadcast to, one shape."""

    n_docs: int
    """Training documents N."""
    docs_with_word: npt.NDArray[Any]
    """Documents that hold the word, n_w."""
    docs_with_label: npt.NDArray[Any]
    """Documents that carry the label, n_l."""
    docs_with_both: npt.NDArray[Any]
    """Documents with both, n_lw (0 for pairs that never co-occur)."""
    occurrences: npt.NDArray[Any] | None = None
    """Times the word occurs in the documents of the label (only when the signal asks for it)."""
    words_with_label: npt.NDArray[Any] | None = None
    """Words, counted with repeats, in the documents of the label (likewise)."""
    pairs: npt.NDArray[Any] | None = None
    """A number for each pair, the same in every run: label index · V + word index (likewise)."""
