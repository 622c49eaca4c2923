"""Several processes in a plan: what each of them holds, and how much of a stage's time they take off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from torch import nn

from plant_cli.api import UsageError
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.parallel.launch_file import read_launch
from plant_cli.parallel.strategies.fsdp import blocks
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline

SPREAD = ("reader", "decoder")
"""Modules of the network whose weights are shared out under FSDP, with their gradients, optimiser state and best copy."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """What part of one process's time is left, of steps of training and of what is read or scored without them."""

    steps: float = 1.0
    reading: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """Processes that work together; one, alone, unless said otherwise.

    Args:
        processes: on all machines.
        machines: that they run on.
        spreads: whether they share out parameters (FSDP), or each has all of them (data parallelism).
    """

    processes: int = 1
    machines: int = 1
    spreads: bool = False

    @property
    def neighbours(self) -> int:
        """Processes on one machine."""
        return ceil(self.processes / self.machines)

    def ways(self) -> dict[str, Sharing]:
        """One process alone, and these with a whole network each or with one that is spread."""
        return {"alone": ALONE, "whole": replace(self, spreads=False), "spread": replace(self, spreads=True)}

    def of(self, job: Job) -> Sharing:
        """As a stage is shared: only training spreads parameters."""
        return self if job.roles else replace(self, spreads=False)

    def passes(self, job: Job) -> int:
        """Micro-batches of a process between two steps."""
        return ceil(job.micro_batches / self.processes)

    def held(self, parameters: Iterable[nn.Parameter], sketch: Outline) -> int:
        """Bytes that a process keeps of parameters that learn, or of as many other numbers."""
        parameters = list(parameters)
        return size_of(parameters) - self._elsewhere(size_of(self.spread(parameters, sketch)))

    def weights(self, sketch: Outline) -> int:
        """Bytes that a process keeps of all weights, as they are held."""
        return sketch.size - self._elsewhere(sketch.size_of(self.spread(sketch.network.parameters(), sketch)))

    def gathered(self, learning: Iterable[nn.Parameter], sketch: Outline) -> int:
        """Bytes that are whole for a time beside what is kept: in a pass with their gradients, in validation all weights."""
        if not self.spreads:
            return 0
        together = self.spread(at_once(sketch.network), sketch)
        learn = {id(p) for p in learning}
        in_a_pass = sketch.size_of(together) + size_of(p for p in together if id(p) in learn)
        return max(in_a_pass, sketch.size_of(self.spread(sketch.network.parameters(), sketch)))

    def spread(self, parameters: Iterable[nn.Parameter], sketch: Outline) -> list[nn.Parameter]:
        """Those of the parameters of which a process keeps its share alone."""
        shared = {id(p) for module in SPREAD for p in sketch.shared(module)} if self.spreads else set()
        return [p for p in parameters if id(p) in shared]

    def shares(self, job: Job, hardware: Hardware) -> Shares:
        """What is left of a stage's time: no process does less than one micro-batch of a step, and on processors neighbours share cores."""
        slower = self.neighbours if hardware.device.type == "cpu" else 1
        return Shares(steps=self.passes(job) / job.micro_batches * slower, reading=slower / self.processes)

    def _elsewhere(self, size: int) -> int:
        return size - ceil(size / self.processes)


ALONE = Sharing()


def read_sharing(file: Path) -> Sharing:
    """The processes that a file of `accelerate config` describes.

    Raises:
        UsageError: it cannot be read, or stages cannot be launched so.
    """
    description = read_launch(file)
    kind = str(description.get("distributed_type", "NO"))
    if kind == "DEEPSPEED":
        raise UsageError(
            "training under DeepSpeed cannot be planned",
            where=f"{file}, distributed_type",
            expected="MULTI_GPU, MULTI_CPU or FSDP",
            todo=f"accelerate config --config_file {file}",
        )
    # processors are started by torch's launcher, which hands nothing of FSDP on
    spreads = kind == "FSDP" and not description.get("use_cpu")
    return Sharing(processes=description["num_processes"], machines=description["num_machines"], spreads=spreads)


def at_once(network: Network) -> list[nn.Parameter]:
    """The parameters that a pass has whole at a time: of the backbone the largest block and what is in none, and the decoder's."""
    parts = [list(part.parameters()) for part in blocks(network.backbone_module)]
    inside = {id(p) for part in parts for p in part}
    root = [p for p in network.backbone_module.parameters() if id(p) not in inside]
    return [*max(parts, key=size_of, default=[]), *root, *network.decoder.parameters()]


def size_of(parameters: Iterable[nn.Parameter]) -> int:
    """Bytes of parameters as they compute."""
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)
