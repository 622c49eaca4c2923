"""What a stage will take: jobs, sizes from shapes, measured steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from plant_cli.api import (
    Backbone,
    ComponentError,
    LabelIndex,
    MachineSection,
    ModelSection,
    PairDecoder,
    Reading,
    Split,
    TokenBatch,
    UsageError,
    first_line,
)
from plant_cli.network.assembly import Network, assemble
from plant_cli.network.candidates import score_pairs
from plant_cli.network.compute import TOKEN_MULTIPLE, round_up
from plant_cli.network.design import ComponentLookup, find_design
from plant_cli.network.hardware import Hardware
from plant_cli.network.profile import HuggingFaceOptions
from plant_cli.network.quantization import short_parameters
from plant_cli.network.reading import lengths, pad_to_multiple
from plant_cli.runs.processes import read_launch
from plant_cli.training.materials import make_steps, micro_sizes, padding_share
from plant_cli.training.optimiser import Rates, factors, make_groups
from plant_cli.training.options import EVERYTHING, Schedule
from plant_cli.training.throughput import count_operations, peak_allocated, time_fastest

EQUAL = Rates(head=1.0, boost=1.0, attention=1.0, backbone=1.0)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One stage that trains or scores.

    Args:
        model, machine: sections of the recipe.
        kind: ranking words (stage 1), assigning labels (stage 2), or scoring without training.
        documents: that an epoch trains on, or that are scored.
        split: which documents these are, for stages that share what a cache holds of them.
        read: documents whose hidden states a cache holds: those of train and validation, or those that are scored.
        roles: parts of the network that are trained; none when scoring.
        epochs: at most.
        drawn_epochs: the same of a decoder whose queries cannot start from a regression; None: as many.
        batch: documents of one optimiser step.
        micro_batch: documents in memory at once, at most.
        labels: labels that a step of stage 1 ranks, or labels of a document whose score has a gradient in stage 2 (0: all).
        candidates: labels of a document that are scored at all where a shortlist proposes them (0: every label).
        schedule: of unfreezing.
        cache_limit: 10⁹ bytes of disk for the hidden states of one split.
        every_score: whether the scores of all labels are kept.
    """

    model: ModelSection
    machine: MachineSection
    kind: Literal["rank", "label", "score"]
    documents: int
    split: str = "train"
    read: int = 0
    roles: frozenset[str] = frozenset()
    epochs: int = 1
    drawn_epochs: int | None = None
    batch: int
    micro_batch: int
    labels: int = 0
    candidates: int = 0
    schedule: Schedule = EVERYTHING
    cache_limit: float = 0.0
    every_score: bool = False

    @property
    def micro_batches(self) -> int:
        """Of one optimiser step."""
        return len(micro_sizes(self.batch, self.micro_batch))

    @property
    def largest(self) -> int:
        """Documents of the largest micro-batch."""
        return micro_sizes(self.batch, self.micro_batch)[0]

    def unfreeze(self, network: Network) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Set which parameters are trained in the last epoch; gives those trained in any epoch, and those trained in the last."""
        groups = [group for group in make_groups(network, EQUAL) if group.role in self.roles]
        active = factors(groups, self.epochs - 1, replace(self.schedule, attention_factor=1.0))
        network.requires_grad_(False)
        for group, factor in zip(groups, active, strict=True):
            for parameter in group.parameters:
                parameter.requires_grad_(factor > 0)
        ever = [parameter for group in groups for parameter in group.parameters]
        return ever, [parameter for parameter in ever if parameter.requires_grad]

    def score(self, network: Network, reading: Reading) -> Tensor:
        """A number whose forward and backward pass costs what the stage's loss costs: the loss itself adds next to nothing.

        Args:
            network: the network.
            reading: the documents of a micro-batch.
        """
        chosen = min(self.labels or network.labels, network.labels)
        if self.kind == "rank":
            return network.decoder.rank(reading, torch.arange(chosen, device=reading.hidden.device)).exp().sum()
        if self.candidates and isinstance(network.decoder, PairDecoder):
            return self._score_candidates(network, reading)
        logits: Tensor = network.decoder(reading).float()
        return logits.topk(chosen, dim=1).values.sum()

    def _score_candidates(self, network: Network, reading: Reading) -> Tensor:
        """The same where only some labels of each document are scored: all of them with gradient, or those that the loss looks at."""
        draw = torch.Generator(device=reading.hidden.device).manual_seed(0)
        noise = torch.rand((len(reading.mask), network.labels), generator=draw, device=reading.hidden.device)
        looked_at, proposed = (largest(noise, count) for count in (min(self.labels, self.candidates), self.candidates))
        if self.candidates > self.labels:
            with torch.no_grad():
                score_pairs(network.decoder, reading, proposed)
        return score_pairs(network.decoder, reading, looked_at)[looked_at].sum()


def largest(noise: Tensor, count: int) -> Tensor:
    """The `count` largest of each row, as bool [B, L]."""
    return torch.zeros_like(noise, dtype=torch.bool).scatter(1, noise.topk(min(count, noise.shape[1]), dim=1).indices, True)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the network: how many parameters, how many of them training may change, and their bytes as they are held."""

    name: str
    parameters: int
    trained: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A network on torch's meta device, with the parameters unfrozen that the job trains.

    Args:
        network: all shapes, no values.
        parts: backbone, adapter, label tables and so on.
        changed: bytes of what training changes in any epoch.
        learning: bytes of what it changes in the last epoch.
        fixed: whether the backbone stays as it is in every epoch; when scoring, whether no stage trained it.
        unpacked: bytes of the largest weight that is held in 4 or 8 bits, in the format in which it computes; 0 if there is none.
    """

    network: Network
    parts: tuple[Part, ...]
    changed: int
    learning: int
    fixed: bool
    unpacked: int

    @property
    def size(self) -> int:
        """Bytes of all weights as they are held."""
        return sum(part.size for part in self.parts)


def outline(find: ComponentLookup, job: Job, labels: LabelIndex) -> Outline:
    """Build a job's network without weights.

    Args:
        find: looks up backbone and decoder.
        job: the stage.
        labels: the label index.

    Raises:
        ComponentError: the backbone cannot be built on torch's meta device.
    """
    section = job.model.model_copy(update={"label_queries": "random"})  # titles need not be read
    design = find_design(section, find)
    spec, options = design.backbone
    with torch.device("meta"):
        try:
            network = assemble(design, job.machine, labels, documents=1)
        except (NotImplementedError, RuntimeError) as error:
            raise ComponentError(
                f"the backbone '{spec.name}' cannot be built without its weights: {first_line(error)}",
                where=f"backbone '{spec.name}', load under torch.device('meta')",
                expected="a backbone whose load makes tensors on torch's default device",
                todo="plan another backbone, or train it for one epoch and see `peak_memory_gb` in stage.json",
            ) from error
    short = short_parameters(network.backbone_module, options) if isinstance(options, HuggingFaceOptions) else {}
    parts = _parts(network, short)
    for parameter in short:
        parameter.data = parameter.data.to(torch.bfloat16)  # the format in which they compute
    read_alike = network.backbone_is_frozen or bool(job.roles)  # what another stage trained is read as it is now
    changed, learning = job.unfreeze(network)
    return Outline(
        network=network,
        parts=parts,
        changed=size_of(changed),
        learning=size_of(learning),
        fixed=read_alike and not {id(p) for p in changed} & {id(p) for p in network.backbone_module.parameters()},
        unpacked=max(map(size_of_one, short), default=0),
    )


def size_of_one(parameter: nn.Parameter) -> int:
    """Bytes of a parameter as it computes."""
    return parameter.numel() * parameter.element_size()


def size_of(parameters: Iterable[nn.Parameter]) -> int:
    """Bytes of parameters as they compute."""
    return sum(map(size_of_one, parameters))


def _parts(network: Network, short: dict[nn.Parameter, int]) -> tuple[Part, ...]:
    named = {"head": "head, shared by all labels", "boost": "label tables", "attention": "label attention", "value": "label attention"}
    adapter = any("lora_" in name for name, _ in network.backbone_module.named_parameters())
    groups: dict[str, list[nn.Parameter]] = {"backbone": [], **({"adapter": []} if adapter else {})}
    for parameter in network.backbone_module.parameters():
        groups["adapter" if adapter and parameter.requires_grad else "backbone"].append(parameter)
    for role, parameters in network.decoder.parameter_roles().items():
        for parameter in parameters:
            table = parameter.ndim > 1 and len(parameter) == network.labels
            groups.setdefault("label tables" if table else named.get(role, role), []).append(parameter)
    return tuple(
        Part(
            name=name,
            parameters=sum(p.numel() for p in found),
            trained=sum(p.numel() for p in found if p.requires_grad),
            size=sum(short.get(p, size_of_one(p)) for p in found),
        )
        for name, found in groups.items()
    )


SAMPLE = 1000
"""Documents that are tokenised."""


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Training documents as a backbone reads them.

    Args:
        tokens: of the sample.
        longest: of the longest document by characters.
    """

    tokens: TokenBatch
    longest: TokenBatch

    @property
    def mean(self) -> float:
        """Tokens of a document on average."""
        return float(lengths(self.tokens).mean())

    @property
    def typical(self) -> TokenBatch:
        """The document of the sample whose length is nearest to the mean."""
        return self.tokens.select([int(np.abs(lengths(self.tokens) - self.mean).argmin())])

    def padding(self, batch: int, micro_batch: int) -> float:
        """Share of positions that are padding, in the micro-batches of steps of `batch` documents."""
        found = lengths(self.tokens)
        return padding_share(found, make_steps(found, batch, micro_batch, seed=0, epoch=0))

    def describe(self) -> str:
        """For a person."""
        cut = np.mean(np.array(self.tokens.dropped) > 0)
        return (
            f"tokens are those of {len(self.tokens):,} training documents: {self.mean:,.0f} each, at most "
            f"{len(self.longest.ids[0]):,}; {cut:.0%} are longer than the backbone reads"
        )


