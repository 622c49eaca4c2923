"""The words kept for each label, as ragged lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class KeptWords:
    """Row l of the ragged lists is `offsets[l]:offsets[l + 1]`, best word first.

    Args:
        offsets: int64 [L + 1].
        words: vocabulary index of each kept word, int32 [K].
        values: the signal's value, float64 [K]; NaN for a word that only the label's title names.
        both: documents with label and word, int32 [K]; −1 for a word that only the label's title names.
    """

    offsets: npt.NDArray[np.int64]
    words: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    both: npt.NDArray[np.int32]

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """Label index of each kept word [K]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """Rank of each kept word in its label's list [K], from 1."""
        return np.arange(1, len(self.words) + 1) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
