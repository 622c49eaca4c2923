"""Ranking losses and figures of ragged lists equal their definitions, and kernels equal them."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plant_losses.list_ranking import (
    _pair_sums,
    approx_ndcg_loss,
    lambda_loss,
    listnet_loss,
    standardised_mse,
)
from plant_network.ranked_lists import (
    chunks,
    kendall_tau,
    list_numbers,
    ndcg,
    order_within,
    random_ndcg,
    ranks,
    sum_lists,
)
from references import assert_equal, exact
from scipy.stats import kendalltau
from sklearn.metrics import ndcg_score
from torch import Tensor


@pytest.fixture(params=["chunks", "kernel"])
def form(request: pytest.FixtureRequest) -> None:
    """The lambda loss is the same by plain torch and by the Triton kernel."""
    if request.param == "kernel":
        request.getfixturevalue("kernels")


def looped(scores: list[float], relevance: list[float], sigma: float, k: int) -> float:
    """One list, exactly as the formula reads."""
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    rank = {item: position for position, item in enumerate(order)}

    def discount(position: int) -> float:
        return 1 / math.log2(2 + position) if position < k else 0.0

    gain = [2**r - 1 for r in relevance]
    ideal = sum(g * discount(position) for position, g in enumerate(sorted(gain, reverse=True)))
    total = 0.0
    for j in range(len(scores)):
        for h in range(len(scores)):
            if relevance[j] > relevance[h]:
                change = abs((gain[j] - gain[h]) * (discount(rank[j]) - discount(rank[h]))) / ideal
                total += change * math.log2(1 + math.exp(-sigma * (scores[j] - scores[h])))
    return total


def pairwise(scores: Tensor, relevance: Tensor, offsets: Tensor, sigma: float, k: int) -> Tensor:
    """The plain tensor form with all pairs of a list, differentiated by autograd."""
    losses = []
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        s, r = scores[start:end], relevance[start:end].to(scores.dtype)
        if end - start < 2 or not (r > 0).any():
            continue
        rank = torch.argsort(torch.argsort(s.detach(), descending=True, stable=True))
        discount = torch.where(rank < k, 1 / torch.log2(rank.to(s.dtype) + 2), 0)
        gain = 2**r - 1
        best = torch.arange(min(k, end - start), dtype=s.dtype)
        ideal = (gain.sort(descending=True).values[:k] / torch.log2(best + 2)).sum()
        change = ((gain[:, None] - gain) * (discount[:, None] - discount)).abs() / ideal
        losses.append(
            (
                change
                * (r[:, None] > r)
                * -torch.nn.functional.logsigmoid(sigma * (s[:, None] - s))
                / math.log(2)
            ).sum()
        )
    return torch.stack(losses).mean() if losses else 0 * scores.sum()


def random_lists(
    seed: int, lengths: list[int], dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores with ties, relevances with ties and zeros."""
    generator = torch.Generator().manual_seed(seed)
    n = sum(lengths)
    scores = (
        (torch.randn(n, generator=generator, dtype=torch.float64) * 3)
        .round(decimals=1)
        .to(dtype)
        .requires_grad_()
    )
    relevance = (torch.rand(n, generator=generator).square() * 8).round() / 8
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return scores, relevance.to(dtype), offsets


@pytest.mark.usefixtures("form")
def test_golden_pair() -> None:
    # the relevant word is second: gain 1, discounts 1 and 1/log2(3), ideal 1; the loss is (1 −
    # 0.6309…) · log2(1 + e)
    scores = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    loss = lambda_loss(scores, torch.tensor([0.0, 1.0]), torch.tensor([0, 2]))
    assert loss.item() == pytest.approx((1 - 1 / math.log2(3)) * math.log2(1 + math.e), abs=1e-12)
    loss.backward()
    assert scores.grad is not None
    pull = (1 - 1 / math.log2(3)) / (1 + math.exp(-1)) / math.log(2)
    assert scores.grad.tolist() == pytest.approx([pull, -pull], abs=1e-12)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("lengths", [[5], [2, 0, 7, 1, 40, 3], [90, 33, 32, 31, 64, 65]], ids=str)
