"""Windows over long documents, and joining their hidden states."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api import ComponentError, TokenBatch
from plant_cli.network.windows import check_overlap, cut, join, window_starts


def batch_of(*sizes: int) -> TokenBatch:
    ids = [np.arange(100 * row + 1, 100 * row + 1 + size, dtype=np.int32) for row, size in enumerate(sizes)]
    spans = [np.stack([np.arange(size), np.arange(size) + 1], axis=1).astype(np.int32) for size in sizes]
    return TokenBatch(ids=ids, spans=spans, dropped=[0] * len(sizes))


@given(length=st.integers(0, 400), size=st.integers(1, 64), overlap=st.integers(0, 80))
def test_windows_cover_every_token_and_stay_inside(length: int, size: int, overlap: int) -> None:
    covered = np.zeros(length, dtype=int)
    starts = window_starts(length, size, overlap)
    for start in starts:
        assert start >= 0
        assert start + min(size, length) <= max(length, size)
        covered[start : start + size] += 1
    assert (covered > 0).all()
    assert starts == sorted(set(starts))


def test_neighbouring_windows_share_at_least_the_overlap() -> None:
    starts = window_starts(100, 20, 5)
    assert all(b - a <= 15 for a, b in pairwise(starts))


def test_an_overlap_that_leaves_nothing_new_is_refused() -> None:
    check_overlap(34, 31, special=2)
    with pytest.raises(ComponentError, match="overlap of 32 tokens leaves nothing new in a window of 32") as caught:
        check_overlap(34, 32, special=2)
    assert "--set model.backbone.overlap=4" in caught.value.todo


def test_special_tokens_frame_each_window_and_are_left_out_of_the_join() -> None:
    windows = cut(batch_of(3, 7), size=6, overlap=1, prefix=[901], suffix=[902], pad=0)
    assert windows.ids[0].tolist() == [901, 1, 2, 3, 902, 0]
    assert all(row[0] == 901 for row in windows.ids.tolist())
    joined, mask = join(windows.ids.unsqueeze(-1).double(), windows)
    assert mask.sum(dim=1).tolist() == [3, 7]
    assert joined[0, :3, 0].tolist() == [1, 2, 3]
    assert joined[1, :, 0].tolist() == [101, 102, 103, 104, 105, 106, 107]
    assert joined[0, 3:, 0].abs().sum() == 0


def test_overlapping_states_are_averaged() -> None:
    windows = cut(batch_of(5), size=3, overlap=1, prefix=[], suffix=[], pad=0)
    states = torch.tensor([[[1.0], [1.0], [1.0]], [[3.0], [3.0], [3.0]]])
    joined, mask = join(states, windows)
    assert joined[0, :, 0].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert mask.all()


def test_gradients_reach_every_window() -> None:
    windows = cut(batch_of(5, 2), size=3, overlap=1, prefix=[], suffix=[], pad=0)
    states = torch.randn(*windows.ids.shape, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: join(x, windows)[0], states)


def test_a_document_without_tokens_has_an_empty_mask() -> None:
    windows = cut(batch_of(0, 2), size=8, overlap=0, prefix=[9], suffix=[9], pad=0)
    joined, mask = join(torch.randn(*windows.ids.shape, 3), windows)
    assert mask.tolist() == [[False, False], [True, True]]
    assert joined.shape == (2, 2, 3)


@pytest.mark.parametrize("sizes", [(1,), (4, 9, 2)])
def test_one_window_a_document_when_it_fits(sizes: tuple[int, ...]) -> None:
    assert len(cut(batch_of(*sizes), size=32, overlap=4, prefix=[1], suffix=[2], pad=0).ids) == len(sizes)


def test_documents_without_any_token_still_have_a_position() -> None:
    nothing = TokenBatch(ids=[np.zeros(0, dtype=np.int32)], spans=[np.zeros((0, 2), dtype=np.int32)], dropped=[0])
    windows = cut(nothing, size=8, overlap=2, prefix=[], suffix=[], pad=0)
    assert (windows.ids.shape, windows.mask.any().item()) == ((1, 8), False)
    hidden, mask = join(torch.ones(1, 8, 3), windows)
    assert (hidden.shape, hidden.any().item(), mask.tolist()) == ((1, 1, 3), False, [[False]])


def test_windows_are_filled_up_to_whole_tiles_but_never_beyond_what_is_read_at_once() -> None:
    widths = [cut(batch_of(length), size=40, overlap=2, prefix=[1], suffix=[2], pad=0).ids.shape[1] for length in (0, 14, 15, 30, 38, 90)]
    assert widths == [16, 16, 32, 32, 40, 40]
