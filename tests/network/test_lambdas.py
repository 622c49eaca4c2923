"""The stage 1 loss, in both its forms, equals double loops and a plain pairwise form, values and gradients."""

import math

import pytest
import torch
from torch import Tensor

from plant_cli.network.list_ranking import lambda_loss


@pytest.fixture(params=["chunks", "kernel"], autouse=True)
def form(request: pytest.FixtureRequest) -> None:
    """Everything here holds for plain torch and for the Triton kernel."""
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
        losses.append((change * (r[:, None] > r) * -torch.nn.functional.logsigmoid(sigma * (s[:, None] - s)) / math.log(2)).sum())
    return torch.stack(losses).mean() if losses else 0 * scores.sum()


def random_lists(seed: int, lengths: list[int], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Scores with ties, relevances with ties and zeros."""
    generator = torch.Generator().manual_seed(seed)
    n = sum(lengths)
    scores = (torch.randn(n, generator=generator, dtype=torch.float64) * 3).round(decimals=1).to(dtype).requires_grad_()
    relevance = (torch.rand(n, generator=generator).square() * 8).round() / 8
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    return scores, relevance.to(dtype), offsets


def test_golden_pair() -> None:
    # the relevant word is second: gain 1, discounts 1 and 1/log2(3), ideal 1; the loss is (1 − 0.6309…) · log2(1 + e)
    scores = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    loss = lambda_loss(scores, torch.tensor([0.0, 1.0]), torch.tensor([0, 2]))
    assert loss.item() == pytest.approx((1 - 1 / math.log2(3)) * math.log2(1 + math.e), abs=1e-12)
    loss.backward()
    assert scores.grad is not None
    pull = (1 - 1 / math.log2(3)) / (1 + math.exp(-1)) / math.log(2)
    assert scores.grad.tolist() == pytest.approx([pull, -pull], abs=1e-12)


@pytest.mark.parametrize("lengths", [[5], [2, 0, 7, 1, 40, 3], [90, 33, 32, 31, 64, 65]], ids=str)
@pytest.mark.parametrize(("sigma", "k"), [(1.0, 1000), (0.5, 3), (2.0, 1)])
@pytest.mark.parametrize("pairs", [1, 500, None])
def test_equals_the_pairwise_form(lengths: list[int], sigma: float, k: int, pairs: int | None) -> None:
    scores, relevance, offsets = random_lists(len(lengths), lengths)
    ours = lambda_loss(scores, relevance, offsets, sigma=sigma, k=k, pairs=pairs)
    theirs = pairwise(scores, relevance, offsets, sigma, k)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)
    torch.testing.assert_close(*(torch.autograd.grad(3 * x, scores)[0] for x in (ours, theirs)), rtol=0, atol=1e-10)


def test_equals_double_loops() -> None:
    scores, relevance, offsets = random_lists(5, [6, 9])
    halves = [looped(scores[a:b].tolist(), relevance[a:b].tolist(), 1.3, 4) for a, b in ((0, 6), (6, 15))]
    assert lambda_loss(scores, relevance, offsets, sigma=1.3, k=4).item() == pytest.approx(sum(halves) / 2, abs=1e-10)


def test_single_precision_is_near_double() -> None:
    coarse, relevance, offsets = random_lists(3, [50, 20, 80], torch.float32)
    exact = coarse.detach().double().requires_grad_()
    losses = lambda_loss(coarse, relevance, offsets), lambda_loss(exact, relevance.double(), offsets)
    torch.testing.assert_close(losses[0].double(), losses[1], rtol=1e-6, atol=1e-6)
    gradients = torch.autograd.grad(losses[0], coarse)[0].double(), torch.autograd.grad(losses[1], exact)[0]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)


def test_gradients_of_a_list_sum_to_zero_and_shifting_scores_changes_nothing() -> None:
    scores, relevance, offsets = random_lists(4, [12, 30])
    loss = lambda_loss(scores, relevance, offsets)
    gradient = torch.autograd.grad(loss, scores)[0]
    torch.testing.assert_close(torch.stack([gradient[:12].sum(), gradient[12:].sum()]), torch.zeros(2, dtype=torch.float64))
    torch.testing.assert_close(lambda_loss(scores + 7, relevance, offsets), loss)


def test_lists_without_a_pair_do_not_count() -> None:
    scores, relevance, offsets = random_lists(6, [8])
    empty = torch.tensor([0, 0, 8, 9, 12])
    more = torch.cat([scores, torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)])
    torch.testing.assert_close(
        lambda_loss(more, torch.cat([relevance, torch.tensor([1.0, 0, 0, 0])]), empty), lambda_loss(scores, relevance, offsets)
    )


def test_nothing_to_learn_gives_zero_and_zero_gradient() -> None:
    scores = torch.randn(4, requires_grad=True)
    loss = lambda_loss(scores, torch.zeros(4), torch.tensor([0, 4]))
    assert loss.item() == 0
    assert not torch.autograd.grad(loss, scores)[0].any()
    none = torch.zeros(0, requires_grad=True)
    lambda_loss(none, torch.zeros(0), torch.tensor([0])).backward()


def test_far_apart_scores_stay_finite() -> None:
    scores = torch.tensor([-1e4, 1e4, 0.0], requires_grad=True)
    loss = lambda_loss(scores, torch.tensor([1.0, 0.0, 0.5]), torch.tensor([0, 3]))
    assert torch.isfinite(loss)
    assert torch.isfinite(torch.autograd.grad(loss, scores)[0]).all()


def test_descending_the_loss_puts_words_in_order() -> None:
    scores, relevance, offsets = torch.zeros(6, requires_grad=True), torch.tensor([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), torch.tensor([0, 6])
    optimiser = torch.optim.SGD([scores], lr=2.0)
    for _ in range(50):
        optimiser.zero_grad()
        lambda_loss(scores, relevance, offsets).backward()
        optimiser.step()
    assert scores.argsort().tolist() == [0, 1, 2, 3, 4, 5]