@pytest.mark.parametrize(("sigma", "k"), [(1.0, 1000), (0.5, 3), (2.0, 1)])
@pytest.mark.parametrize("pairs", [1, 500, None])
def test_equals_the_pairwise_form(
    lengths: list[int], sigma: float, k: int, pairs: int | None
) -> None:
    scores, relevance, offsets = random_lists(len(lengths), lengths)
    ours = lambda_loss(scores, relevance, offsets, sigma=sigma, k=k, pairs=pairs)
    theirs = pairwise(scores, relevance, offsets, sigma, k)
    assert_equal((ours, [scores]), (theirs, [scores]), torch.tensor(3.0), tolerance=1e-10)


@pytest.mark.usefixtures("form")
def test_equals_double_loops() -> None:
    scores, relevance, offsets = random_lists(5, [6, 9])
    halves = [
        looped(scores[a:b].tolist(), relevance[a:b].tolist(), 1.3, 4) for a, b in ((0, 6), (6, 15))
    ]
    assert lambda_loss(scores, relevance, offsets, sigma=1.3, k=4).item() == pytest.approx(
        sum(halves) / 2, abs=1e-10
    )


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 0.01)], ids=str
)
def test_coarse_scores_keep_their_type_and_are_summed_in_fp32(
    dtype: torch.dtype, tolerance: float
) -> None:
    coarse, relevance, offsets = random_lists(3, [50, 20, 80], dtype)
    fine = exact([coarse])
    ours, theirs = (
        lambda_loss(coarse, relevance.float(), offsets),
        lambda_loss(fine[0], relevance.double(), offsets),
    )
    assert_equal(
        (ours, [coarse]), (theirs, fine), torch.tensor(1.0), tolerance=1e-5, gradients=tolerance
    )


@pytest.mark.usefixtures("form")
def test_gradients_of_a_list_sum_to_zero_and_shifting_scores_changes_nothing() -> None:
    scores, relevance, offsets = random_lists(4, [12, 30])
    loss = lambda_loss(scores, relevance, offsets)
    gradient = torch.autograd.grad(loss, scores)[0]
    torch.testing.assert_close(
        torch.stack([gradient[:12].sum(), gradient[12:].sum()]), torch.zeros(2, dtype=torch.float64)
    )
    torch.testing.assert_close(lambda_loss(scores + 7, relevance, offsets), loss)


@pytest.mark.usefixtures("form")
def test_lists_without_a_pair_do_not_count() -> None:
    scores, relevance, offsets = random_lists(6, [8])
    empty = torch.tensor([0, 0, 8, 9, 12])
    more = torch.cat([scores, torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)])
    torch.testing.assert_close(
        lambda_loss(more, torch.cat([relevance, torch.tensor([1.0, 0, 0, 0])]), empty),
        lambda_loss(scores, relevance, offsets),
    )


@pytest.mark.usefixtures("form")
def test_nothing_to_learn_gives_zero_and_zero_gradient() -> None:
    for count in (4, 0):
        scores = torch.randn(count, requires_grad=True)
        loss = lambda_loss(scores, torch.zeros(count), torch.tensor([0, count] if count else [0]))
        assert loss.item() == 0
        assert not torch.autograd.grad(loss, scores)[0].any()


@pytest.mark.usefixtures("form")
def test_far_apart_scores_stay_finite() -> None:
    scores = torch.tensor([-1e4, 1e4, 0.0], requires_grad=True)
    loss = lambda_loss(scores, torch.tensor([1.0, 0.0, 0.5]), torch.tensor([0, 3]))
    assert torch.isfinite(loss)
    assert torch.isfinite(torch.autograd.grad(loss, scores)[0]).all()


LISTWISE_OFFSETS = torch.tensor([0, 5, 5, 6, 14])  # lists of 5, 0, 1 and 8 items
LISTWISE_LISTS = [(0, 5), (6, 14)]


def items() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(14, generator=generator, dtype=torch.float64).requires_grad_()
    return scores, torch.rand(14, generator=generator, dtype=torch.float64).round(decimals=1)


def plain_approx_ndcg(gain: Tensor, s: Tensor) -> Tensor:
    others = ~torch.eye(len(s), dtype=torch.bool)
    rank = 1 + (torch.sigmoid((s - s[:, None]) / 0.3) * others).sum(1)
    ideal = (
        gain.sort(descending=True).values / torch.log2(torch.arange(len(s)).double() + 2)
    ).sum()
    return 1 - (gain / torch.log2(1 + rank)).sum() / ideal


