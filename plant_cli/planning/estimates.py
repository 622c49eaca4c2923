"""Memory, disk and operations of one stage, from its job, the outline of its network and the documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from plant_cli.api import PlantableDecoder
from plant_cli.model.hardware import Hardware
from plant_cli.planning.documents import Documents
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline
from plant_cli.planning.trace import Reading, trace_reading, trace_step
from plant_cli.training.prototypes import CELLS

MOMENTS = 2  # AdamW keeps two numbers for each that learns
CHECKPOINTS = 2  # that are kept
READING_BATCH = 16  # documents that are read at once when hidden states are cached
TABLES = 7
"""Arrays of the size of a label table that are in hand while tables are planted."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes of memory by part.

    Args:
        weights: as they are held, quantised or not.
        gradients, optimiser: of what learns by the last epoch.
        best: the copy of the best epoch's weights.
        activations: what reading a micro-batch of the longest documents leaves for the backward pass.
        label_attention: what scoring labels and the backward pass add to that at most.
        reading: at most, while a frozen backbone reads documents for the cache.
        planting: at most, while label tables are planted.
        saving: the copy that is written to a checkpoint, or becomes the next best.
    """

    weights: int
    gradients: int = 0
    optimiser: int = 0
    best: int = 0
    activations: int = 0
    label_attention: int = 0
    reading: int = 0
    planting: int = 0
    saving: int = 0

    @property
    def peak(self) -> int:
        """The most that is held at any time: while reading, while planting, in a step of training, or in saving after one."""
        training = self.optimiser + self.best + max(self.gradients + self.activations + self.label_attention, self.saving)
        return self.weights + max(self.reading, self.planting, training)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one stage takes.

    Args:
        job: the stage.
        memory: by part.
        reading: where hidden states come from.
        cache: bytes of hidden states on disk.
        disk: bytes of checkpoints and of the result.
        tokens: that one epoch reads.
        padding: share of positions that are padding.
        once: operations before the first epoch: filling the cache.
        epoch: operations of one epoch with its validation.
    """

    job: Job
    memory: Memory
    reading: Reading
    cache: int
    disk: int
    tokens: float
    padding: float
    once: float
    epoch: float

    @property
    def operations(self) -> float:
        """Of the whole stage; planting label tables costs about as much as an epoch."""
        return self.once + self.epoch * (self.job.epochs + self.job.planting)


def estimate(job: Job, sketch: Outline, documents: Documents, hardware: Hardware) -> Estimate:
    """Estimate a stage.

    Args:
        job: the stage.
        sketch: its network; comes back thawed as the stage's is.
        documents: the training documents.
        hardware: where it runs.
    """
    network = sketch.network
    may, learning = job.thaw(network)
    read = documents.train + documents.validation if job.kind != "score" else 0
    cache = int(read * documents.mean * network.backbone.hidden_size * hardware.dtype.itemsize)
    fits = read and cache * documents.train / read <= job.cache_limit * 1e9
    fixed = not {id(p) for p in may} & {id(p) for p in network.reader.parameters()}
    reading: Reading = "cached" if fixed and fits else "frozen" if network.backbone_is_frozen else "trained"
    gathered = job.batch > job.micro_batch
    step = trace_step(sketch, job, documents.heaviest(job.micro_batch), hardware, reading, learning, gathered=gathered)
    once = trace_reading(sketch, documents.heaviest(READING_BATCH), hardware) if reading == "cached" else None
    changed, grown = _bytes(may), _bytes(learning)
    memory = Memory(
        weights=sketch.size,
        gradients=grown,
        optimiser=MOMENTS * grown,
        best=changed,
        activations=step.activations,
        label_attention=step.peak - step.activations,
        reading=once.peak if once else 0,
        planting=_planting(job, sketch, documents),
        saving=changed,
    )
    tokens = documents.mean * (documents.test if job.kind == "score" else documents.train)
    padding = documents.padding(job.micro_batch)
    validation = documents.validation / documents.train / 3 if learning else 0.0  # a forward pass is a third of a step
    return Estimate(
        job=job,
        memory=memory,
        reading=reading,
        cache=cache if reading == "cached" else 0,
        disk=CHECKPOINTS * (2 * changed + MOMENTS * grown) + changed,
        tokens=tokens,
        padding=padding,
        once=once.operations * read * documents.mean if once else 0.0,
        epoch=step.operations * tokens / (1 - padding) * (1 + validation),
    )


def _planting(job: Job, sketch: Outline, documents: Documents) -> int:
    """The start and the best so far, tables of prototypes, and what the attention gathers of some documents."""
    network = sketch.network
    if not job.planting or not isinstance(network.decoder, PlantableDecoder):
        return 0
    hidden = network.backbone.hidden_size
    longest = max(len(ids) for ids in documents.longest.ids)
    gathered = min(CELLS, network.labels * job.micro_batch * (longest + hidden))
    return 2 * _bytes(network.decoder.parameters()) + 4 * (TABLES * network.labels * hidden + gathered)


def _bytes(parameters: Iterable[nn.Parameter]) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)
