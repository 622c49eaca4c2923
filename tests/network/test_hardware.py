"""The device and number format that a machine section means."""

from __future__ import annotations

import pytest
import torch

from plant_cli.api import MachineSection, ResourceError
from plant_cli.network import hardware
from plant_cli.network.hardware import choose_hardware


@pytest.fixture(autouse=True)
def _threads() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("fast", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_auto_takes_bf16_only_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch, fast: bool, dtype: torch.dtype) -> None:
    monkeypatch.setattr(hardware, "cpu_has_bf16", lambda: fast)
    chosen = choose_hardware(MachineSection(device="cpu", threads=1))
    assert (chosen.device.type, chosen.dtype) == ("cpu", dtype)
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_what_is_asked_for_is_given(precision: str, dtype: torch.dtype) -> None:
    chosen = choose_hardware(MachineSection(device="cpu", precision=precision, threads=1))
    assert chosen.dtype == dtype
    with chosen.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


@pytest.mark.parametrize("name", ["cuda:99", "tpu", "cpu:1"])
def test_a_device_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(ResourceError, match=f"no device '{name}'") as caught:
        choose_hardware(MachineSection(device=name))
    assert "cpu" in caught.value.expected
    assert caught.value.exit_code == 6


def test_numbers_that_are_all_but_zero_are_zero() -> None:
    """Sharp attention is full of them, and took a processor 4 to 15 times as long."""
    torch.set_flush_denormal(False)
    smallest = torch.tensor([torch.finfo(torch.float32).tiny])
    assert (smallest * 0.5).item() > 0
    choose_hardware(MachineSection(device="cpu", threads=1))
    assert (smallest * 0.5).item() == 0
