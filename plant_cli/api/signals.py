"""The counts that every relevance signal is a function of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plant_cli.api.read_only import protect

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Counts of pairs of label and word; the arrays broadcast to one shape."""

    n_docs: int
    """Training documents N."""
    docs_with_word: npt.NDArray[Any]
    """Training documents with the word, n_w."""
    docs_with_label: npt.NDArray[Any]
    """Training documents with the label, n_l."""
    docs_with_both: npt.NDArray[Any]
    """Training documents with both, n_lw."""
    occurrences: npt.NDArray[Any] | None = None
    """Occurrences of the word in the documents of the label; only if the signal needs them."""
    words_with_label: npt.NDArray[Any] | None = None
    """Occurrences of all words in the documents of the label; only if the signal needs them."""
    pairs: npt.NDArray[Any] | None = None
    """The number of each pair, label index · V + word index; only if the signal needs it."""

    def __post_init__(self) -> None:
        protect(self)
