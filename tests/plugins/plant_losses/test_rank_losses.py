"""Losses are built from their options; a lower stage 1 loss means a better order."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from plant_losses import ApproxNdcgOptions, LambdaOptions, ListnetOptions, plant_register_losses
from plant_losses import rank_losses as rank

from plant_cli.api import Options

RELEVANCE, OFFSETS = torch.tensor([1.0, 0.5, 0.0, 0.0]), torch.tensor([0, 4])


SPECS = {spec.name: spec for spec in plant_register_losses()}


def test_losses_are_registered_for_their_stage() -> None:
    found = {stage: {spec.name for spec in SPECS.values() if spec.stage == stage} for stage in ("rank", "label")}
    assert found["rank"] == {"approx-ndcg", "lambda", "listnet", "mse"}
    assert found["label"] == {"asymmetric", "bce", "focal-hnm", "label-ndcg"}


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.stage == "rank"])
def test_the_right_order_costs_less_and_is_what_the_gradient_asks_for(name: str) -> None:
    loss = SPECS[name].build(SPECS[name].options())
    right, wrong = torch.tensor([2.0, 1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 1.0, 2.0], requires_grad=True)
    assert loss(right, RELEVANCE, OFFSETS) < loss(wrong, RELEVANCE, OFFSETS)
    gradient = torch.autograd.grad(loss(wrong, RELEVANCE, OFFSETS), wrong)[0]
    assert gradient[0] < 0 < gradient[3]


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.stage == "label"])
def test_label_losses_are_built_from_their_default_options(name: str) -> None:
    loss = SPECS[name].build(SPECS[name].options())
    assert min(loss.hard_negatives, loss.random_negatives) >= 0
    assert torch.isfinite(loss(torch.randn(2, 5), torch.ones(2, 5)))


SCORES = torch.tensor([0.0, 0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("build", "first", "second"),
    [
        (rank.build_lambda, LambdaOptions(sigma=5.0), LambdaOptions(sigma=0.1)),
        (rank.build_lambda, LambdaOptions(k=1), LambdaOptions(k=1000)),
        (rank.build_approx_ndcg, ApproxNdcgOptions(gain="linear"), ApproxNdcgOptions(gain="exponential")),
        (rank.build_approx_ndcg, ApproxNdcgOptions(temperature=0.1), ApproxNdcgOptions(temperature=10.0)),
        (rank.build_listnet, ListnetOptions(temperature=0.1), ListnetOptions(temperature=10.0)),
    ],
)
def test_options_reach_the_loss(build: Any, first: Options, second: Options) -> None:
    assert not torch.isclose(*(build(options)(SCORES, RELEVANCE, OFFSETS) for options in (first, second)))