def read_documents(train: Split, backbone: Backbone) -> Documents:
    """Tokenise a sample of the training documents, drawn at random, and the longest one."""
    rows = np.sort(np.random.default_rng(0).permutation(len(train))[:SAMPLE])
    return Documents(tokens=backbone.tokenize([train.texts[row] for row in rows]), longest=backbone.tokenize([max(train.texts, key=len)]))


Source = Literal["trained", "frozen", "cached", "reading"]
"""Where hidden states come from: a backbone that is trained, a frozen one, the cache; or the frozen backbone reads and nothing else."""
Figures = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Bytes, operations and seconds [3] of a micro-batch: `fixed`, and more with every document."""

    fixed: Figures
    document: Figures

    def memory(self, documents: int) -> int:
        """Bytes held at most, beside weights and gradients."""
        return max(0, int(self.fixed[0] + documents * self.document[0]))

    def each(self, documents: int) -> tuple[float, float]:
        """Operations and seconds of one document of typical length, in micro-batches of so many."""
        operations, seconds = np.maximum(0.0, self.fixed[1:] / documents + self.document[1:])
        return float(operations), float(seconds)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Measures stages.

    Args:
        sketch: the network; its weights come and go.
        job: the stage.
        documents: the training documents.
        hardware: where it runs.
        timed: whether to measure seconds, too.
    """

    sketch: Outline
    job: Job
    documents: Documents
    hardware: Hardware
    timed: bool

    def measure(self, source: Source) -> Cost:
        """The cost of a micro-batch.

        Args:
            source: where hidden states come from.

        Raises:
            ComponentError: the network does not run with made-up weights, or with fewer layers.
        """
        one, two = self._extrapolate(source)
        two = np.maximum(one, two)  # on a busy machine two documents may seem to take less time
        return Cost(fixed=2 * one - two, document=two - one)

    def _extrapolate(self, source: Source) -> Figures:
        """Figures [2, 3] of one and two documents through all blocks, from one block of each kind and from one more of each."""
        network = self.sketch.network
        if source == "cached":
            return self._run(network.decoder, source)
        blocks = Blocks(network.backbone_module)
        with blocks.keep():
            total = least = self._run(network, source)
        for kind, number in blocks.kinds.items():
            if number > 1:
                with blocks.keep(kind):
                    total = total + (number - 1) * np.maximum(0.0, self._run(network, source) - least)
        return total

    def _run(self, part: nn.Module, source: Source) -> Figures:
        """Figures [2, 3] of one and two documents through a part of the network, whose weights come and go."""
        section = self.sketch.network.section
        try:
            part.to_empty(device=self.hardware.device)
            _fill(part)
            return np.array([self._count(part, documents, source) for documents in (1, 2)])
        except (NotImplementedError, RuntimeError, IndexError) as error:
            raise ComponentError(
                f"this network cannot be tried with made-up weights: {first_line(error)}",
                where=f"backbone '{section.backbone.name}', decoder '{section.decoder.name}'",
                expected="a network that runs with one layer of each kind, and that fits into memory so",
                todo="train it for one epoch and see `peak_memory_gb` in stage.json",
            ) from error
        finally:
            part.to("meta")

    def _count(self, part: nn.Module, documents: int, source: Source) -> list[float]:
        """Bytes for the longest documents, operations and seconds for typical ones."""
        longest, typical = (batch.select([0] * documents) for batch in (self.documents.longest, self.documents.typical))
        self.sketch.network.train(bool(self.job.roles) and source != "reading")
        learning = [] if source == "reading" else [p for p in part.parameters() if p.requires_grad]
        passes = min(2, self.job.micro_batches) if learning else 1
        peak = peak_allocated(partial(self._pass, longest, source, passes), self.hardware.device) - size_of(learning)
        once = partial(self._pass, typical, source, 1)
        return [peak, count_operations(once), time_fastest(once, self.hardware.device) if self.timed else 0.0]

    def _pass(self, batch: TokenBatch, source: Source, passes: int) -> None:
        network, learns = self.sketch.network, bool(self.job.roles) and source != "reading"
        for _ in range(passes):
            with self._autocast(), torch.set_grad_enabled(learns):
                reading = Reading.of(*self._read(batch, source))
                found = None if source == "reading" else self.job.score(network, reading)
            if found is not None and found.requires_grad:
                found.backward()  # type: ignore[no-untyped-call]
        network.zero_grad(set_to_none=True)

    def _autocast(self) -> torch.autocast:
        half = self.hardware.dtype == torch.bfloat16 or bool(self.sketch.unpacked)  # weights in few bits compute in bf16
        return torch.autocast(self.hardware.device.type, dtype=torch.bfloat16, enabled=half)

    def _read(self, batch: TokenBatch, source: Source) -> tuple[Tensor, Tensor]:
        backbone, device = self.sketch.network.backbone, self.hardware.device
        if source != "cached":
            with torch.set_grad_enabled(source == "trained" and torch.is_grad_enabled()):
                return pad_to_multiple(*backbone.encode(batch))
        length = round_up(len(batch.ids[0]), TOKEN_MULTIPLE)
        mask = (torch.arange(length, device=device) < len(batch.ids[0])).expand(len(batch), -1)
        return torch.randn(len(batch), length, backbone.hidden_size, dtype=self.hardware.dtype, device=device), mask


