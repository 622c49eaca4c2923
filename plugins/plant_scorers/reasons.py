"""Reasons that name words: those that add most to a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from plant_cli.api import Reason

SHOWN = 3  # words of a reason


def name_largest(added: csr_array, words: Sequence[str]) -> list[Reason]:
    """The words that add most for each label, largest first; none of those that add nothing.

    Args:
        added: what each word adds, csr [k, W].
        words: what the columns are called [W].
    """
    found = []
    for first, last in zip(added.indptr[:-1], added.indptr[1:], strict=True):
        largest = first + np.argsort(-added.data[first:last], kind="stable")[:SHOWN]
        named = tuple(words[added.indices[place]] for place in largest if added.data[place] > 0)
        found.append(Reason(text=", ".join(named), words=named))
    return found
