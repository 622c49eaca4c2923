"""A loss is built for the stage that it belongs to, and refused by the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from plant_cli.api import Choice, ComponentError, LossSpec, Options
from plant_cli.registry import installed
from plant_cli.training.materials import label_loss, rank_loss

KNOWN = installed().specs(LossSpec)


def find(name: str, **options: Any) -> tuple[LossSpec, Options]:
    return installed().resolve(LossSpec, Choice(name=name, options=options))


def test_a_loss_is_built_with_its_options() -> None:
    loss = label_loss(*find("focal-hnm", hard_negatives=7, random_negatives=3))
    assert (loss.hard_negatives, loss.random_negatives) == (7, 3)
    ranked = rank_loss(*find("lambda"))(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 0.0]), torch.tensor([0, 2]))
    assert float(ranked) > 0


def test_a_loss_of_the_other_stage_is_refused() -> None:
    with pytest.raises(ComponentError, match="'bce' is for stage 2, not for stage 1") as caught:
        rank_loss(*find("bce"), known=KNOWN)
    assert caught.value.expected.startswith("one of ")
    assert "lambda" in caught.value.expected
    assert "bce" not in caught.value.expected
    with pytest.raises(ComponentError, match="'lambda' is for stage 1, not for stage 2") as caught:
        label_loss(*find("lambda"), known=KNOWN)
    assert caught.value.expected == f"one of {', '.join(spec.name for spec in KNOWN if spec.stage == 'label')}"
    with pytest.raises(ComponentError) as caught:
        label_loss(*find("lambda"))
    assert caught.value.expected == "a loss of stage 2"
