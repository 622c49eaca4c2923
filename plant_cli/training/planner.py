"""Plans of a recipe's stages, with advice."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from plant_cli.api import (
    BackboneSpec,
    Choice,
    Column,
    ComponentError,
    Corpus,
    DecoderSpec,
    LabelIndex,
    Options,
    QueryDecoder,
    Reporter,
    Result,
    ScorerSpec,
    Split,
    Table,
)
from plant_cli.api.context import Cell
from plant_cli.data.files import hash_json
from plant_cli.network.design import ComponentLookup
from plant_cli.network.hardware import Hardware
from plant_cli.relevance.cooccurrence import MemoryCounts, Terms
from plant_cli.relevance.engine import Selection, Signal, keep_words
from plant_cli.relevance.relevance_table import MIG, write_relevance
from plant_cli.runs.machine import available_memory, peak_memory_gb, resident_memory
from plant_cli.scoring.scorer_files import share_tensors
from plant_cli.scoring.scorer_fitting import fit_scorers
from plant_cli.training.planning import Change, Documents, Estimate, Job, Machine, Sharing, estimate, outline, read_documents
from plant_cli.training.throughput import Clock, matrix_rate

SHORTEST = 512
"""Tokens of a document below which cutting is no advice."""
LABEL_RANK = 64
HELPS = 0.98
"""A change that leaves more of the peak than this does not help."""

Proposal = tuple[str, Job]


def advise(job: Job, found: Estimate, limit: int, again: Callable[[Job], Estimate], find: ComponentLookup) -> list[Change]:
    """Changes, one upon the other, until the stage fits; all that help if it never does.

    Args:
        job: the stage.
        found: what it takes as it is.
        limit: bytes that are free.
        again: estimates a changed job.
        find: looks up a component and its options.
    """
    changes: dict[Callable[..., Proposal | None], Change] = {}
    for rule in (fewer_documents, checkpointing, four_bits, low_rank_labels, shorter_documents):
        while found.peak > limit and (proposed := rule(job, find)) is not None:
            tried = _try(proposed[1], again)
            if tried is None or tried.peak > HELPS * found.peak:
                break
            job, found = proposed[1], tried
            changes[rule] = Change(options=proposed[0], peak=found.peak)
    return list(changes.values())


def _try(job: Job, again: Callable[[Job], Estimate]) -> Estimate | None:
    """A changed job's estimate; None where a component refuses the option, such as a rank above a small network's hidden size."""
    try:
        return again(job)
    except ComponentError:
        return None


def fewer_documents(job: Job, find: ComponentLookup) -> Proposal | None:
    """Half the documents in memory at once; gradients are summed over more micro-batches instead."""
    half = job.largest // 2
    return (f"--micro-batch {half}", replace(job, micro_batch=half)) if half else None


def checkpointing(job: Job, find: ComponentLookup) -> Proposal | None:
    """Recompute activations in the backward pass."""
    if getattr(find(BackboneSpec, job.model.backbone)[1], "gradient_checkpointing", True) or not job.roles:
        return None
    return _set(job, "backbone", gradient_checkpointing=True)


def four_bits(job: Job, find: ComponentLookup) -> Proposal | None:
    """Frozen weights in 4 bits."""
    options = find(BackboneSpec, job.model.backbone)[1]
    if getattr(options, "quantization", "nf4") == "nf4":
        return None
    adapter = {"adapter": "lora"} if getattr(options, "adapter", None) == "full" else {}
    return _set(job, "backbone", quantization="nf4", **adapter)


def low_rank_labels(job: Job, find: ComponentLookup) -> Proposal | None:
    """Label queries of low rank."""
    if getattr(find(DecoderSpec, job.model.decoder)[1], "label_rank", LABEL_RANK) is not None:
        return None
    return _set(job, "decoder", label_rank=LABEL_RANK)


def shorter_documents(job: Job, find: ComponentLookup) -> Proposal | None:
    """Half the tokens of each document."""
    half = int(getattr(find(BackboneSpec, job.model.backbone)[1], "max_tokens", 0)) // 2
    return _set(job, "backbone", max_tokens=half) if half >= SHORTEST else None


def _set(job: Job, part: str, **options: Any) -> Proposal:
    chosen: Choice = getattr(job.model, part)
    changed = Choice(name=chosen.name, options={**chosen.options, **options})
    text = " ".join(f"--set model.{part}.{key}={str(value).lower()}" for key, value in options.items())
    return text, replace(job, model=job.model.model_copy(update={part: changed}))


class Planner:
    """Plans stages.

    Args:
        find: looks up components.
        corpus: the documents.
        hardware: where the stages will run.
        sharing: the processes that will share each stage.
        free: bytes of memory that are free for each process.
        timed: whether to measure time.
    """

    def __init__(self, find: ComponentLookup, corpus: Corpus, hardware: Hardware, sharing: Sharing, *, free: int, timed: bool) -> None:
        self.notes: list[str] = []
        self._find, self._corpus, self._sharing, self._free, self._timed = find, corpus, sharing, free, timed
        self._train = corpus.split("train")
        rate = matrix_rate(hardware.device, hardware.dtype)
        self._machine = Machine(hardware=hardware, rate=rate, process=resident_memory())
        self._documents: dict[str, Documents] = {}
        self._filled: set[str] = set()

    def plan(self, job: Job) -> Estimate:
        """Plan one stage that trains or scores, with what makes it fit."""
        found = self._estimate(job, timed=self._timed)
        if found.disk["cache"]:  # stages that read alike share the cache
            self._filled.add(_reader(job))
        return replace(found, changes=advise(job, found, self._free, self._estimate, self._find))

    def scorers(self, chosen: Sequence[Choice]) -> list[tuple[ScorerSpec, Options]]:
        """The scorers that a stage names, with their options."""
        return [self._find(ScorerSpec, one) for one in chosen]

    def _estimate(self, job: Job, *, timed: bool = False) -> Estimate:
        sketch = outline(self._find, job, self._corpus.labels)
        key = hash_json(job.model.backbone.to_recipe())
        if key not in self._documents:
            self._documents[key] = read_documents(self._train, sketch.network.backbone)
            self.notes.append(self._documents[key].describe())
        if job.drawn_epochs is not None and not isinstance(sketch.network.decoder, QueryDecoder):
            job = replace(job, epochs=job.drawn_epochs)
        filled = _reader(job) in self._filled
        return estimate(job, sketch, self._documents[key], self._machine, self._sharing, filled=filled, timed=timed)


def _reader(job: Job) -> str:
    return hash_json([job.model.backbone.to_recipe(), job.machine.seed, job.split])


def free_memory(hardware: Hardware, sharing: Sharing) -> int:
    """Bytes that are free for each process; on a processor what this process gives back when it ends is free, too."""
    if hardware.device.type == "cuda":
        return int(torch.cuda.mem_get_info(hardware.device)[0])
    return (available_memory() + resident_memory()) // sharing.neighbours


SAMPLED_DOCUMENTS = 500
"""Documents that scorers are fitted on; half of them, too, to see what grows."""


def plan_scorers(corpus: Corpus, chosen: Sequence[tuple[ScorerSpec, Options]], reporter: Reporter) -> Estimate:
    """Plan a stage `finetune` without a network.

    Args:
        corpus: the documents.
        chosen: scorers and their options.
        reporter: where notes go.
    """
    train = corpus.split("train")
    rows = np.sort(np.random.default_rng(0).permutation(len(train))[:SAMPLED_DOCUMENTS])
    (half, _, less), (whole, seconds, stored) = (_trace(corpus, train.take(part), chosen, reporter) for part in (rows[::2], rows))
    scale = len(train) / max(1, len(rows))
    grown = whole + max(0, whole - half) * 2 * (scale - 1)
    most = max((spec.memory(options, len(train)) for spec, options in chosen if spec.memory is not None), default=0)
    return Estimate(
        memory={"process and texts": resident_memory(), "scorers": int(max(grown, most))},
        disk={"result": int(sum(size * scale ** _order(less.get(name, 0), size) for name, size in stored.items()))},
        work={"documents": len(train), "labels": len(corpus.labels)},
        seconds=seconds * scale,
        measured=True,
    )


def _trace(
    corpus: Corpus, train: Split, chosen: Sequence[tuple[ScorerSpec, Options]], reporter: Reporter
) -> tuple[int, float, Mapping[str, int]]:
    """Bytes at most, seconds, and bytes of each tensor that is kept of one fit."""
    tracemalloc.start()
    started = perf_counter()
    try:
        fitted = fit_scorers(chosen, train, corpus.labels, corpus.analyser, reporter, seed=0)
        peak, seconds = tracemalloc.get_traced_memory()[1], perf_counter() - started
    finally:
        tracemalloc.stop()
    return peak, seconds, {} if fitted is None else _measure({one.name: one.scorer.tensors() for one in fitted.scorers.scorers})


def _measure(tensors: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> Mapping[str, int]:
    """Bytes of each tensor of each scorer; one that several have counts once."""
    _, places = share_tensors(list(tensors.values()))
    owners = Counter(key for names in places for key in names.values())
    return {
        f"{scorer} {name}": tensor.nbytes // owners[names[name]] if name in names else tensor.nbytes
        for (scorer, own), names in zip(tensors.items(), places, strict=True)
        for name, tensor in own.items()
    }


def _order(half: int, whole: int) -> float:
    """The power of the number of documents with which a size grows, from that of half the documents: 0 to 2."""
    return min(2.0, max(0.0, log2(whole / half))) if half and whole else 1.0


SAMPLE = 2000
"""Documents that are counted; half of them are counted, too, to see what grows."""


def plan_words(
    train: Split, labels: LabelIndex, count: Callable[[Sequence[str]], Terms], signal: Signal, selection: Selection, *, occurrences: bool
) -> Estimate:
    """Plan a stage `mig` whose corpus this process has just read.

    Args:
        train: the training documents.
        labels: the label index.
        count: counts the words of texts.
        signal: what is computed from the counts.
        selection: what is kept, and in which blocks of labels.
        occurrences: whether the signal needs to know how often words occur.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(train))[:SAMPLE])
    read, resident = int(peak_memory_gb() * 1e9), resident_memory()

    def run(rows: np.ndarray[tuple[int], np.dtype[np.int64]], folder: str) -> int:
        counting = MemoryCounts(count([train.texts[row] for row in rows.tolist()]), train.gold[rows], with_occurrences=occurrences)
        blocks = keep_words(counting, signal, selection)
        return int(write_relevance(Path(folder), ((kept, np.maximum(kept.values, 0.0)) for kept in blocks), counting.margins, labels).sum())

    def trace(rows: np.ndarray[tuple[int], np.dtype[np.int64]], folder: str) -> int:
        tracemalloc.start()
        try:
            run(rows, folder)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with TemporaryDirectory() as folder:
        clock = Clock(torch.device("cpu"))
        kept = run(rows, folder)
        seconds, size = clock.lap(), (Path(folder) / MIG).stat().st_size
        half, whole = trace(rows[::2], folder), trace(rows, folder)
    more = len(train) - len(rows)
    counting = whole + max(0, whole - half) * more * 2 // len(rows)
    scale = len(train) / len(rows)
    rows_at_most = min(kept * scale, selection.k * len(labels))
    return Estimate(
        memory={"process and texts": resident, "counting": max(counting, read - resident)},
        disk={"result": int(size * rows_at_most / max(1, kept))},
        work={"documents": len(train), "labels": len(labels), "kept words": rows_at_most},
        seconds=seconds * scale,
        measured=True,
    )


