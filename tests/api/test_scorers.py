"""Documents in the contract: counts leave them as they are, and parts of them keep their vocabulary."""

from __future__ import annotations

import numpy as np

from plant_cli.api import Documents

DOCUMENTS = Documents(vocabulary=("a", "b", "c"), numbers=np.array([0, 1, 0, 2], dtype=np.int32), ends=np.array([0, 3, 3, 4]))


def test_counts() -> None:
    assert DOCUMENTS.counts.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert DOCUMENTS.numbers.tolist() == [0, 1, 0, 2]
    assert DOCUMENTS.ends.tolist() == [0, 3, 3, 4]


def test_some_of_them() -> None:
    found = DOCUMENTS.take(np.array([2, 0]))
    assert found.counts.toarray().tolist() == [[0, 0, 1], [2, 1, 0]]
    assert len(found) == 2
