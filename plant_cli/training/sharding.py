"""The decoder spread over the processes (FSDP2): each keeps a share of label tables, of their gradients and optimiser state."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from plant_cli.api import UsageError
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.model.processes import whole
from plant_cli.training.unfreezing import Group

FACES = ("rank", "attention", "gather")
"""Methods of a decoder that read its parameters, beside `forward`."""


def wants_sharding(hardware: Hardware) -> bool:
    """Whether the processes were launched to share parameters (`distributed_type: FSDP` in accelerate's configuration).

    Raises:
        UsageError: they were launched for DeepSpeed.
    """
    if os.environ.get("ACCELERATE_USE_DEEPSPEED") == "true":
        raise UsageError(
            "training cannot be handed to DeepSpeed: its engine wants to own the training loop",
            where="the launch configuration, distributed_type: DEEPSPEED",
            expected="distributed_type MULTI_GPU, or FSDP to spread label tables over the devices",
            todo="accelerate config --config_file launch.yaml, then --launch launch.yaml",
        )
    return hardware.processes.count > 1 and os.environ.get("ACCELERATE_USE_FSDP") == "true"


class Sharding:
    """Spreads a network's decoder, and later gives the network a whole one back.

    The backbone stays whole on every device: it is frozen, or in 4 bits with small adapters, or small. All processes must make the
    same number of forward and backward passes between two steps; a process that has nothing to do makes one of weight zero.

    Args:
        network: whose decoder is spread; the same in all processes.
        hardware: where it is, and with which processes.
        groups: of the network's parameters.
        optimizer: goes on with the spread parameters from the state that it has.

    Attributes:
        groups: the same groups of spread parameters.
    """

    def __init__(self, network: Network, hardware: Hardware, groups: Sequence[Group], optimizer: torch.optim.Optimizer) -> None:
        self.network = network
        decoder = network.decoder
        bare = {id(p): nn.Parameter(p.detach().to("meta"), requires_grad=p.requires_grad) for p in decoder.parameters()}
        self._shell = copy.deepcopy(decoder, cast(dict[int, object], bare))
        before = dict(decoder.named_parameters())
        fully_shard(decoder, mesh=init_device_mesh(hardware.device.type, (hardware.processes.count,)), reshard_after_forward=False)
        for name in FACES:
            if hasattr(decoder, name):
                register_fsdp_forward_method(decoder, name)
        after = dict(decoder.named_parameters())
        spread = {id(old): after[name] for name, old in before.items()}
        _move_state(optimizer, spread)
        self.groups = [replace(group, parameters=tuple(spread.get(id(p), p) for p in group.parameters)) for group in groups]

    @property
    def decoder(self) -> FSDPModule:
        """The decoder in its spread form."""
        return cast(FSDPModule, self.network.decoder)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """The decoder whole in every process, for reading alone: none waits for another inside."""
        self.decoder.unshard()
        try:
            yield
        finally:
            self.decoder.reshard()

    def end(self) -> None:
        """Give the network a decoder of its own in every process."""
        state = {name: whole(tensor.detach()) for name, tensor in self.network.decoder.state_dict().items()}
        self._shell.load_state_dict(state, assign=True)
        self.network.decoder = self._shell


def _move_state(optimizer: torch.optim.Optimizer, spread: Mapping[int, nn.Parameter]) -> None:
    """Put spread parameters, by the identity of the whole ones, into their places, with their share of the state."""
    for entry in optimizer.param_groups:
        entry["params"] = [spread.get(id(p), p) for p in entry["params"]]
    for old in [p for p in optimizer.state if id(p) in spread]:
        parameter = cast(DTensor, spread[id(old)])
        optimizer.state[parameter] = {
            key: distribute_tensor(value, parameter.device_mesh, parameter.placements) if value.shape == parameter.shape else value
            for key, value in optimizer.state.pop(old).items()
        }
