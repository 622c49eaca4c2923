"""Several processes in a plan: what each of them holds, and how much of a stage's time they take off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from torch import nn

from plant_cli.api import UsageError
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline
from plant_cli.runs.launches import read_launch

SPREAD: Mapping[str, Callable[[Outline], int]] = {"decoder": lambda sketch: sketch.size_of("decoder")}
"""What is shared out under FSDP: each module of the network, with the bytes of it that are whole at once in a pass. All else is whole."""
WHOLE_COPIES = frozenset({"best", "saving"})
"""Copies of trained weights that every process has whole even then."""


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

    def held(self, parameters: Iterable[nn.Parameter], network: Network) -> int:
        """Bytes that a process keeps of parameters."""
        parameters = list(parameters)
        return size_of(parameters) - self._elsewhere(size_of(self.spread(parameters, network)))

    def weights(self, sketch: Outline) -> int:
        """Bytes that a process keeps of all weights, as they are held."""
        return sketch.size - self._elsewhere(sum(map(sketch.size_of, SPREAD)) if self.spreads else 0)

    def gathered(self, learning: Iterable[nn.Parameter], sketch: Outline) -> int:
        """Bytes that are whole for a time beside what is kept: in a pass with their gradients, in validation all weights."""
        if not self.spreads:
            return 0
        in_a_pass = sum(whole(sketch) for whole in SPREAD.values()) + size_of(self.spread(learning, sketch.network))
        return max(in_a_pass, sum(map(sketch.size_of, SPREAD)))

    def spread(self, parameters: Iterable[nn.Parameter], network: Network) -> list[nn.Parameter]:
        """Those of the parameters of which a process keeps its share alone."""
        shared = {id(p) for module in SPREAD for p in getattr(network, module).parameters()} if self.spreads else set()
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
    return Sharing(processes=description["num_processes"], machines=int(description.get("num_machines", 1)), spreads=spreads)


def size_of(parameters: Iterable[nn.Parameter]) -> int:
    """Bytes of parameters as they compute."""
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)
