"""The trainable parameters of a network: by layer, and as a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from torch import nn

from plant_cli.api import ArtefactError
from plant_cli.data.tensors import read_tensors, write_tensors

LAYER_NUMBER = re.compile(r"\.(?:layer|layers|h|blocks)\.(\d+)\.")


def split_layers(module: nn.Module) -> Sequence[Sequence[nn.Parameter]]:
    """Trainable parameters from first to last: those before the layers, then each layer (those
    after the layers, with the last).
    """
    groups: dict[int, list[nn.Parameter]] = {}
    deepest = -1
    for name, parameter in module.named_parameters():
        layer = LAYER_NUMBER.search(f".{name}")
        deepest = int(layer.group(1)) if layer else deepest
        if parameter.requires_grad:
            groups.setdefault(deepest, []).append(parameter)
    return [groups[number] for number in sorted(groups)]


def save_trainable(module: nn.Module, path: Path) -> None:
    """Write the trainable parameters of a network as safetensors."""
    changed = {
        n: p.detach().contiguous().cpu() for n, p in module.named_parameters() if p.requires_grad
    }
    write_tensors(path, changed)


def restore_trainable(module: nn.Module, path: Path) -> None:
    """Read back parameters that `save_trainable` wrote; every name and shape must fit."""
    known = dict(module.named_parameters())
    saved, _ = read_tensors(
        path,
        "the trained weights of the backbone",
        "restore the file, or run the stage again with --force",
    )
    for name, tensor in saved.items():
        if name not in known or known[name].shape != tensor.shape:
            raise ArtefactError(
                f"the saved backbone has a parameter '{name}' of shape {list(tensor.shape)} that "
                "this backbone has not",
                where=str(path),
                expected=f"shape {list(known[name].shape)}"
                if name in known
                else "a parameter of that name",
                todo="use the backbone and options that the run was trained with (recipe.yaml in "
                "the run folder)",
            )
        known[name].data.copy_(tensor)
