"""What the launch configuration asks for, and what it cannot have; that it changes no result is tested in test_data_parallel.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from accelerate import Accelerator

from plant_cli.api import ComponentError, SilentReporter, UsageError
from plant_cli.network.hardware import Hardware
from plant_cli.training import strategies as choice
from plant_cli.training.loop import describe_trainable
from plant_cli.training.optimiser import Rates, make_groups, make_optimizer
from plant_cli.training.strategies import DataParallel, Trainable, choose_strategy, sharing_mode


@pytest.fixture(autouse=True)
def _not_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("RANK", "0"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(name, value)


@pytest.fixture
def trained(small_network: Callable[..., Any]) -> Trainable:
    network = small_network()
    groups = make_groups(network, Rates(head=0.1, boost=0.1, attention=0.1, backbone=0.1))
    hardware = Hardware(device=torch.device("cpu"), dtype=torch.float32)
    return describe_trainable(network, hardware, groups, make_optimizer(groups, 0.0), 1.0)


def test_networks_are_spread_where_the_launcher_says_so_and_there_is_somebody_to_share_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert sharing_mode() == "whole"
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    assert sharing_mode() == "fsdp"
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert sharing_mode() == "whole"


def test_deepspeed_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    monkeypatch.setattr(choice, "find_spec", lambda name: None)
    assert sharing_mode() == "whole"  # a variable left behind, not a launcher's
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ComponentError, match="DeepSpeed, which is not installed") as caught:
        sharing_mode()
    assert "pip install deepspeed" in caught.value.todo
    assert "FSDP" in caught.value.todo


def test_alone_the_network_stays_as_it_is(trained: Trainable) -> None:
    strategy = choose_strategy(trained, Accelerator(cpu=True), SilentReporter())
    assert isinstance(strategy, DataParallel)
    assert not strategy.lockstep
    assert strategy.groups is trained.groups


def test_rows_that_have_had_steps_of_their_own_are_not_shared(trained: Trainable, monkeypatch: pytest.MonkeyPatch) -> None:
    table = trained.optimizer.param_groups[0]["params"][0]
    trained.optimizer.state[table] = {"step": torch.ones(4)}
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(UsageError, match="sparse updates") as caught:
        choose_strategy(trained, Accelerator(cpu=True), SilentReporter())
    assert "FSDP" in caught.value.where
    assert "--resume" in caught.value.todo