def plain_listnet(s: Tensor, r: Tensor) -> Tensor:
    return -(torch.softmax(r / 0.3, 0) * torch.log_softmax(s, 0)).sum()


def plain_mse(s: Tensor, r: Tensor) -> Tensor:
    return ((s - s.mean()) - (r - r.mean()) / r.std(correction=0)).square().mean()


LOSSES: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    "approx-ndcg": (
        partial(approx_ndcg_loss, temperature=0.3),
        lambda s, r: plain_approx_ndcg(2**r - 1, s),
    ),
    "approx-ndcg-linear": (
        partial(approx_ndcg_loss, temperature=0.3, gain="linear"),
        lambda s, r: plain_approx_ndcg(r, s),
    ),
    "listnet": (partial(listnet_loss, temperature=0.3), plain_listnet),
    "mse": (standardised_mse, plain_mse),
}


@pytest.mark.parametrize("name", LOSSES)
def test_listwise_losses_equal_the_plain_form_of_each_list(name: str) -> None:
    loss, plain = LOSSES[name]
    scores, relevance = items()
    theirs = torch.stack([plain(scores[a:b], relevance[a:b]) for a, b in LISTWISE_LISTS]).mean()
    assert_equal(
        (loss(scores, relevance, LISTWISE_OFFSETS), [scores]),
        (theirs, [scores]),
        torch.tensor(1.0),
        tolerance=1e-10,
    )


@pytest.mark.parametrize("name", LOSSES)
def test_listwise_losses_with_nothing_to_learn_have_no_gradient(name: str) -> None:
    scores = torch.randn(2, requires_grad=True)
    value = LOSSES[name][0](scores, torch.zeros(2), torch.tensor([0, 1, 1, 2]))
    assert value.item() == 0
    assert not torch.autograd.grad(value, scores)[0].any()


def test_golden_numbers() -> None:
    scores = torch.tensor([3.0, 2.0, 1.0, 5.0, 5.0, 0.0], dtype=torch.float64)
    relevance = torch.tensor([0.0, 1.0, 2.0, 1.0, 0.0, 0.0], dtype=torch.float64)
    first = (1 / math.log2(3) + 3 / 2) / (
        3 + 1 / math.log2(3)
    )  # gains 0, 1, 3 in this order; the best order is 3, 1, 0
    values = ndcg(scores, relevance, torch.tensor([0, 3, 5, 6]), k=10)
    assert values[:2].tolist() == pytest.approx(
        [first, 1.0], abs=1e-12
    )  # the second list's tie is in order of position
    assert math.isnan(values[2])
    # uniform target and scores: the entropy of two equal words
    assert listnet_loss(
        torch.zeros(2), torch.ones(2), torch.tensor([0, 2]), temperature=1.0
    ).item() == pytest.approx(math.log(2))


def test_cut_at_k() -> None:
    scores, relevance = torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0.0, 0.0, 1.0])
    offsets = torch.tensor([0, 3])
    assert ndcg(scores, relevance, offsets, k=2).item() == 0
    assert ndcg(scores, relevance, offsets, k=3).item() == pytest.approx(0.5)


def test_equals_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(0)
    scores, relevance = (torch.rand(30, generator=generator, dtype=torch.float64) for _ in range(2))
    for k in (1, 5, 30):
        expected = [
            ndcg_score([(2 ** relevance[a:b] - 1).tolist()], [scores[a:b].tolist()], k=k)
            for a, b in ((0, 10), (10, 30))
        ]
        assert ndcg(scores, relevance, torch.tensor([0, 10, 30]), k).tolist() == pytest.approx(
            expected, abs=1e-12
        )


@pytest.mark.parametrize("k", [1, 2, 10])
def test_expectation_is_the_mean_over_all_orders(k: int) -> None:
    relevance = torch.tensor([0.0, 0.3, 1.0, 0.3], dtype=torch.float64)
    orders = torch.tensor(list(itertools.permutations(range(4))), dtype=torch.float64)
    offsets = torch.arange(0, 4 * len(orders) + 1, 4)
    mean = ndcg(orders.flatten(), relevance.repeat(len(orders)), offsets, k).mean()
    torch.testing.assert_close(random_ndcg(relevance, torch.tensor([0, 4]), k), mean.reshape(1))


