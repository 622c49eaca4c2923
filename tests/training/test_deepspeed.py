"""Configurations that DeepSpeed cannot have here; what it makes of the others is tested in test_stepping.py."""

from __future__ import annotations

from typing import Any

import pytest

from plant_cli.api import UsageError
from plant_cli.training.strategies import refuse_configuration


def refused(config: dict[str, Any]) -> UsageError:
    with pytest.raises(UsageError) as caught:
        refuse_configuration(config)
    return caught.value


@pytest.mark.parametrize("stage", [0, 3])
def test_other_stages_are_refused_with_what_shares_parameters(stage: int) -> None:
    error = refused({"zero_optimization": {"stage": stage}})
    assert f"stage {stage}" in error.what
    assert "FSDP" in error.todo


def test_an_optimiser_is_declared_once() -> None:
    error = refused({"zero_optimization": {"stage": 2}, "optimizer": {"type": "Adam"}, "scheduler": {}})
    assert "its own optimizer and scheduler" in error.what
    assert "deepspeed_config_file" in error.where
