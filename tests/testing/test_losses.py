"""Checks of losses. A right component passes, a wrong one is stopped with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from plant_cli.api import LossSpec
from plant_cli.testing import loss_checks as losses
from plant_cli.testing.checklist import checks_of


class Squares:
    """A label loss that passes all checks."""

    hard_negatives = random_negatives = 0

    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        cells = torch.ones_like(logits) if selected is None else selected.float()
        return ((logits - targets).square() * cells).mean()

    def select(self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return torch.ones_like(logits, dtype=torch.bool)


class FirstOnly(Squares):
    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        return (logits[0] - targets[0]).square().mean()


class Upside(Squares):
    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        return (logits * (2 * targets - 1)).mean()


class Overflowing(Squares):
    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        return (logits * (1 - 2 * targets)).exp().mean()


class Forgetful(Squares):
    def select(self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return torch.zeros_like(logits, dtype=torch.bool)


class Sums(Squares):
    def __call__(self, logits: Tensor, targets: Tensor, selected: Tensor | None = None) -> Tensor:
        return super().__call__(logits, targets, selected) * len(logits)


class Countless(Squares):
    hard_negatives = None  # type: ignore[assignment]


class Wilful(Squares):
    def select(self, logits: Tensor, targets: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return (targets > 0) | (torch.rand(logits.shape) < 0.5)


def _loss(kind: Any, stage: Any = "label") -> LossSpec:
    return LossSpec(name="l", summary="L.", stage=stage, build=lambda options: kind())


def test_label_losses(stopped: Callable[[Any, Any, str], None]) -> None:
    for check in checks_of(LossSpec):
        if check is not losses.lists_without_order_have_a_finite_loss:
            check(_loss(Squares))
    stopped(losses.is_a_differentiable_scalar, _loss(Overflowing), "inf")
    stopped(losses.better_scores_lose_less, _loss(Upside), "do not lose more")
    stopped(losses.unselected_pairs_get_no_gradient, _loss(Forgetful), "positive was not selected")
    stopped(losses.unselected_pairs_get_no_gradient, _loss(Countless), "no whole number hard_negatives")
    stopped(losses.unselected_pairs_get_no_gradient, _loss(Wilful), "another generator")
    stopped(losses.it_is_a_mean, _loss(Sums), "another loss than once")
    with pytest.raises(AssertionError):
        losses.order_does_not_matter(_loss(FirstOnly))


def test_rank_losses(stopped: Callable[[Any, Any, str], None]) -> None:
    class Divides:
        def __call__(self, scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
            parts = zip(scores.tensor_split(offsets[1:-1]), relevance.tensor_split(offsets[1:-1]), strict=True)
            return torch.stack([((s - r).square() / r.sum()).sum() for s, r in parts]).mean()

    class Adds(Divides):
        def __call__(self, scores: Tensor, relevance: Tensor, offsets: Tensor) -> Tensor:
            return super().__call__(scores, relevance, offsets) * (len(offsets) - 1)

    losses.order_does_not_matter(_loss(Divides, "rank"))
    losses.it_is_a_mean(_loss(Divides, "rank"))
    stopped(losses.it_is_a_mean, _loss(Adds, "rank"), "another loss than once")
    stopped(losses.lists_without_order_have_a_finite_loss, _loss(Divides, "rank"), "inf|nan")
