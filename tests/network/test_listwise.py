"""The other stage 1 losses: plain forms per list, gradients, and lists that do not count."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from plant_cli.network.list_ranking import approx_ndcg_loss, listnet_loss, standardised_mse

OFFSETS = torch.tensor([0, 5, 5, 6, 14])  # lists of 5, 0, 1 and 8 items
LISTS = [(0, 5), (6, 14)]


def items() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(14, generator=generator, dtype=torch.float64).requires_grad_()
    return scores, torch.rand(14, generator=generator, dtype=torch.float64).round(decimals=1)


def plain_approx_ndcg(s: Tensor, r: Tensor) -> Tensor:
    return plain_approx_ndcg_of(2**r - 1, s)


def plain_linear_ndcg(s: Tensor, r: Tensor) -> Tensor:
    return plain_approx_ndcg_of(r, s)


def plain_approx_ndcg_of(gain: Tensor, s: Tensor) -> Tensor:
    others = ~torch.eye(len(s), dtype=torch.bool)
    rank = 1 + (torch.sigmoid((s - s[:, None]) / 0.3) * others).sum(1)
    ideal = (gain.sort(descending=True).values / torch.log2(torch.arange(len(s)).double() + 2)).sum()
    return 1 - (gain / torch.log2(1 + rank)).sum() / ideal


def plain_listnet(s: Tensor, r: Tensor) -> Tensor:
    return -(torch.softmax(r / 0.3, 0) * torch.log_softmax(s, 0)).sum()


def plain_mse(s: Tensor, r: Tensor) -> Tensor:
    return ((s - s.mean()) - (r - r.mean()) / r.std(correction=0)).square().mean()


LOSSES: list[tuple[Callable[..., Tensor], dict[str, float | str], Callable[[Tensor, Tensor], Tensor]]] = [
    (approx_ndcg_loss, {"temperature": 0.3}, plain_approx_ndcg),
    (approx_ndcg_loss, {"temperature": 0.3, "gain": "linear"}, plain_linear_ndcg),
    (listnet_loss, {"temperature": 0.3}, plain_listnet),
    (standardised_mse, {}, plain_mse),
]
NAMES = ["approx-ndcg", "approx-ndcg-linear", "listnet", "mse"]


@pytest.mark.parametrize(("loss", "options", "plain"), LOSSES, ids=NAMES)
def test_equals_the_plain_form_of_each_list(
    loss: Callable[..., Tensor], options: dict[str, float | str], plain: Callable[..., Tensor]
) -> None:
    scores, relevance = items()
    ours = loss(scores, relevance, OFFSETS, **options)
    theirs = torch.stack([plain(scores[a:b], relevance[a:b]) for a, b in LISTS]).mean()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    torch.testing.assert_close(*(torch.autograd.grad(x, scores)[0] for x in (ours, theirs)), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("loss", "options", "plain"), LOSSES, ids=NAMES)
def test_nothing_to_learn_gives_zero_gradient(loss: Callable[..., Tensor], options: dict[str, float | str], plain: object) -> None:
    scores = torch.randn(2, requires_grad=True)
    value = loss(scores, torch.zeros(2), torch.tensor([0, 1, 1, 2]), **options)
    assert value.item() == 0
    assert not torch.autograd.grad(value, scores)[0].any()


def test_golden_listnet() -> None:
    # uniform target and scores: the entropy of two equal words
    assert listnet_loss(torch.zeros(2), torch.ones(2), torch.tensor([0, 2]), temperature=1.0).item() == pytest.approx(math.log(2))
