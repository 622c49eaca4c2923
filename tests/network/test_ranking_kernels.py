"""The Triton kernel of the stage 1 loss, where it is compiled and where its blocks are awkward."""

from __future__ import annotations

import os

import pytest
import torch
from torch import Tensor

from plant_cli.network.list_ranking import _pair_sums, lambda_loss

CARD = torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
LISTS = {
    "blocks begin and end inside lists": [64, 65, 1, 128, 63, 0, 130],
    "one-item lists": [1, 1, 1],
    "no list": [],
    "empty lists": [0, 0],
}


def draw(lengths: list[int], dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Scores with ties; relevances as repeated words have them: few values, often none; one list where all are alike."""
    generator = torch.Generator().manual_seed(len(lengths))
    n = sum(lengths)
    scores = (torch.randn(n, generator=generator, dtype=torch.float64) * 2).round(decimals=1).to(dtype)
    relevance = torch.randint(0, 4, (n,), generator=generator).to(dtype) / 4
    relevance[: lengths[0] if lengths else 0] = 0.5
    return scores, relevance, torch.tensor([0, *lengths]).cumsum(0)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("lengths", LISTS.values(), ids=LISTS.keys())
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=str)
def test_sums_equal_those_by_chunks(lengths: list[int], dtype: torch.dtype, tolerance: float) -> None:
    from plant_cli.network.ranking_kernels import pair_sums

    scores, relevance, offsets = draw(lengths, dtype)
    expected = _pair_sums(scores.double(), relevance.double(), offsets, 1.3, 100, 1 << 18)
    for ours, theirs in zip(pair_sums(scores, relevance, offsets, 1.3, 100), expected, strict=True):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.double(), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.usefixtures("kernels")
def test_half_precision_scores_keep_their_type_and_are_summed_in_fp32() -> None:
    scores, relevance, offsets = draw([40, 70])
    coarse = scores.bfloat16().requires_grad_()
    exact = coarse.detach().double().requires_grad_()
    losses = lambda_loss(coarse, relevance, offsets), lambda_loss(exact, relevance, offsets)
    torch.testing.assert_close(losses[0].double(), losses[1], rtol=1e-5, atol=1e-5)
    gradients = torch.autograd.grad(losses[0], coarse)[0], torch.autograd.grad(losses[1], exact)[0]
    assert gradients[0].dtype == torch.bfloat16
    torch.testing.assert_close(gradients[0].double(), gradients[1], rtol=0.01, atol=1e-3)


@pytest.mark.skipif(not CARD, reason="no graphics card, or Triton's interpreter is on")
@pytest.mark.parametrize("lengths", LISTS.values(), ids=LISTS.keys())
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)], ids=str)
def test_the_compiled_kernel_equals_the_chunks(lengths: list[int], dtype: torch.dtype, tolerance: float) -> None:
    from plant_cli.network.ranking_kernels import pair_sums

    scores, relevance, offsets = draw(lengths, dtype)
    expected = _pair_sums(scores.double(), relevance.double(), offsets, 1.3, 100, 1 << 18)
    for ours, theirs in zip(pair_sums(scores.cuda(), relevance.cuda(), offsets.cuda(), 1.3, 100), expected, strict=True):
        torch.testing.assert_close(ours.cpu().double(), theirs, rtol=tolerance, atol=tolerance)
