"""The network spread over the processes (FSDP2): each keeps a share of its parameters, of their gradients and optimiser state."""

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

from plant_cli.kit.quantization import may_be_spread
from plant_cli.parallel.group import gather_full
from plant_cli.parallel.strategies.data_parallel import DataParallel
from plant_cli.parallel.strategies.strategy import Trainable

FACES = ("rank", "attention", "gather")
"""Methods of a decoder that read its parameters, beside `forward`."""


def blocks(backbone: nn.Module) -> list[nn.Module]:
    """The parts of a backbone that are gathered one after the other: its transformer layers, or none that anybody has named.

    Their classes are those that accelerate's configuration names (`fsdp_transformer_layer_cls_to_wrap`), else those that the model
    itself does not want split.
    """
    named = os.environ.get("FSDP_TRANSFORMER_CLS_TO_WRAP", "")
    names = set(named.split(",")) if named else {n for part in backbone.modules() for n in getattr(part, "_no_split_modules", None) or ()}
    return [part for part in backbone.modules() if type(part).__name__ in names]


class FullySharded(DataParallel):
    """Spreads a network, and later gives it whole parameters back.

    Of the backbone a block is gathered at a time, when it is passed through; the decoder is whole from its first use in a pass to
    the end of that pass. Frozen parameters are spread, too. Outside of a pass each process has its share alone.
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
        """See `Strategy.end`: the parameters that it had before are filled again."""
        for before in self._before:
            before.fill()
        for before in self._before:
            before.bring_back()


def _shard(trained: Trainable, mesh: DeviceMesh) -> None:
    kept = {p for root in (trained.backbone, trained.decoder) for p in root.parameters() if not may_be_spread(p)}
    for part in (*blocks(trained.backbone), trained.backbone):
        fully_shard(part, mesh=mesh, reshard_after_forward=True, ignored_params=kept)
    fully_shard(trained.decoder, mesh=mesh, reshard_after_forward=False)
    for name in FACES:
        if hasattr(trained.decoder, name):
            register_fsdp_forward_method(trained.decoder, name)


@dataclass(frozen=True, kw_only=True)
class _OriginalModule:
    """What a module was before it was spread: its class, hooks and parameters. These give their numbers away for the time."""

    module: nn.Module
    kind: type[nn.Module]
    values: dict[str, Any]

    def parameters(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        """Its own parameters: what they were, and what they are."""
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
    return {name: value.copy() if isinstance(value, dict) else value for name, value in vars(module).items()}


def _move_state(optimizer: torch.optim.Optimizer, spread: dict[int, nn.Parameter]) -> None:
    """Put spread parameters, by the identity of the whole ones, into their places, with their share of the state."""
    for entry in optimizer.param_groups:
        entry["params"] = [spread[id(p)] for p in entry["params"]]
    for old in list(optimizer.state):
        parameter = cast(DTensor, spread[id(old)])
        optimizer.state[parameter] = {
            key: distribute_tensor(value, parameter.device_mesh, parameter.placements) if value.shape == parameter.shape else value
            for key, value in optimizer.state.pop(old).items()
        }