GB = 1e9


def report(plans: Mapping[str, Estimate], free: int, place: str, notes: Sequence[str]) -> Result:
    """The tables and the data.

    Args:
        plans: what each stage takes, by its section in the recipe.
        free: bytes of memory that are free for each process.
        place: device, number format and processes.
        notes: on what the figures rest.
    """
    padding: list[list[Cell]] = []
    if any("padding" in found.work for found in plans.values()):
        padding.append(["padding", *(_share(found.work.get("padding")) for found in plans.values())])
    rows: list[list[Cell]] = [
        *_rows("memory: ", [found.memory for found in plans.values()], GB),
        ["memory: peak", *(f"{found.peak / GB:.3f}" for found in plans.values())],
        *_rows("disk: ", [found.disk for found in plans.values()], GB),
        *_rows("", [{k: v for k, v in found.work.items() if k not in ("padding", "operations")} for found in plans.values()], None),
        *padding,
        *_rows("", [{"TFLOP": found.work.get("operations", 0.0)} for found in plans.values()], 1e12),
        ["hours", *(_hours(found) for found in plans.values())],
    ]
    columns = [Column(name="what"), *(Column(name=name, kind="exact") for name in plans)]
    taken = Table(
        title=f"What each stage takes on {place} (memory and disk in GB)", columns=columns, rows=rows, notes=[*_fit(plans, free), *notes]
    )
    fits = all(found.peak <= free for found in plans.values())
    data = {name: {**asdict(found), "peak_bytes": found.peak, "hours": found.seconds / 3600} for name, found in plans.items()}
    return Result(
        tables=[*_parameters(plans), taken],
        data={**data, "free_bytes": free},
        next_step="plant run RECIPE, or plant mig" if fits else None,
    )


