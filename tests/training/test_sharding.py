"""When label tables are spread; that it changes no result is tested through the command line (tests/stages/test_processes.py)."""

from __future__ import annotations

import pytest
import torch

from plant_cli.api import UsageError
from plant_cli.model.hardware import Hardware
from plant_cli.model.processes import Processes, whole
from plant_cli.training.sharding import wants_sharding


def hardware(count: int) -> Hardware:
    return Hardware(device=torch.device("cpu"), dtype=torch.float32, processes=Processes(count=count))


def test_tables_are_spread_where_the_launcher_says_so_and_there_is_somebody_to_share_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACCELERATE_USE_FSDP", raising=False)
    assert not wants_sharding(hardware(2))
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    assert wants_sharding(hardware(2))
    assert not wants_sharding(hardware(1))


def test_deepspeed_is_refused_with_what_to_use_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    with pytest.raises(UsageError, match="DeepSpeed") as caught:
        wants_sharding(hardware(2))
    assert "FSDP" in caught.value.expected


def test_what_is_not_spread_is_whole() -> None:
    tensor = torch.ones(2)
    assert whole(tensor) is tensor
