"""The losses that are registered, and their options."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from plant_losses import ApproxNdcgOptions, LambdaOptions, ListnetOptions, plant_register_losses
from plant_losses import rank_losses as rank

from plant_cli.api import Options

RELEVANCE, OFFSETS = torch.tensor([1.0, 0.5, 0.0, 0.0]), torch.tensor([0, 4])


def test_losses_are_registered_for_their_stage() -> None:
    found = {
        stage: {spec.name for spec in plant_register_losses() if spec.stage == stage}
        for stage in ("rank", "label")
    }
    assert found["rank"] == {"approx-ndcg", "lambda", "listnet", "mse"}
    assert found["label"] == {"asymmetric", "bce", "focal-hnm", "label-ndcg"}


SCORES = torch.tensor([0.0, 0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("build", "first", "second"),
    [
        (rank.build_lambda, LambdaOptions(sigma=5.0), LambdaOptions(sigma=0.1)),
        (rank.build_lambda, LambdaOptions(k=1), LambdaOptions(k=1000)),
        (
            rank.build_approx_ndcg,
            ApproxNdcgOptions(gain="linear"),
            ApproxNdcgOptions(gain="exponential"),
        ),
        (
            rank.build_approx_ndcg,
            ApproxNdcgOptions(temperature=0.1),
            ApproxNdcgOptions(temperature=10.0),
        ),
        (rank.build_listnet, ListnetOptions(temperature=0.1), ListnetOptions(temperature=10.0)),
    ],
)
def test_options_reach_the_loss(build: Any, first: Options, second: Options) -> None:
    assert not torch.isclose(
        *(build(options)(SCORES, RELEVANCE, OFFSETS) for options in (first, second))
    )
