"""Which words a reason names."""

from __future__ import annotations

import numpy as np
from plant_scorers.vectors import SHOWN, name_largest
from scipy.sparse import csr_array

from plant_cli.api import Reason

WORDS = ["acute", "bronchitis", "cough", "fever", "the"]


def test_the_words_that_add_most_are_named_largest_first() -> None:
    added = csr_array(np.array([[0.1, 0.4, 0.0, 0.3, 0.2], [0.0, 0.0, 0.0, 0.0, 0.5]]))
    assert name_largest(added, WORDS) == [
        Reason(text="bronchitis, fever, the", words=("bronchitis", "fever", "the")),
        Reason(text="the", words=("the",)),
    ]
    assert SHOWN == 3


def test_words_that_add_the_same_keep_their_order() -> None:
    [found] = name_largest(csr_array(np.full((1, 5), 0.2)), WORDS)
    assert found.words == ("acute", "bronchitis", "cough")


def test_words_that_add_nothing_or_less_are_not_named() -> None:
    stored = csr_array((np.array([0.0, -0.4, 0.2]), np.array([0, 1, 2]), np.array([0, 3, 3])), shape=(2, 5))
    assert name_largest(stored, WORDS) == [Reason(text="cough", words=("cough",)), Reason(text="", words=())]
