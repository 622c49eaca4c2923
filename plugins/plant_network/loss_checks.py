"""Checks of losses: a finite, differentiable scalar that does not depend on the order of its
items.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from plant_cli.api import LossSpec
from plant_cli.testing.checklist import check, default_options
from plant_network.materials import CheckedLoss


@check(LossSpec)
def is_a_differentiable_scalar(spec: LossSpec) -> None:
    """Value and gradient are finite, for ordinary and for extreme scores."""
    loss, inputs = _sample(spec)
    for scale in (1.0, 1e4):
        scores = (inputs[0] * scale).requires_grad_()
        value = loss(scores, *inputs[1:])
        assert value.shape == (), f"the loss has shape {tuple(value.shape)}"
        (gradient,) = torch.autograd.grad(value, scores)
        assert bool(value.isfinite()), f"the loss is {value.item()} for scores times {scale:g}"
        assert bool(gradient.isfinite().all()), (
            f"the gradient is not finite for scores times {scale:g}"
        )


@check(LossSpec)
def order_does_not_matter(spec: LossSpec) -> None:
    """Items of a list, or documents of a batch, may come in any order."""
    loss, inputs = _sample(spec)
    mixed = _mix(spec, inputs)
    torch.testing.assert_close(loss(*mixed), loss(*inputs), rtol=1e-5, atol=1e-6)


@check(LossSpec)
def it_is_a_mean(spec: LossSpec) -> None:
    """Of documents of a batch, or of lists: the same ones twice lose as much as once."""
    loss, inputs = _sample(spec)
    twice = [torch.cat([tensor, tensor]) for tensor in inputs]
    if spec.stage == "rank":
        twice[2] = torch.cat([inputs[2], inputs[2][1:] + inputs[2][-1]])
    torch.testing.assert_close(
        loss(*twice),
        loss(*inputs),
        rtol=1e-5,
        atol=1e-6,
        msg="the same items twice have another loss than once",
    )


@check(LossSpec)
def better_scores_lose_less(spec: LossSpec) -> None:
    """Scores that agree with the truth have a smaller loss than scores that contradict it."""
    loss, (_, truth, *rest) = _sample(spec)
    right = (truth.float() - truth.float().mean()) * 4
    assert loss(right, truth, *rest).item() < loss(-right, truth, *rest).item(), (
        "contradicting scores do not lose more"
    )


@check(LossSpec)
def lists_without_order_have_a_finite_loss(spec: LossSpec) -> None:
    """Rank losses skip lists of one item and lists without any relevance."""
    if spec.stage != "rank":
        pytest.skip("for rank losses")
    loss: Any = spec.build(default_options(spec))
    scores = torch.randn(4, generator=torch.Generator().manual_seed(2), requires_grad=True)
    value = loss(scores, torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([0, 1, 4]))
    value.backward()
    assert bool(value.isfinite()), f"the loss is {value.item()}"
    assert scores.grad is not None
    assert bool(scores.grad.isfinite().all()), "the gradient is not finite"


@check(LossSpec)
def unselected_pairs_get_no_gradient(spec: LossSpec) -> None:
    """Label losses read the selected pairs only, and always select the positives."""
    if spec.stage != "label":
        pytest.skip("for label losses")
    loss, (logits, targets, _) = _sample(spec)
    chosen = loss.select(logits, targets, torch.Generator().manual_seed(3))
    again = loss.select(logits, targets, torch.Generator().manual_seed(3))
    assert torch.equal(chosen, again), "select draws from another generator than it is given"
    assert bool(chosen[targets > 0].all()), "a positive was not selected"
    pairs = (targets > 0) | (torch.arange(logits.shape[1]) < 3)
    (gradient,) = torch.autograd.grad(loss(logits.requires_grad_(), targets, pairs), logits)
    assert not bool(gradient[~pairs].any()), "a pair that was not selected has a gradient"
    assert bool(gradient[targets > 0].any()), "the positives have no gradient"


def _sample(spec: LossSpec) -> tuple[Any, tuple[Tensor, ...]]:
    loss = CheckedLoss(spec.name, spec.build(default_options(spec)))
    generator = torch.Generator().manual_seed(1)
    if spec.stage == "rank":
        scores = torch.randn(12, generator=generator)
        relevance = torch.tensor([0.0, 1.0, 0.5, 0.0, 0.2, 0.9, 0.0, 0.0, 0.3, 1.0, 0.7, 0.1])
        return loss, (scores, relevance, torch.tensor([0, 5, 12]))
    logits = torch.randn(4, 10, generator=generator)
    targets = (torch.rand(4, 10, generator=generator) < 0.3).float()
    targets[:, 0] = 1
    return loss, (logits, targets, torch.ones_like(targets, dtype=torch.bool))


def _mix(spec: LossSpec, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    if spec.stage == "label":
        return tuple(tensor[[2, 0, 3, 1]] for tensor in inputs)
    scores, relevance, _ = inputs
    order = torch.tensor(
        [11, 6, 8, 5, 10, 7, 9, 3, 1, 4, 0, 2]
    )  # the second list first, both mixed
    return scores[order], relevance[order], torch.tensor([0, 7, 12])
