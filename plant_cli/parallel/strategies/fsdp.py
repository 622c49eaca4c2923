"""FSDP2: each process holds a shard of the parameters, of their gradients and of the optimiser state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.export import register_dataclass

from plant_cli.api import GroupedReading, Reading
from plant_cli.kit.quantization import can_be_sharded
from plant_cli.parallel.group import gather_full
from plant_cli.parallel.strategies.data_parallel import DataParallel
from plant_cli.parallel.strategies.strategy import Trainable

METHODS = ("rank", "attention", "gather", "score_pairs", "rank_pairs", "read_groups")
"""Methods of a decoder that read its parameters, beside `forward`."""
for kind in (Reading, GroupedReading):  # so that FSDP finds the hidden states in what the decoder is given, and their gradients
    register_dataclass(kind)


def blocks(backbone: nn.Module) -> list[nn.Module]:
    """The parts of a backbone that are gathered one after the other: its transformer layers, or none if no class is named.

    Classes come from accelerate's configuration (`fsdp_transformer_layer_cls_to_wrap`), else from the model's own list of modules
    that must not be split (`_no_split_modules`).
    """
    named = os.environ.get("FSDP_TRANSFORMER_CLS_TO_WRAP", "")
    names = set(named.split(",")) if named else {n for part in backbone.modules() for n in getattr(part, "_no_split_modules", None) or ()}
    return [part for part in backbone.modules() if type(part).__name__ in names]


class FullySharded(DataParallel):
    """Shards a network, and at the end makes its parameters whole again.

    The backbone is gathered one block at a time, in the forward and backward pass; the decoder is whole from its first use in a pass to
    the end of that pass. Frozen parameters are sharded, too. Outside a pass each process holds its shard only.
    """

    lockstep = True

    def __init__(self, trained: Trainable) -> None:
        roots = (trained.backbone, trained.decoder)
        self._before = [_OriginalModule(module=part, kind=type(part), values=_copied(part)) for root in roots for part in root.modules()]
        _shard(trained, init_device_mesh(trained.device.type, (trained.processes.count,)))
        spread = {id(old): new for before in self._before for old, new in before.parameters()}
        _move_state(trained.optimizer, spread)
        for before in self._before:
            before.empty()
        super().__init__(replace(trained, groups=[tuple(spread[id(p)] for p in group) for group in trained.groups]))

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """See `Strategy.gathered`."""
        roots = (self.trained.backbone, self.trained.decoder)
        spread = [cast(FSDPModule, part) for root in roots for part in root.modules() if isinstance(part, FSDPModule)]
        backbone = cast(FSDPModule, self.trained.backbone)
        backbone.set_reshard_after_forward(False)
        for part in spread:
            part.unshard()
        try:
            yield
        finally:
            backbone.set_reshard_after_forward(True)
            for part in spread:
                part.reshard()

    def end(self) -> None:
        """See `Strategy.end`: the original parameters are filled again."""
        for before in self._before:
            before.fill()
        for before in self._before:
            before.bring_back()


def _shard(trained: Trainable, mesh: DeviceMesh) -> None:
    kept = {p for root in (trained.backbone, trained.decoder) for p in root.parameters() if not can_be_sharded(p)}
    for part in (*blocks(trained.backbone), trained.backbone):
        fully_shard(part, mesh=mesh, reshard_after_forward=True, ignored_params=kept)
    fully_shard(trained.decoder, mesh=mesh, reshard_after_forward=False)
    for name in METHODS:
        if hasattr(trained.decoder, name):
            register_fsdp_forward_method(trained.decoder, name)


@dataclass(frozen=True, kw_only=True)
class _OriginalModule:
    """A module before it was sharded: its class, hooks and parameters. The parameters are empty while it is sharded."""

    module: nn.Module
    kind: type[nn.Module]
    values: dict[str, Any]

    def parameters(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Its own parameters: the originals, and those that it has now."""
        now = self.module._parameters
        return [(old, cast(nn.Parameter, now[name])) for name, old in self.values["_parameters"].items() if old is not None]

    def empty(self) -> None:
        for old, new in self.parameters():
            if old is not new:
                old.data = old.data.new_empty(0)

    def fill(self) -> None:
        for old, new in self.parameters():
            if isinstance(new, DTensor) and not old.numel():  # a parameter may be in several modules
                old.data = gather_full(new.detach())

    def bring_back(self) -> None:
        kept = {"_buffers": self.module._buffers, "training": self.module.training}
        vars(self.module).clear()
        vars(self.module).update(self.values | kept)
        self.module.__class__ = self.kind


def _copied(module: nn.Module) -> dict[str, Any]:
    return {name: value.copy() if isinstance(value, dict | list) else value for name, value in vars(module).items()}  # an LSTM has a list


def _move_state(optimizer: torch.optim.Optimizer, spread: dict[int, nn.Parameter]) -> None:
    """Replace the optimiser's parameters by their shards, given by the id of the whole ones, with their shard of the state."""
    for entry in optimizer.param_groups:
        entry["params"] = [spread[id(p)] for p in entry["params"]]
    for old in list(optimizer.state):
        parameter = cast(DTensor, spread[id(old)])
        optimizer.state[parameter] = {
            key: distribute_tensor(value, parameter.device_mesh, parameter.placements) if value.shape == parameter.shape else value
            for key, value in optimizer.state.pop(old).items()
        }
