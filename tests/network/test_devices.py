"""Which device a name stands for."""

from __future__ import annotations

import pytest
import torch

from plant_cli.api import ResourceError
from plant_cli.network.hardware import find_device


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"), [(True, True, "cuda"), (False, True, "cpu"), (False, False, "cpu")], ids=["cuda", "mps", "cpu"]
)
def test_auto_is_the_fastest_that_can_do_all(cuda: bool, mps: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(cuda))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert find_device("auto").type == expected


def test_a_named_device_must_be_there() -> None:
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(ResourceError, match="no device 'cuda:99'"):
        find_device("cuda:99")


@pytest.mark.parametrize("name", ["cuda:x", "cpu:-1", "cpu:", "cpu: 0", "mps:abc", "gpu", ""])
def test_a_mistyped_device_is_told(name: str) -> None:
    with pytest.raises(ResourceError, match=f"no device '{name}'"):
        find_device(name)
