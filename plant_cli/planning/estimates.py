"""Memory, disk, operations and time of one stage that trains or scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from plant_cli.model.hardware import Hardware
from plant_cli.planning.documents import Documents
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline, Part
from plant_cli.planning.probe import Probe, Source
from plant_cli.planning.sharing import ALONE, Sharing

MOMENTS = 2  # AdamW keeps two numbers for each that is trained
CHECKPOINTS = 2  # that are kept


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where stages run.

    Args:
        hardware: device and number format.
        rate: operations a second of a large matrix product.
        process: bytes of main memory of a process that has read the corpus, before it builds a network.
    """

    hardware: Hardware
    rate: float
    process: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """Options as they are written on the command line, and the peak memory in bytes once these and those before are set."""

    options: str
    peak: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one stage takes.

    Args:
        memory: bytes of one process by part; all are held at the same time.
        disk: bytes by what is written.
        work: documents, tokens, operations and so on.
        seconds: of the whole stage, validation not counted; the least that it can take unless they are `measured`.
        measured: whether seconds are those of runs on this machine.
        parts: of the network.
        changes: what makes the stage fit.
    """

    memory: Mapping[str, int]
    disk: Mapping[str, int]
    work: Mapping[str, float]
    seconds: float
    measured: bool
    parts: Sequence[Part] = ()
    changes: Sequence[Change] = ()

    @property
    def peak(self) -> int:
        """The most that one process holds."""
        return sum(self.memory.values())


def estimate(
    job: Job,
    sketch: Outline,
    documents: Documents,
    machine: Machine,
    sharing: Sharing = ALONE,
    *,
    filled: bool = False,
    timed: bool = False,
) -> Estimate:
    """Estimate a stage.

    Args:
        job: the stage.
        sketch: its network.
        documents: the training documents.
        machine: where it runs.
        sharing: the processes that share it.
        filled: whether an earlier stage has filled the cache of hidden states.
        timed: whether to measure seconds.
    """
    hardware = machine.hardware
    network, probe = sketch.network, Probe(sketch=sketch, job=job, documents=documents, hardware=hardware, timed=timed)
    kept = documents.mean * network.backbone.hidden_size * hardware.dtype.itemsize
    cacheable = sketch.fixed and job.documents * kept <= job.cache_limit * 1e9
    source: Source = "cached" if cacheable else "frozen" if network.backbone_is_frozen else "trained"
    cost = probe.measure(source)
    padding = documents.padding(job.batch, job.micro_batch)
    positions = job.documents * job.epochs / (1 - padding)
    operations, seconds = (positions * figure for figure in cost.each(job.largest))
    activations = cost.memory(job.largest)
    if cacheable and not filled:
        reading = probe.measure("reading")
        once = reading.each(job.micro_batch)
        operations, seconds = operations + job.read * once[0], seconds + job.read * once[1]
        activations = activations if job.roles else max(activations, reading.memory(job.micro_batch))
    sharing = sharing if job.roles else replace(sharing, sharded=False)
    learned, changed = sharing.share(sketch.learning), sharing.share(sketch.changed)
    memory = {
        "process and texts": machine.process if hardware.device.type == "cpu" else 0,
        "weights": sketch.size,
        "weights, shared out": sharing.share(sketch.size) if sharing.sharded else 0,
        "gradients": learned,
        "optimiser": MOMENTS * learned,
        "best": changed,
        "activations": activations + sketch.unpacked,
    }
    disk = {
        "cache": int(job.read * kept) if cacheable else 0,
        "checkpoints": CHECKPOINTS * (2 * sketch.changed + MOMENTS * sketch.learning) if job.roles else 0,
        "result": sketch.changed if job.roles else job.documents * network.labels * torch.float32.itemsize * job.every_score,
    }
    work = {"epochs": job.epochs, "tokens": job.documents * job.epochs * documents.mean, "padding": padding, "operations": operations}
    alone = max(seconds, operations / machine.rate)  # on a busy machine short runs are noisy
    return Estimate(
        memory=memory, disk=disk, work=work, seconds=alone / sharing.speedup(job, hardware.device), measured=timed, parts=sketch.parts
    )
