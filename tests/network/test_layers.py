from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from plant_cli.api import ArtefactError
from plant_cli.network.windows import restore_trainable, save_trainable


def make_layer(seed: int) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(3, 2)


def test_what_is_trained_comes_back_and_nothing_else(tmp_path: Path) -> None:
    saved, other = make_layer(0), make_layer(1)
    saved.bias.requires_grad_(False)
    bias = other.bias.detach().clone()
    save_trainable(saved, tmp_path / "backbone.safetensors")
    restore_trainable(other, tmp_path / "backbone.safetensors")
    assert torch.equal(other.weight, saved.weight)
    assert torch.equal(other.bias, bias)


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    save_trainable(nn.Linear(4, 2), tmp_path / "backbone.safetensors")
    with pytest.raises(ArtefactError, match="parameter 'weight' of shape") as caught:
        restore_trainable(make_layer(0), tmp_path / "backbone.safetensors")
    assert caught.value.expected == "shape [2, 3]"


@pytest.mark.parametrize("content", [b"", b"\0" * 60, None])
def test_a_damaged_or_lost_file_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "backbone.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtefactError, match="the trained weights of the backbone cannot be read") as caught:
        restore_trainable(make_layer(0), path)
    assert caught.value.exit_code == 4