def _rows(prefix: str, figures: Sequence[Mapping[str, float]], unit: float | None) -> list[list[Cell]]:
    """A row for each figure that any stage has."""
    names = dict.fromkeys(name for found in figures for name, value in found.items() if value)

    def show(value: float | None) -> str:
        return "" if value is None else f"{value / unit:.3f}" if unit else f"{value:,.0f}"

    return [[prefix + name, *(show(found.get(name)) for found in figures)] for name in names]


def _parameters(plans: Mapping[str, Estimate]) -> list[Table]:
    """Stages of one network stand side by side."""
    alike: dict[Any, list[str]] = {}
    for name, found in plans.items():
        alike.setdefault(tuple(found.parts), []).append(name)
    rows: list[list[Cell]] = [
        [", ".join(names), part.name, part.parameters, part.trained, f"{part.size / GB:.3f}"]
        for parts, names in alike.items()
        for part in parts
        if part.parameters
    ]
    columns = [Column(name="stage"), Column(name="part"), *(Column(name=n, kind="count") for n in ("parameters", "trainable"))]
    return [Table(title="Parameters", columns=[*columns, Column(name="GB", kind="exact")], rows=rows)] if rows else []


def _fit(plans: Mapping[str, Estimate], free: int) -> list[str]:
    notes = [f"{free / GB:.1f} GB are free for each process"]
    for name, found in plans.items():
        if found.peak > free:
            changes = "; ".join(f"{change.options} (then {change.peak / GB:.1f} GB)" for change in found.changes)
            notes.append(f"{name} does not fit: " + (changes or "no option helps; a smaller backbone or a larger machine does"))
    return notes


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _hours(found: Estimate) -> str:
    return ("" if found.measured else "≥ ") + f"{found.seconds / 3600:.2g}"
