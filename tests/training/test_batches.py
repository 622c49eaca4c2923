"""Steps of so many documents, in micro-batches of like length, in a reproducible order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.network.reading import sorted_batches
from plant_cli.training.materials import BUCKET, make_steps, micro_sizes, padding_share

SIZES = st.lists(st.integers(1, 500), min_size=1, max_size=300)


@given(sizes=SIZES, batch=st.integers(1, 40), micro_batch=st.integers(1, 16), epoch=st.integers(0, 5))
def test_every_row_comes_once(sizes: list[int], batch: int, micro_batch: int, epoch: int) -> None:
    lengths = np.array(sizes)
    steps = make_steps(lengths, batch, micro_batch, seed=3, epoch=epoch)
    assert sorted(np.concatenate([rows for step in steps for rows in step]).tolist()) == list(range(len(sizes)))
    assert all(1 <= len(rows) <= micro_batch for step in steps for rows in step)
    assert all(1 <= len(step) <= len(micro_sizes(batch, micro_batch)) for step in steps)


@given(sizes=SIZES, batch=st.integers(1, 40), micro_batch=st.integers(1, 16))
def test_a_step_has_exactly_its_documents_and_the_last_one_what_is_left_over(sizes: list[int], batch: int, micro_batch: int) -> None:
    if batch % micro_batch == 0:
        sizes = sizes * micro_batch  # all micro-batches are full
    found = [sum(map(len, step)) for step in make_steps(np.array(sizes), batch, micro_batch, seed=0, epoch=0)]
    whole, rest = divmod(len(sizes), batch)
    assert found == [batch] * whole + [rest] * (rest > 0)


@given(sizes=SIZES, count=st.integers(1, 5), micro_batch=st.integers(1, 16), epoch=st.integers(0, 5))
def test_multiples_of_the_micro_batch_come_in_the_order_of_a_plain_shuffle(
    sizes: list[int], count: int, micro_batch: int, epoch: int
) -> None:
    """A plain loop, which cuts the shuffled micro-batches into steps."""
    lengths, draw, plain = np.array(sizes), np.random.default_rng([7, epoch]), list[Any]()
    order = draw.permutation(len(lengths))
    for start in range(0, len(order), micro_batch * BUCKET):
        bucket = order[start : start + micro_batch * BUCKET]
        bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
        plain.extend(bucket[i : i + micro_batch].tolist() for i in range(0, len(bucket), micro_batch))
    plain = [plain[i] for i in draw.permutation(len(plain))]
    steps = make_steps(lengths, count * micro_batch, micro_batch, seed=7, epoch=epoch)
    assert [[rows.tolist() for rows in step] for step in steps] == [plain[i : i + count] for i in range(0, len(plain), count)]


@pytest.mark.parametrize(
    ("batch", "micro_batch", "sizes"),
    [(32, 8, [8, 8, 8, 8]), (4, 8, [4]), (1, 8, [1]), (12, 8, [6, 6]), (20, 8, [7, 7, 6]), (28, 8, [7, 7, 7, 7]), (13, 8, [7, 6])],
)
def test_a_step_is_cut_evenly_into_as_few_micro_batches_as_can_be(batch: int, micro_batch: int, sizes: list[int]) -> None:
    assert micro_sizes(batch, micro_batch) == sizes
    step = make_steps(np.arange(1, 1 + 4 * batch), batch, micro_batch, seed=0, epoch=0)[0]
    assert [len(rows) for rows in step] == sizes


@pytest.mark.parametrize("batch", [8, 16, 20])
def test_the_order_follows_from_seed_and_epoch_alone(batch: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 500)

    def order(seed: int, epoch: int) -> list[list[list[int]]]:
        return [[rows.tolist() for rows in step] for step in make_steps(lengths, batch, 8, seed=seed, epoch=epoch)]

    first = order(1, 2)
    assert first == order(1, 2)
    assert first != order(1, 3)
    assert first != order(2, 2)


@pytest.mark.parametrize("batch", [8, 32, 20])
def test_buckets_leave_little_padding(batch: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 400, 4000)
    shuffled = np.array_split(np.random.default_rng(1).permutation(4000), 500)
    assert padding_share(lengths, make_steps(lengths, batch, 8, seed=0, epoch=0)) < 0.1 < 0.4 < padding_share(lengths, [list(shuffled)])


def test_scoring_begins_with_the_longest() -> None:
    batches = sorted_batches(np.array([3, 9, 1, 9, 4]), 2)
    assert [rows.tolist() for rows in batches] == [[1, 3], [4, 0], [2]]
