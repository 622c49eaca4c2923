"""Ragged lists: order, ranks, sums, and chunks that cover every list once within their bound."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.network.list_ranking import chunks, list_numbers, order_within, ranks, sum_lists

OFFSETS = torch.tensor([0, 3, 3, 7])
VALUES = torch.tensor([1.0, 3.0, 1.0, 2.0, 2.0, 9.0, 0.0])


def test_order_ranks_and_sums() -> None:
    assert list_numbers(OFFSETS).tolist() == [0, 0, 0, 2, 2, 2, 2]
    assert order_within(VALUES, OFFSETS).tolist() == [1, 0, 2, 5, 3, 4, 6]
    assert ranks(VALUES, OFFSETS).tolist() == [1, 0, 2, 1, 2, 0, 3]
    assert sum_lists(VALUES, OFFSETS).tolist() == [5.0, 0.0, 13.0]


def test_chunks_hold_each_list_once_within_the_bound() -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(0, 30, (50,), generator=generator)
    leaders = torch.minimum(lengths, torch.randint(0, 12, (50,), generator=generator))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    seen = []
    for chunk in chunks(offsets, leaders, pairs=400, block=5):
        count, longest = chunk.items.shape
        assert count == 1 or count * longest * min(5, chunk.leaders) <= 400
        assert chunk.leaders == leaders[chunk.lists].max()
        for row, number in enumerate(chunk.lists.tolist()):
            assert chunk.items[row][chunk.valid[row]].tolist() == list(range(int(offsets[number]), int(offsets[number + 1])))
            seen.append(number)
    assert sorted(seen) == leaders.nonzero().squeeze(1).tolist()


@given(st.lists(st.lists(st.sampled_from([-torch.inf, 0.0, 0.5, 2.0]), max_size=12), max_size=8))
def test_order_is_that_of_each_list_sorted_by_itself(lists: list[list[float]]) -> None:
    """Lists of like length and of very different ones, empty ones too."""
    ends = torch.tensor([0, *map(len, lists)]).cumsum(0)
    values = torch.tensor([value for one in lists for value in one])
    expected = [int(ends[i]) + j for i, one in enumerate(lists) for j in sorted(range(len(one)), key=lambda j: -one[j])]
    assert order_within(values, ends).tolist() == expected
