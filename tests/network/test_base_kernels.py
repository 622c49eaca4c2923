from __future__ import annotations

import pytest

from plant_cli.network.compute import uses_triton


def test_only_a_graphics_card_with_triton_runs_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_cli.network.compute.find_spec", lambda name: {"triton": object()}.get(name))
    assert {device: uses_triton(device) for device in ("cuda", "cpu", "mps")} == {"cuda": True, "cpu": False, "mps": False}


def test_without_triton_every_device_runs_plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_cli.network.compute.find_spec", lambda name: None)
    assert not uses_triton("cuda")
