"""Windows over long documents, and joining their hidden states."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plant_backbones.windows import check_overlap, cut, join_windows, window_starts

from plant_cli.api import ComponentError, TokenBatch


def batch_of(*sizes: int) -> TokenBatch:
    ids = [
        np.arange(100 * row + 1, 100 * row + 1 + size, dtype=np.int32)
        for row, size in enumerate(sizes)
    ]
    spans = [
        np.stack([np.arange(size), np.arange(size) + 1], axis=1).astype(np.int32) for size in sizes
    ]
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
    assert all(b - a <= max(1, size - overlap) for a, b in pairwise(starts))


def test_an_overlap_that_leaves_nothing_new_is_refused() -> None:
    check_overlap(34, 31, special=2)
    with pytest.raises(
        ComponentError, match="overlap of 32 tokens leaves nothing new in a window of 32"
    ) as caught:
        check_overlap(34, 32, special=2)
    assert "--set model.backbone.overlap=4" in caught.value.todo


def test_special_tokens_frame_each_window_and_are_left_out_of_the_join() -> None:
    windows = cut(batch_of(3, 7), size=6, overlap=1, prefix=[901], suffix=[902], pad=0)
    assert windows.ids[0].tolist() == [901, 1, 2, 3, 902, 0]
    assert all(row[0] == 901 for row in windows.ids.tolist())
    joined, mask = join_windows(windows.ids.unsqueeze(-1).double(), windows)
    assert mask.sum(dim=1).tolist() == [3, 7]
    assert joined[0, :3, 0].tolist() == [1, 2, 3]
    assert joined[1, :, 0].tolist() == [101, 102, 103, 104, 105, 106, 107]
    assert joined[0, 3:, 0].abs().sum() == 0


def test_overlapping_states_are_averaged() -> None:
    windows = cut(batch_of(5), size=3, overlap=1, prefix=[], suffix=[], pad=0)
    states = torch.tensor([[[1.0], [1.0], [1.0]], [[3.0], [3.0], [3.0]]])
    joined, mask = join_windows(states, windows)
    assert joined[0, :, 0].tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert mask.all()


def test_gradients_reach_every_window() -> None:
    windows = cut(batch_of(5, 2), size=3, overlap=1, prefix=[], suffix=[], pad=0)
    states = torch.randn(*windows.ids.shape, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: join_windows(x, windows)[0], states)


@pytest.mark.parametrize("prefix", [[9], []])
@pytest.mark.parametrize("sizes", [(0, 2), (0,), (1,), (4, 9, 2)])
def test_documents_that_fit_have_one_window_and_those_without_tokens_an_empty_mask(
    sizes: tuple[int, ...], prefix: list[int]
) -> None:
    windows = cut(batch_of(*sizes), size=16, overlap=2, prefix=prefix, suffix=prefix, pad=0)
    assert len(windows.ids) == len(sizes)
    joined, mask = join_windows(torch.ones(*windows.ids.shape, 3), windows)
    assert mask.sum(1).tolist() == list(sizes)
    assert joined.shape == (len(sizes), max(1, *sizes, 0), 3)
    assert not joined[~mask].any()


def test_windows_are_filled_up_to_whole_tiles_but_never_beyond_what_is_read_at_once() -> None:
    widths = [
        cut(batch_of(length), size=40, overlap=2, prefix=[1], suffix=[2], pad=0).ids.shape[1]
        for length in (0, 14, 15, 30, 38, 90)
    ]
    assert widths == [16, 16, 32, 32, 40, 40]
