"""Invented counts of words and labels, for tests of what scores labels by them; `drawn` is a
fixture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Counts of words csr [N, V], and labels csr [N, L]."""

    counts: csr_array
    gold: csr_array

    @property
    def train_counts(self) -> npt.NDArray[np.int64]:
        """Documents of each label [L]."""
        return np.bincount(self.gold.indices, minlength=self.gold.shape[1]).astype(np.int64)


def draw(seed: int = 0, documents: int = 30, words: int = 25, labels: int = 9) -> Drawn:
    """Documents whose words depend on their labels; one document is empty, one label has a
    single document, two are twins.
    """
    chance = np.random.default_rng(seed)
    gold = chance.random((documents, labels)) < 0.2
    gold[:, 0] = np.arange(documents) == 3
    gold[:, 1] = gold[:, 2]
    topics = chance.random((labels, words)) ** 4
    counts = chance.poisson(0.15 + gold @ topics)
    counts[5] = 0
    sparse = csr_array(gold.astype(np.float32))
    sparse.sort_indices()
    return Drawn(counts=csr_array(counts.astype(np.float64)), gold=sparse)


@pytest.fixture
def drawn() -> Drawn:
    """A small corpus."""
    return draw()
