"""Ragged lists of kept words know the label and the rank of each word."""

import numpy as np

from plant_cli.relevance.engine import KeptWords


def test_labels_and_ranks_follow_from_the_offsets() -> None:
    lists = KeptWords(
        offsets=np.array([0, 2, 2, 5]), words=np.arange(5, dtype=np.int32), values=np.zeros(5), both=np.ones(5, dtype=np.int32)
    )
    assert lists.labels.tolist() == [0, 0, 2, 2, 2]
    assert lists.ranks.tolist() == [1, 2, 1, 2, 3]