def test_equals_scipy_with_ties() -> None:
    generator = torch.Generator().manual_seed(0)
    offsets = torch.tensor([0, 12, 17, 40])
    scores = torch.randint(0, 6, (40,), generator=generator).float()
    relevance = torch.randint(0, 4, (40,), generator=generator).float()
    expected = [
        kendalltau(scores[a:b], relevance[a:b]).statistic for a, b in ((0, 12), (12, 17), (17, 40))
    ]
    assert kendall_tau(scores, relevance, offsets).tolist() == pytest.approx(expected, abs=1e-12)
    values = kendall_tau(
        torch.tensor([1.0, 2.0, 5.0]), torch.tensor([1.0, 1.0, 2.0]), torch.tensor([0, 2, 3, 3])
    )
    assert all(math.isnan(v) for v in values.tolist())


def test_order_ranks_and_sums() -> None:
    values, offsets = torch.tensor([1.0, 3.0, 1.0, 2.0, 2.0, 9.0, 0.0]), torch.tensor([0, 3, 3, 7])
    assert list_numbers(offsets).tolist() == [0, 0, 0, 2, 2, 2, 2]
    assert order_within(values, offsets).tolist() == [1, 0, 2, 5, 3, 4, 6]
    assert ranks(values, offsets).tolist() == [1, 0, 2, 1, 2, 0, 3]
    assert sum_lists(values, offsets).tolist() == [5.0, 0.0, 13.0]


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
            assert chunk.items[row][chunk.valid[row]].tolist() == list(
                range(int(offsets[number]), int(offsets[number + 1]))
            )
            seen.append(number)
    assert sorted(seen) == leaders.nonzero().squeeze(1).tolist()


@given(st.lists(st.lists(st.sampled_from([-torch.inf, 0.0, 0.5, 2.0]), max_size=12), max_size=8))
def test_order_is_that_of_each_list_sorted_by_itself(lists: list[list[float]]) -> None:
    """Lists of like length and of very different ones, empty ones too."""
    ends = torch.tensor([0, *map(len, lists)]).cumsum(0)
    values = torch.tensor([value for one in lists for value in one])
    expected = [
        int(ends[i]) + j
        for i, one in enumerate(lists)
        for j in sorted(range(len(one)), key=lambda j: -one[j])
    ]
    assert order_within(values, ends).tolist() == expected


CARD = torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
LENGTHS = {
    "blocks begin and end inside lists": [64, 65, 1, 128, 63, 0, 130],
    "one-item lists": [1, 1, 1],
    "no list": [],
    "empty lists": [0, 0],
}
NO_CARD = pytest.mark.skipif(not CARD, reason="no graphics card, or Triton's interpreter is on")
KERNELS: list[Any] = [("cpu", torch.float64, 1e-12), ("cpu", torch.float32, 1e-5)]
KERNELS += [
    pytest.param("cuda", dtype, tolerance, marks=NO_CARD)
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5))
]


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize(("device", "dtype", "tolerance"), KERNELS, ids=str)
def test_sums_equal_those_by_chunks(
    request: pytest.FixtureRequest, name: str, device: str, dtype: torch.dtype, tolerance: float
) -> None:
    """Scores with ties; relevances as repeated words have them: few values, often none; one
    list where all are alike.
    """
    if device == "cpu":
        request.getfixturevalue("kernels")
    from plant_losses.ranking_kernels import pair_sums

    lengths = LENGTHS[name]
    generator = torch.Generator().manual_seed(len(lengths))
    n = sum(lengths)
    scores = (
        (torch.randn(n, generator=generator, dtype=torch.float64) * 2).round(decimals=1).to(dtype)
    )
    relevance = torch.randint(0, 4, (n,), generator=generator).to(dtype) / 4
    relevance[: lengths[0] if lengths else 0] = 0.5
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    expected = _pair_sums(scores.double(), relevance.double(), offsets, 1.3, 100, 1 << 18)
    found = pair_sums(scores.to(device), relevance.to(device), offsets.to(device), 1.3, 100)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.cpu().double(), theirs, rtol=tolerance, atol=tolerance)
