"""What a stage will take: bytes from the shapes of its network, activations and time from one
short step with made-up weights.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from plant_cli.api import (
    ClosedFormDecoder,
    Column,
    ComponentError,
    Corpus,
    Documents,
    LabelIndex,
    MachineSection,
    ModelSection,
    Options,
    PairDecoder,
    QueryDecoder,
    Reading,
    Reporter,
    Result,
    ScorerSpec,
    Table,
    TokenBatch,
    first_line,
)
from plant_cli.api.components import ComponentLookup
from plant_cli.api.context import Cell
from plant_cli.api.options import FIXED_SEED
from plant_cli.data.words import split_texts
from plant_cli.relevance.cooccurrence import MemoryCounts, count_terms
from plant_cli.relevance.engine import Selection, Signal, keep_words
from plant_cli.relevance.relevance_table import RELEVANCE_FILE, write_relevance
from plant_cli.runs.machine import peak_memory_gb, resident_memory
from plant_cli.scoring.cuts import tokenize
from plant_cli.scoring.forecast import TOLD_FROM, Forecast
from plant_cli.scoring.scorer_fitting import fit_scorers
from plant_cli.training.training_options import EVERYTHING, Schedule
from plant_network.answers import encode
from plant_network.assembly import Network, assemble
from plant_network.candidates import score_pairs
from plant_network.checkpointing import CHECKPOINTS_KEPT
from plant_network.closed_form import count_regressions
from plant_network.compute import TOKEN_MULTIPLE, round_up
from plant_network.design import find_design
from plant_network.hardware import Hardware, peak_allocated
from plant_network.materials import make_steps, micro_sizes, padding_share
from plant_network.optimiser import Rates, factors, make_groups, unfreeze
from plant_network.reading import lengths, pad_to_multiple
from plant_network.recomputation import activation_bytes
from plant_network.throughput import count_operations, time_fastest

DOCUMENTS_SAMPLED = 1000  # documents that are tokenised, counted, or that scorers are fitted on
TRIED_ON_PROCESSORS = (
    1_000_000_000  # parameters of the largest network whose step is measured on a processor
)
MOMENTS_PER_NUMBER = 2  # numbers that AdamW keeps for each that is trained
EQUAL = Rates(head=1.0, boost=1.0, attention=1.0, backbone=1.0)
GB = 1e9
MEASURE = "train it for one epoch and see `peak_memory_gb` in stage.json"
Source = Literal[
    "trained", "frozen", "cached", "reading"
]  # of hidden states; reading: the frozen backbone alone, to fill the cache
Measured = TypeVar("Measured")


@dataclass(frozen=True, kw_only=True)
class Job:
    """One stage that trains or scores."""

    model: ModelSection
    start: Path | None = None  # folder that its backbone starts from, see `Design`
    machine: MachineSection
    kind: Literal[
        "rank", "label", "score"
    ]  # ranks words (stage 1), assigns labels (stage 2), or scores without training
    documents: int  # that an epoch trains on, or that are scored
    split: str = (
        "train"  # of these documents: stages that read the same split share its cached states
    )
    # documents whose hidden states are cached: those of train and validation, or those that are
    # scored
    read: int = 0
    roles: frozenset[str] = frozenset()  # parts of the network that are trained
    epochs: int = 1  # at most
    drawn_epochs: int | None = (
        None  # the same for a decoder whose queries cannot start from a regression (None: as many)
    )
    batch: int  # documents of one optimiser step
    micro_batch: int  # documents in memory at once, at most
    fills: bool = False  # whether it takes fewer where these do not fit
    # labels that a step of stage 1 ranks, or labels of a document whose score has a gradient in
    # stage 2 (0: all)
    labels: int = 0
    candidates: int = (
        0  # labels of a document that are scored where a shortlist proposes them (0: all)
    )
    schedule: Schedule = EVERYTHING  # of unfreezing
    cache_limit: float = 0.0  # 10⁹ bytes of disk for the hidden states of one split
    every_score: bool = False  # whether the scores of all labels are kept
    regresses: bool = False  # whether classifiers are set in closed form before the first epoch

    @property
    def largest(self) -> int:
        """Documents of the largest micro-batch."""
        return micro_sizes(self.batch, self.micro_batch)[0]

    def unfreeze(self, network: Network) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Unfreeze what is trained in the last epoch; gives the parameters trained in any
        epoch, and those trained in the last.
        """
        groups = [group for group in make_groups(network, EQUAL) if group.role in self.roles]
        network.requires_grad_(False)
        unfreeze(
            groups, factors(groups, self.epochs - 1, replace(self.schedule, attention_factor=1.0))
        )
        ever = [parameter for group in groups for parameter in group.parameters]
        return ever, [parameter for parameter in ever if parameter.requires_grad]

    def score(self, network: Network, reading: Reading) -> Tensor:
        """A number whose forward and backward pass costs what the stage's loss costs; the loss
        itself adds next to nothing.
        """
        chosen = min(self.labels or network.labels, network.labels)
        if self.kind == "rank":
            return (
                network.decoder.rank(reading, torch.arange(chosen, device=reading.hidden.device))
                .exp()
                .sum()
            )
        if not (self.candidates and isinstance(network.decoder, PairDecoder)):
            logits: Tensor = network.decoder(reading).float()
            return logits.topk(chosen, dim=1).values.sum()
        draw = torch.Generator(device=reading.hidden.device).manual_seed(0)
        noise = torch.rand(
            (len(reading.mask), network.labels), generator=draw, device=reading.hidden.device
        )
        if (
            self.candidates > self.labels
        ):  # all are scored, and those that the loss looks at once more with a gradient
            with torch.no_grad():
                score_pairs(network.decoder, reading, _largest(noise, self.candidates))
        pairs = _largest(noise, min(self.labels, self.candidates))
        return score_pairs(network.decoder, reading, pairs)[pairs].sum()


