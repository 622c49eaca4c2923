"""Inattention beside a plain loop, in double precision."""

from __future__ import annotations

import math

import pytest
import torch
from plant_decoders.planted_l2r import inattention, k_largest, masked_log_softmax, masked_softmax
from torch import Tensor


def plain(scores: list[float], real: list[bool], k: int | None, dropped: str) -> list[float]:
    """One row: the k-th largest score is the limit, then a softmax."""
    places = [i for i, there in enumerate(real) if there]
    limit = sorted((scores[i] for i in places), reverse=True)[min(k, len(places)) - 1] if k is not None and places else -math.inf
    weight = [0.0] * len(scores)
    for i in places:
        if scores[i] >= limit:
            weight[i] = math.exp(scores[i])
        elif dropped == "zero":
            weight[i] = 1.0
    total = sum(weight)
    return [w / total if total else 0.0 for w in weight]


@pytest.fixture
def sample() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    scores = torch.randn(4, 3, 7, dtype=torch.float64)
    scores[0, 0, 2] = scores[0, 0, 5]  # equal scores
    mask = torch.arange(7)[None, None] < torch.tensor([7, 4, 1, 0])[:, None, None]
    return scores, mask


@pytest.mark.parametrize("k", [1, 2, 4, 7, 50, None])
@pytest.mark.parametrize("dropped", ["mask", "zero"])
def test_values_are_those_of_the_loop(k: int | None, dropped: str, sample: tuple[Tensor, Tensor]) -> None:
    scores, mask = sample
    found = inattention(scores, mask, k, dropped)  # type: ignore[arg-type]
    there = mask.expand(scores.shape)
    expected = [[plain(s.tolist(), m.tolist(), k, dropped) for s, m in zip(a, b, strict=True)] for a, b in zip(scores, there, strict=True)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-14)


@pytest.mark.parametrize("dropped", ["mask", "zero"])
def test_gradients_are_those_of_finite_differences(dropped: str, sample: tuple[Tensor, Tensor]) -> None:
    scores, mask = sample
    scores = scores.clone().requires_grad_()
    weight = torch.randn_like(scores)
    (gradient,) = torch.autograd.grad((inattention(scores, mask, 3, dropped) * weight).sum(), scores)  # type: ignore[arg-type]
    for place in ((0, 1, 0), (0, 2, 6), (1, 0, 3), (2, 1, 0)):
        step = torch.zeros_like(scores)
        step[place] = 1e-6
        ends = [(inattention(scores.detach() + sign * step, mask, 3, dropped) * weight).sum() for sign in (1, -1)]  # type: ignore[arg-type]
        assert float(gradient[place]) == pytest.approx(float((ends[0] - ends[1]) / 2e-6), abs=1e-7)
    assert not bool(gradient[~mask.expand(scores.shape)].any())


def test_equal_scores_stay_together(sample: tuple[Tensor, Tensor]) -> None:
    scores = torch.tensor([2.0, 1.0, 1.0, 1.0, 0.0])
    assert k_largest(scores, torch.ones(5, dtype=torch.bool), 2).tolist() == [True, True, True, True, False]


def test_rows_without_tokens_are_zero_and_have_gradients() -> None:
    scores = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    found = masked_softmax(scores, mask)
    found.square().sum().backward()
    assert found[1].tolist() == [0.0, 0.0, 0.0]
    assert scores.grad is not None
    assert bool(scores.grad.isfinite().all())
    logs = masked_log_softmax(scores, mask)
    assert torch.isneginf(logs[~mask]).all()
    torch.testing.assert_close(logs[0].exp(), found[0])


def test_bf16_scores_have_a_softmax_in_fp32() -> None:
    assert masked_softmax(torch.randn(2, 3).bfloat16(), torch.ones(2, 3, dtype=torch.bool)).dtype == torch.float32
