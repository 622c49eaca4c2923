"""Batches of like length in a reproducible order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.model.reading import sorted_batches
from plant_cli.training.batches import make_batches, padding_share


@given(sizes=st.lists(st.integers(1, 500), min_size=1, max_size=300), size=st.integers(1, 16), epoch=st.integers(0, 5))
def test_every_row_comes_once(sizes: list[int], size: int, epoch: int) -> None:
    lengths = np.array(sizes)
    batches = make_batches(lengths, size, seed=3, epoch=epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sizes)))
    assert all(1 <= len(rows) <= size for rows in batches)


def test_the_order_follows_from_seed_and_epoch_alone() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 500)
    first = [rows.tolist() for rows in make_batches(lengths, 8, seed=1, epoch=2)]
    assert first == [rows.tolist() for rows in make_batches(lengths, 8, seed=1, epoch=2)]
    assert first != [rows.tolist() for rows in make_batches(lengths, 8, seed=1, epoch=3)]
    assert first != [rows.tolist() for rows in make_batches(lengths, 8, seed=2, epoch=2)]


def test_buckets_leave_little_padding() -> None:
    lengths = np.random.default_rng(0).integers(1, 400, 4000)
    shuffled = np.array_split(np.random.default_rng(1).permutation(4000), 500)
    assert padding_share(lengths, make_batches(lengths, 8, seed=0, epoch=0)) < 0.1 < 0.4 < padding_share(lengths, list(shuffled))


def test_scoring_begins_with_the_longest() -> None:
    batches = sorted_batches(np.array([3, 9, 1, 9, 4]), 2)
    assert [rows.tolist() for rows in batches] == [[1, 3], [4, 0], [2]]