def _largest(noise: Tensor, count: int) -> Tensor:
    """The `count` largest of each row, as bool [B, L]."""
    return torch.zeros_like(noise, dtype=torch.bool).scatter(
        1, noise.topk(min(count, noise.shape[1]), dim=1).indices, True
    )


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the network: its parameters, how many of them can be trained, and their bytes
    as they are held.
    """

    name: str
    parameters: int
    trained: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one stage takes."""

    memory: Mapping[str, int]  # bytes by part; all are held at the same time
    disk: Mapping[str, int]  # bytes by what is written
    work: Mapping[str, float]  # documents, tokens, operations and so on
    seconds: float | None  # without validation; None: no step could be measured
    parts: Sequence[Part] = ()
    micro_batch: int | None = None  # the largest that fits into memory, 0 if none does

    @property
    def peak(self) -> int:
        """The most that the stage holds."""
        return sum(self.memory.values())


def size_of(parameters: Iterable[nn.Parameter]) -> int:
    """Bytes of parameters as they compute."""
    return sum(parameter.numel() * parameter.element_size() for parameter in parameters)


def short_parameters(network: nn.Module, quantization: str) -> dict[nn.Parameter, int]:
    """Parameters that quantisation would shorten, each with the bytes it would take; from shapes
    alone.

    4 bits: half a byte a weight, a byte of scale for each 64, and fp32 for each 256 of these. 8
    bits: a byte, and fp32 for each row.
    """
    sizes: dict[nn.Parameter, int] = {}
    for part in network.modules() if quantization in ("int8", "nf4") else ():
        for parameter in part.parameters(recurse=False):
            experts = parameter.ndim == 3 and quantization == "nf4"
            if parameter.requires_grad or not (
                experts or (isinstance(part, nn.Linear) and parameter.ndim == 2)
            ):
                continue
            count = parameter.numel()
            sizes[parameter] = (
                count // 2 + count // 64 + count // 64 // 64
                if quantization == "nf4"
                else count + 4 * len(parameter)
            )
    return sizes