class Blocks:
    """The layers of a backbone: its largest list of modules. Layers are of one kind if their shapes and what is trained of them agree.

    Args:
        module: the backbone, its parameters unfrozen as in training.
    """

    def __init__(self, module: nn.Module) -> None:
        lists = [(name, part) for name, part in module.named_modules() if isinstance(part, nn.ModuleList) and name]
        name, found = max(lists, key=lambda item: sum(p.numel() for p in item[1].parameters()), default=("", nn.ModuleList()))
        self._owner, self._name = module.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]
        self._all = list(found)
        self._kinds = [tuple((n, p.shape, p.requires_grad) for n, p in block.named_parameters()) for block in self._all]
        self.kinds = Counter(self._kinds)

    @contextmanager
    def keep(self, twice: object = None) -> Iterator[None]:
        """Leave one block of each kind in the backbone, in their order, and two of the kind `twice`."""
        seen: Counter[object] = Counter()
        kept: list[nn.Module] = []
        for block, kind in zip(self._all, self._kinds, strict=True):
            seen[kind] += 1
            if seen[kind] <= 1 + (kind == twice):
                kept.append(block)
        self._put(kept)
        try:
            yield
        finally:
            self._put(self._all)

    def _put(self, blocks: Sequence[nn.Module]) -> None:
        if self._all:
            setattr(self._owner, self._name, nn.ModuleList(blocks))


@torch.no_grad()
def _fill(module: nn.Module) -> None:
    """Equal weights and empty buffers: memory and time do not depend on them, unless they are no numbers or next to zero."""
    for parameter in module.parameters():
        parameter.fill_(0.02)
    for buffer in module.buffers():
        buffer.zero_()


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
