"""Several processes that train together, as a file of `accelerate config` describes them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path

import torch

from plant_cli.api import UsageError
from plant_cli.parallel.launch_file import read_launch
from plant_cli.planning.jobs import Job


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """Processes that train together.

    Args:
        processes: on all machines.
        machines: on which they run.
        sharded: whether they share out parameters (FSDP), or each has all of them (data parallelism).
    """

    processes: int = 1
    machines: int = 1
    sharded: bool = False

    @property
    def neighbours(self) -> int:
        """Processes on one machine."""
        return ceil(self.processes / self.machines)

    def share(self, size: int) -> int:
        """Bytes that one process keeps of so many."""
        return ceil(size / self.processes) if self.sharded else size

    def speedup(self, job: Job, device: torch.device) -> float:
        """How many times as fast a stage is at most: no process does less than one micro-batch of a step; neighbours share cores."""
        busy = job.micro_batches / ceil(job.micro_batches / self.processes) if job.roles else self.processes
        return busy / (self.neighbours if device.type == "cpu" else 1)


ALONE = Sharing()


def read_sharing(file: Path) -> Sharing:
    """The processes that a launch file describes.

    Raises:
        UsageError: it cannot be read, or it asks for DeepSpeed.
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
    sharded = kind == "FSDP" and not description.get("use_cpu")  # torch's launcher for processors passes on nothing of FSDP
    return Sharing(processes=description["num_processes"], machines=description["num_machines"], sharded=sharded)
