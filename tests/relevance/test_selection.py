import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.relevance.selection import best


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -np.inf]), max_size=40), st.integers(1, 45), st.randoms(use_true_random=False))
def test_equals_a_full_sort(values: list[float], k: int, shuffle: object) -> None:
    words = np.random.default_rng(len(values)).permutation(len(values))
    expected = sorted(range(len(values)), key=lambda i: (-values[i], words[i]))[:k]
    assert best(np.array(values, dtype=np.float64), words, k).tolist() == expected


def test_the_tie_at_the_last_place_goes_to_the_smaller_index() -> None:
    assert best(np.array([1.0, 2.0, 1.0, 1.0]), np.array([9, 4, 3, 7]), 3).tolist() == [1, 2, 3]