def outline(
    find: ComponentLookup, job: Job, labels: LabelIndex
) -> tuple[Network, tuple[Part, ...], int]:
    """A job's network on torch's meta device, its parts, and the bytes of its largest weight of
    4 or 8 bits as it computes.
    """
    design = replace(
        find_design(job.model.model_copy(update={"label_queries": "random"}), find), start=job.start
    )  # no titles are read
    spec, options = design.backbone
    try:
        with torch.device("meta"):
            network = assemble(design, job.machine, labels, documents=1)
    except (NotImplementedError, RuntimeError) as error:
        raise ComponentError(
            f"the backbone '{spec.name}' cannot be built without its weights: {first_line(error)}",
            where=f"backbone '{spec.name}', load under torch.device('meta')",
            expected="a backbone whose load makes tensors on torch's default device",
            todo=f"plan another backbone, or {MEASURE}",
        ) from error
    short = short_parameters(network.backbone_module, getattr(options, "quantization", "none"))
    named = {
        "head": "head, shared by all labels",
        "boost": "label tables",
        "attention": "label attention",
        "value": "label attention",
    }
    adapter = any("lora_" in name for name, _ in network.backbone_module.named_parameters())
    groups: dict[str, list[nn.Parameter]] = {"backbone": [], **({"adapter": []} if adapter else {})}
    for parameter in network.backbone_module.parameters():
        groups["adapter" if adapter and parameter.requires_grad else "backbone"].append(parameter)
    for role, parameters in network.decoder.parameter_roles().items():
        for parameter in parameters:
            table = parameter.ndim > 1 and len(parameter) == network.labels
            groups.setdefault("label tables" if table else named.get(role, role), []).append(
                parameter
            )
    parts = tuple(
        Part(
            name=name,
            parameters=sum(p.numel() for p in group),
            trained=sum(p.numel() for p in group if p.requires_grad),
            size=sum(short.get(p, size_of([p])) for p in group),
        )
        for name, group in groups.items()
    )
    for parameter in short:
        parameter.data = parameter.data.to(torch.bfloat16)  # the format in which they compute
    return network, parts, max((size_of([parameter]) for parameter in short), default=0)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Bytes, operations and seconds [3] of a micro-batch: a fixed part, and more with every
    document.
    """

    fixed: npt.NDArray[np.float64]
    document: npt.NDArray[np.float64]

    def memory(self, documents: int) -> int:
        """Bytes held at most, beside weights and gradients."""
        return max(0, int(self.fixed[0] + documents * self.document[0]))

    def each(self, documents: int) -> npt.NDArray[np.float64]:
        """Operations and seconds [2] of one document of mean length, in micro-batches of so
        many.
        """
        return np.maximum(0.0, self.fixed[1:] / documents + self.document[1:])


@dataclass(frozen=True, kw_only=True)
class StepTrial:
    """A step of a job on its device, with made-up weights: memory and time do not depend on
    their values.
    """

    network: Network
    job: Job
    longest: TokenBatch  # one document
    typical: TokenBatch  # one document of mean length
    hardware: Hardware

    def measure(self, source: Source) -> Cost:
        """The cost of a micro-batch, from one and two documents: bytes for the longest,
        operations and seconds for typical ones.
        """
        network, device = self.network, self.hardware.device
        part: nn.Module = network.decoder if source == "cached" else network
        try:
            part.to_empty(device=device)
            with torch.no_grad():
                for parameter in part.parameters():
                    parameter.fill_(0.02)
                for buffer in part.buffers():
                    buffer.zero_()
            network.train(bool(self.job.roles) and source != "reading")
            learning = (
                [] if source == "reading" else [p for p in part.parameters() if p.requires_grad]
            )
            passes = (
                min(2, len(micro_sizes(self.job.batch, self.job.micro_batch))) if learning else 1
            )  # the second finds gradients
            counts = []
            for documents in (1, 2):
                longest, typical = (
                    batch.select([0] * documents) for batch in (self.longest, self.typical)
                )
                peak = peak_allocated(
                    partial(self._run, longest, source, passes), device
                ) - size_of(learning)
                once = partial(self._run, typical, source, 1)
                counts.append(np.array([peak, count_operations(once), time_fastest(once, device)]))
        except (NotImplementedError, RuntimeError, IndexError) as error:
            raise ComponentError(
                f"this network cannot be tried with made-up weights: {first_line(error)}",
                where=f"backbone '{network.section.backbone.name}', decoder "
                f"'{network.section.decoder.name}'",
                expected="a network that runs with any weights, and that fits into memory",
                todo=MEASURE,
            ) from error
        finally:
            part.to("meta")
        one, two = (
            counts[0],
            np.maximum(*counts),
        )  # on a busy machine two documents may seem to take less time
        return Cost(fixed=2 * one - two, document=two - one)

    def _run(self, batch: TokenBatch, source: Source, passes: int) -> None:
        learns = bool(self.job.roles) and source != "reading"
        half = self.hardware.dtype == torch.bfloat16 or any(
            p.dtype == torch.bfloat16 for p in self.network.parameters()
        )
        for _ in range(passes):
            with (
                torch.autocast(self.hardware.device.type, dtype=torch.bfloat16, enabled=half),
                torch.set_grad_enabled(learns),
            ):
                states = self._read(batch, source)
                value = (
                    None
                    if source == "reading"
                    else self.job.score(self.network, Reading.of(*states))
                )
            if value is not None and value.requires_grad:
                value.backward()  # type: ignore[no-untyped-call]
        self.network.zero_grad(set_to_none=True)

    def _read(self, batch: TokenBatch, source: Source) -> tuple[Tensor, Tensor]:
        backbone, device = self.network.backbone, self.hardware.device
        if source != "cached":
            with torch.set_grad_enabled(source == "trained" and torch.is_grad_enabled()):
                return pad_to_multiple(*encode(backbone, batch))
        length = round_up(len(batch.ids[0]), TOKEN_MULTIPLE)
        mask = (torch.arange(length, device=device) < len(batch.ids[0])).expand(len(batch), -1)
        return torch.randn(
            len(batch), length, backbone.hidden_size, dtype=self.hardware.dtype, device=device
        ), mask


class Planner:
    """Plans the stages of one recipe; `free` is how many bytes of memory are free."""

    def __init__(
        self, find: ComponentLookup, corpus: Corpus, hardware: Hardware, free: int
    ) -> None:
        self._find, self._corpus, self._hardware, self.free = find, corpus, hardware, free
        self.device = hardware.device.type
        self._train = corpus.split("train")
        self._process = resident_memory()
        self._rows = np.sort(
            np.random.default_rng(FIXED_SEED).permutation(len(self._train))[:DOCUMENTS_SAMPLED]
        )
        self._filled: set[tuple[str, int, str]] = set()
        self._scale = len(self._train) / max(
            1, len(self._rows)
        )  # how many times as many documents train has as the sample
        self.notes: dict[str, None] = {}

    def plan_network(self, job: Job) -> Estimate:
        """Plan a stage that trains a network or scores with one."""
        network, parts, unpacked = outline(self._find, job, self._corpus.labels)
        if job.drawn_epochs is not None and not isinstance(network.decoder, QueryDecoder):
            job = replace(job, epochs=job.drawn_epochs)
        alike = network.backbone_is_frozen or bool(
            job.roles
        )  # what another stage trained is read as it is now
        ever, last = job.unfreeze(network)
        backbone = {id(parameter) for parameter in network.backbone_module.parameters()}
        fixed = alike and not backbone & {id(parameter) for parameter in ever}
        tokens, longest = self._tokenise(network)
        mean, device, labels = float(lengths(tokens).mean()), self._hardware.device, network.labels
        state = mean * network.backbone.hidden_size * self._hardware.dtype.itemsize
        cached = fixed and job.documents * state <= job.cache_limit * GB
        key = (str(job.model.backbone.to_recipe()), job.machine.seed, job.split)
        fills = cached and key not in self._filled
        if cached:
            self._filled.add(key)
        memory = {
            "process and texts": self._process if device.type == "cpu" else 0,
            "weights": sum(part.size for part in parts),
            "gradients": size_of(last),
            "optimiser": MOMENTS_PER_NUMBER * size_of(last),
            "best": size_of(ever),
        }
        padding = padding_share(
            lengths(tokens),
            make_steps(lengths(tokens), job.batch, job.micro_batch, seed=0, epoch=0),
        )
        estimate = Estimate(
            memory=memory,
            disk={
                "cache": int(job.read * state) if cached else 0,
                "checkpoints": CHECKPOINTS_KEPT
                * (2 * size_of(ever) + MOMENTS_PER_NUMBER * size_of(last))
                if job.roles
                else 0,
                "result": size_of(ever)
                if job.roles
                else job.documents * labels * torch.float32.itemsize * job.every_score,
            },
            work={
                "epochs": job.epochs,
                "tokens": job.documents * job.epochs * mean,
                "padding": padding,
            },
            seconds=None,
            parts=parts,
        )
        if size_of(network.parameters()) > self.free or (
            device.type == "cpu" and sum(part.parameters for part in parts) > TRIED_ON_PROCESSORS
        ):
            self.notes[
                "a network of this size is not tried here: its activations and hours come on "
                "top, but where it says so"
            ] = None
            known = hasattr(getattr(network.backbone_module, "config", None), "num_hidden_layers")
            return (
                estimate
                if fixed or not (job.roles and known)
                else self._add_activations(estimate, network, longest, short=unpacked > 0)
            )
        typical = tokens.select([int(np.abs(lengths(tokens) - mean).argmin())])
        trial = StepTrial(
            network=network, job=job, longest=longest, typical=typical, hardware=self._hardware
        )
        cost = trial.measure(
            "cached" if cached else "frozen" if network.backbone_is_frozen else "trained"
        )
        reading = trial.measure("reading") if fills else None

        def activations(documents: int) -> int:
            read = reading.memory(documents) if reading is not None and not job.roles else 0
            return max(cost.memory(documents), read) + unpacked

        fitting = next(
            (n for n in range(job.largest, 0, -1) if estimate.peak + activations(n) <= self.free), 0
        )
        together = max(1, fitting) if job.fills else job.largest
        work = job.documents * job.epochs / (1 - padding) * cost.each(together)
        if reading is not None:
            work += job.read * reading.each(together if job.fills else job.micro_batch)
        if job.regresses and isinstance(network.decoder, ClosedFormDecoder):
            work += job.documents * cost.each(together)  # what is gathered, by every label once
            work += self._regress(network.decoder, labels)
        return replace(
            estimate,
            memory={**memory, "activations": activations(together)},
            work={**estimate.work, "operations": float(work[0])},
            seconds=float(work[1]),
            micro_batch=fitting,
        )

    def _regress(self, decoder: ClosedFormDecoder, labels: int) -> npt.NDArray[np.float64]:
        """Operations and seconds [2] of the regressions of labels."""
        solved, width = count_regressions(decoder, labels, len(self._train))
        squares = torch.eye(width, device=self._hardware.device)
        seconds = time_fastest(partial(torch.linalg.cholesky, squares), self._hardware.device)
        return solved * np.array([width**3 / 3, seconds])

    def _add_activations(
        self, estimate: Estimate, network: Network, longest: TokenBatch, *, short: bool
    ) -> Estimate:
        """With what one document takes in a backbone that learns (`short`: in bf16), by the
        sizes of its layers.
        """
        tokens = len(longest.ids[0])
        count = partial(
            activation_bytes,
            network.backbone_module,
            round_up(tokens, TOKEN_MULTIPLE),
            size=2 if short else None,
        )
        self.notes[
            f"activations of a backbone that learns are those of one document of {tokens:,} "
            "tokens, by the sizes of its layers, computed "
            f"again in the backward pass; where {count() / GB:.1f} GB are free for a document, "
            "they are kept, which is faster"
        ] = None
        return replace(estimate, memory={**estimate.memory, "activations": count(recomputed=True)})

    def _tokenise(self, network: Network) -> tuple[TokenBatch, TokenBatch]:
        """Tokens of a sample of train, drawn at random, and of its longest document."""
        texts = self._train.texts
        tokens, longest = (
            tokenize(network.backbone, some)
            for some in ([texts[row] for row in self._rows], [max(texts, key=len)])
        )
        cut = np.mean(np.array(tokens.dropped) > 0)
        exact = (
            ""
            if not getattr(network.backbone, "estimated", False)
            else " (estimated: the model is not on this machine)"
        )
        self.notes[
            f"tokens are those of {len(tokens):,} training documents{exact}: "
            f"{lengths(tokens).mean():,.0f} each, at most "
            f"{len(longest.ids[0]):,}; {cut:.0%} are longer than the backbone reads"
        ] = None
        return tokens, longest

    def plan_scorers(
        self, chosen: Sequence[tuple[ScorerSpec, Options]], reporter: Reporter
    ) -> Estimate:
        """Plan a stage `finetune` without a network. Many documents have fewer fits than a
        sample, and blocks are as large.
        """
        sample, labels, scale = self._train.take(self._rows), self._corpus.labels, self._scale
        words, many = self._split(sample.texts), len(self._train) >= TOLD_FROM
        fitted, peak, seconds = _measure(
            lambda: fit_scorers(
                chosen, sample, words, labels, self._corpus.analyser, reporter, seed=0
            )
        )
        held, taken = peak * scale, seconds * scale
        if many:
            forecast = Forecast.of(
                words, sample.gold.nnz / max(1, len(sample)), len(labels), len(self._train)
            )
            held, taken = forecast.memory, forecast.seconds
        stored = (
            0
            if fitted is None
            else sum(
                t.nbytes for one in fitted.scorers.scorers for t in one.scorer.tensors().values()
            )
        )
        most = max(
            (
                spec.memory(options, len(self._train))
                for spec, options in chosen
                if spec.memory is not None
            ),
            default=0,
        )
        return Estimate(
            memory={"process and texts": self._process, "scorers": int(max(held, most))},
            disk={"result": int(stored * scale)},
            work={"documents": len(self._train), "labels": len(labels)},
            seconds=taken,
        )

    def plan_words(
        self, signal: Signal, selection: Selection, *, min_df: int, occurrences: bool
    ) -> Estimate:
        """Plan a stage `mig`; what it counts in memory is at most twice its option `memory`."""
        sample, labels, scale = self._train.take(self._rows), self._corpus.labels, self._scale

        def count(folder: str) -> int:
            terms = count_terms(self._split(sample.texts), min_df)
            counts = MemoryCounts(terms, sample.gold, with_occurrences=occurrences)
            weighed = (
                (kept, np.maximum(kept.values, 0.0))
                for kept in keep_words(counts, signal, selection)
            )
            return int(write_relevance(Path(folder), weighed, counts.margins, labels).sum())

        with TemporaryDirectory() as folder:
            kept, peak, seconds = _measure(partial(count, folder))
            size = (Path(folder) / RELEVANCE_FILE).stat().st_size
        rows = min(kept * scale, selection.k * len(labels))
        return Estimate(
            memory={
                "process and texts": self._process,
                "counting": max(
                    int(min(peak * scale, 2 * selection.memory)),
                    int(peak_memory_gb() * GB) - self._process,
                ),
            },
            disk={"result": int(size * rows / max(1, kept))},
            work={"documents": len(self._train), "labels": len(labels), "kept words": rows},
            seconds=seconds * scale,
        )

    def _split(self, texts: Sequence[str]) -> Documents:
        return split_texts(texts, self._corpus.analyser)


def _measure(run: Callable[[], Measured]) -> tuple[Measured, int, float]:
    """What a computation outside of torch gives, its bytes at most, and its seconds; it is run
    twice, because tracing takes time.
    """
    started = perf_counter()
    result = run()
    seconds = perf_counter() - started
    tracemalloc.start()
    try:
        run()
        return result, tracemalloc.get_traced_memory()[1], seconds
    finally:
        tracemalloc.stop()


def report_plans(
    plans: Mapping[str, Estimate],
    free: int,
    place: str,
    notes: Iterable[str],
    next_step: str = "plant mig",
) -> Result:
    """The tables and the data; the next step where all plans fit."""
    found = list(plans.values())
    hours = {
        name: None if plan.seconds is None else plan.seconds / 3600 for name, plan in plans.items()
    }
    work = [
        {name: value for name, value in plan.work.items() if name not in ("padding", "operations")}
        for plan in found
    ]
    shares = [plan.work.get("padding") for plan in found]
    padding: list[list[Cell]] = [
        ["padding", *("" if share is None else f"{share:.0%}" for share in shares)]
    ]
    rows: list[list[Cell]] = [
        *_rows("memory: ", [plan.memory for plan in found], GB),
        ["memory: peak", *(f"{plan.peak / GB:.3f}" for plan in found)],
        *_rows("disk: ", [plan.disk for plan in found], GB),
        *_rows("", work, None),
        *(padding if any(shares) else []),
        *_rows("", [{"TFLOP": plan.work.get("operations", 0.0)} for plan in found], 1e12),
        ["hours", *("?" if value is None else f"{value:.2g}" for value in hours.values())],
    ]
    fit = [f"{free / GB:.1f} GB are free"]
    for name, plan in plans.items():
        if plan.peak > free:
            smaller = (
                f"--micro-batch {plan.micro_batch} does"
                if plan.micro_batch
                else "a smaller backbone or a larger machine does"
            )
            fit.append(f"{name} does not fit: {smaller}")
    columns = [Column(name="what"), *(Column(name=name, kind="exact") for name in plans)]
    title = f"What each stage takes on {place} (memory and disk in GB)"
    data = {
        name: {**asdict(plan), "peak_bytes": plan.peak, "hours": hours[name]}
        for name, plan in plans.items()
    }
    return Result(
        tables=[
            *_list_parameters(plans),
            Table(title=title, columns=columns, rows=rows, notes=[*fit, *notes]),
        ],
        data={**data, "free_bytes": free},
        next_step=next_step if len(fit) == 1 else None,
    )


def _rows(
    prefix: str, figures: Sequence[Mapping[str, float]], unit: float | None
) -> list[list[Cell]]:
    """A row for each figure that any stage has."""

    def show(value: float | None) -> str:
        return "" if value is None else f"{value / unit:.3f}" if unit else f"{value:,.0f}"

    names = dict.fromkeys(name for plan in figures for name, value in plan.items() if value)
    return [[prefix + name, *(show(plan.get(name)) for plan in figures)] for name in names]


def _list_parameters(plans: Mapping[str, Estimate]) -> list[Table]:
    """One row for each part of each network, with the stages that share it."""
    alike: dict[tuple[Part, ...], list[str]] = {}
    for name, plan in plans.items():
        alike.setdefault(tuple(plan.parts), []).append(name)
    rows: list[list[Cell]] = [
        [", ".join(names), part.name, part.parameters, part.trained, f"{part.size / GB:.3f}"]
        for parts, names in alike.items()
        for part in parts
        if part.parameters
    ]
    columns = [
        Column(name="stage"),
        Column(name="part"),
        *(Column(name=n, kind="count") for n in ("parameters", "trainable")),
    ]
    return (
        [Table(title="Parameters", columns=[*columns, Column(name="GB", kind="exact")], rows=rows)]
        if rows
        else []
    )
