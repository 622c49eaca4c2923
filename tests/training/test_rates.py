"""The matrix rate is the operations of one product over its time."""

from __future__ import annotations

import pytest
import torch

from plant_cli.training import throughput as rates


def test_the_rate_is_operations_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "time_fastest", lambda run, device, repeats: (run(), 0.5)[1])
    monkeypatch.setitem(rates.SIDE, "cpu", 64)
    assert rates.matrix_rate(torch.device("cpu"), torch.float32) == 2 * 64**3 / 0.5


def test_a_device_of_another_kind_multiplies_what_a_processor_does() -> None:
    assert rates.matrix_side(torch.device("mps")) == rates.SIDE["cpu"]


def test_this_machine_has_a_rate() -> None:
    assert 1e6 < rates.matrix_rate(torch.device("cpu"), torch.float32) < 1e16
