"""What the engine needs to know of a relevance signal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plant_cli.api.signals import Counts


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A relevance signal with its options bound.

    Args:
        score: one float64 for each pair of a count table, no NaN; −inf for a word that must not be kept.
        signed: its values say which way the association goes; then only words that meet the label are scored.
        needs_pairs: it reads `Counts.pairs`; then, too, only words that meet the label are scored.
        quasi_convex: for one label and one number of documents with both, values fall and then rise (or only fall) with the
            documents of the word.
    """

    score: Callable[[Counts], npt.NDArray[np.float64]]
    signed: bool = False
    needs_pairs: bool = False
    quasi_convex: bool = False
