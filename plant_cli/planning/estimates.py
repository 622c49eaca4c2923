"""Memory, disk and operations of one stage, from its job, the outline of its network and the documents."""

from __future__ import annotations

from dataclasses import dataclass

from plant_cli.api import PlantableDecoder
from plant_cli.model.hardware import Hardware
from plant_cli.model.network import Network
from plant_cli.planning.documents import Documents
from plant_cli.planning.jobs import Job
from plant_cli.planning.outline import Outline
from plant_cli.planning.sharing import ALONE, Shares, Sharing, size_of
from plant_cli.planning.trace import Reading, Trace, trace_reading, trace_step
from plant_cli.training.prototypes import NUMBERS

MOMENTS = 2  # AdamW keeps two numbers for each that learns
CHECKPOINTS = 2  # that are kept
READING_BATCH = 16  # documents that are read at once when hidden states are cached
TABLES = 7
"""Arrays of the size of a label table that are in hand while tables are planted."""
SCORED_ON_DISK = 12  # bytes of a label's name and score in predictions.parquet
LOGIT = 4  # bytes of a score in scores.bin
VALIDATION = 1 / 3
"""A forward pass, as a share of a step."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes of memory of one process by part.

    Args:
        weights: as they are held, quantised or not.
        gradients, optimiser: of what learns by the last epoch.
        gathered: what is spread over the processes and whole in this one for a time: weights, and their gradients in a pass.
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
    gathered: int = 0
    best: int = 0
    activations: int = 0
    label_attention: int = 0
    reading: int = 0
    planting: int = 0
    saving: int = 0

    @property
    def peak(self) -> int:
        """The most that is held at any time: while reading, while planting, in a step of training, or in saving after one."""
        passing = self.gradients + self.gathered + self.activations + self.label_attention
        return self.weights + max(self.reading, self.planting, self.optimiser + self.best + max(passing, self.saving))


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one stage takes.

    Args:
        job: the stage.
        memory: of one process, by part.
        reading: where hidden states come from.
        cache: bytes of hidden states on disk.
        disk: bytes of checkpoints and of the result.
        tokens: that one epoch reads.
        padding: share of positions that are padding.
        once: operations before the first epoch: filling the cache.
        steps: operations of one epoch's steps.
        scoring: operations of one epoch's validation, or of scoring alone.
    """

    job: Job
    memory: Memory
    reading: Reading
    cache: int
    disk: int
    tokens: float
    padding: float
    once: float
    steps: float
    scoring: float

    @property
    def epoch(self) -> float:
        """Operations of one epoch with its validation."""
        return self.steps + self.scoring

    @property
    def operations(self) -> float:
        """Of the whole stage, by all processes."""
        return self.waited(Shares())

    def waited(self, shares: Shares) -> float:
        """Operations that the longest of several processes does; planting label tables costs about as much as an epoch."""
        epochs = self.steps * shares.steps + self.scoring * shares.reading
        return epochs * self.job.epochs + (self.once + self.epoch * self.job.planting) * shares.reading


def estimate(job: Job, sketch: Outline, documents: Documents, hardware: Hardware, sharing: Sharing = ALONE) -> Estimate:
    """Estimate a stage.

    Args:
        job: the stage.
        sketch: its network; comes back unfrozen as the stage's is.
        documents: the training documents.
        hardware: where it runs.
        sharing: the processes that share it.
    """
    network = sketch.network
    may, learning = job.thaw(network)
    read = documents.train + documents.validation if learning else 0
    cache = int(read * documents.mean * network.backbone.hidden_size * hardware.dtype.itemsize)
    fits = read and cache * documents.train / read <= job.cache_limit * 1e9
    fixed = not {id(p) for p in may} & {id(p) for p in network.backbone_module.parameters()}
    reading: Reading = "cached" if fixed and fits else "frozen" if network.backbone_is_frozen else "trained"
    step = trace_step(sketch, job, documents.heaviest(job.micro_batch), hardware, reading, learning, gathered=sharing.passes(job) > 1)
    once = trace_reading(sketch, documents.heaviest(READING_BATCH), hardware) if reading == "cached" else None
    tokens = documents.mean * (documents.train if learning else documents.count(job.split))
    padding = documents.padding(job.micro_batch)
    operations = step.operations * tokens / (1 - padding)
    return Estimate(
        job=job,
        memory=_memory(job, sketch, documents, sharing.of(job), step, once),
        reading=reading,
        cache=cache if reading == "cached" else 0,
        disk=_disk(job, network, documents, size_of(may), size_of(learning)),
        tokens=tokens,
        padding=padding,
        once=once.operations * read * documents.mean if once else 0.0,
        steps=operations if learning else 0.0,
        scoring=operations * (VALIDATION * documents.validation / documents.train if learning else 1.0),
    )


def _memory(job: Job, sketch: Outline, documents: Documents, sharing: Sharing, step: Trace, once: Trace | None) -> Memory:
    network = sketch.network
    may, learning = job.thaw(network)
    grown, kept = sharing.held(learning, sketch), sharing.held(may, sketch)
    weights = sharing.weights(sketch)
    return Memory(
        weights=weights,
        gradients=grown,
        optimiser=MOMENTS * grown,
        gathered=sharing.gathered(learning, sketch),
        best=kept,
        activations=step.activations,
        label_attention=step.peak - step.activations,
        reading=once.peak if once else 0,
        planting=_planting(job, sketch, documents) + (sketch.size - weights) * job.planting,  # nothing is spread before
        saving=kept,
    )


def _disk(job: Job, network: Network, documents: Documents, changed: int, grown: int) -> int:
    """Checkpoints and the trained weights, or predictions."""
    if job.kind != "score":
        return CHECKPOINTS * (2 * changed + MOMENTS * grown) + changed
    kept = SCORED_ON_DISK * min(job.top_k, network.labels) + (LOGIT * network.labels if job.every_score else 0)
    return documents.count(job.split) * kept


def _planting(job: Job, sketch: Outline, documents: Documents) -> int:
    """The start and the best so far, tables of prototypes, and what the attention gathers of some documents."""
    network = sketch.network
    if not job.planting or not isinstance(network.decoder, PlantableDecoder):
        return 0
    hidden = network.backbone.hidden_size
    longest = max(len(ids) for ids in documents.longest.ids)
    gathered = min(NUMBERS, network.labels * job.micro_batch * (longest + hidden))
    return 2 * size_of(network.decoder.parameters()) + 4 * (TABLES * network.labels * hidden + gathered)
