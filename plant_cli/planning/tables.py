"""What `plant plan` found, as tables for a person and as data for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from plant_cli.api import Column, Result, Table
from plant_cli.api.output import Cell
from plant_cli.model.hardware import Hardware
from plant_cli.planning.advice import Change
from plant_cli.planning.planner import Planned
from plant_cli.planning.sharing import Sharing
from plant_cli.planning.words import WordsEstimate

GB = 1e9
WAYS = ("alone", "whole", "spread")


@dataclass(frozen=True, kw_only=True)
class Plans:
    """All that was planned.

    Args:
        words: stages `mig`, by their section.
        stages: those that train or score.
        changes: what would make them fit.
        free: bytes of memory that are free for each process; None where that cannot be told.
        hardware: where they run.
        sharing: the processes that share them.
        told: on what the figures rest.
    """

    words: Mapping[str, WordsEstimate]
    stages: Mapping[str, Planned]
    changes: Mapping[str, Sequence[Change]]
    free: int | None
    hardware: Hardware
    sharing: Sharing
    told: Sequence[str]

    @property
    def fit(self) -> bool:
        """Whether no stage is known not to fit."""
        return self.free is None or all(found.estimate.memory.peak <= self.free for found in self.stages.values())


def report(plans: Plans) -> Result:
    """The tables, those of stages that the recipe has not left out."""
    tables = [
        *([_words(plans)] if plans.words else []),
        *([_parameters(plans.stages), _memory(plans)] if plans.stages else []),
        *([_shares(plans)] if plans.sharing.processes > 1 else []),
        _work(plans),
    ]
    data = {name: _plain_words(found) for name, found in plans.words.items()}
    data |= {name: _plain(found, plans.changes.get(name, ())) for name, found in plans.stages.items()}
    return Result(
        tables=tables,
        data=data | {"free_bytes": plans.free, "processes": plans.sharing.processes},
        next_step="plant run RECIPE, or plant mig" if plans.fit else None,
    )


def _words(plans: Plans) -> Table:
    found = list(plans.words.values())
    counted: dict[str, list[float]] = {
        "training documents": [words.documents for words in found],
        "words": [words.words for words in found],
        "cells: a label and a word that meet": [words.pairs for words in found],
        "words kept of all labels, at most": [words.kept for words in found],
    }
    rows: list[list[Cell]] = [[name, *(f"{count:,.0f}" for count in counts)] for name, counts in counted.items()]
    rows += _parts("memory: ", [words.memory for words in found])
    rows += [["memory: peak", *(_gb(words.memory.peak) for words in found)]]
    if any(words.device for words in found):
        rows += [["on the graphics card", *(_gb(words.device) for words in found)]]
    rows += [["disk: mig.parquet", *(_gb(words.disk) for words in found)]]
    columns = [Column(name="what"), *map(_column, plans.words)]
    return Table(title="Relevance: counts, host memory and disk (GB)", columns=columns, rows=rows)


def _parameters(planned: Mapping[str, Planned]) -> Table:
    """Stages of one network stand side by side."""
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, found in planned.items():
        alike.setdefault(found.parts, []).append(name)
    rows: list[list[Cell]] = []
    for parts, names in alike.items():
        stage = "all" if len(names) == len(planned) else ", ".join(names)
        rows += [[stage, part.name, part.parameters, part.trained, _gb(part.size)] for part in parts if part.parameters]
    columns = [Column(name="stage"), Column(name="part"), *(Column(name=n, kind="count") for n in ("parameters", "trainable"))]
    return Table(title="Parameters", columns=[*columns, Column(name="GB", kind="exact")], rows=rows)


def _memory(plans: Plans) -> Table:
    planned, hardware = plans.stages, plans.hardware
    rows: list[list[Cell]] = _parts("", [found.estimate.memory for found in planned.values()])
    rows.append(["peak", *(_gb(found.estimate.memory.peak) for found in planned.values())])
    beside = {
        "host memory beside it": [found.host for found in planned.values()],
        "disk: cached hidden states": [found.estimate.cache for found in planned.values()],
        "disk: what is written": [found.estimate.disk for found in planned.values()],
    }
    rows += [[name, *map(_gb, sizes)] for name, sizes in beside.items() if any(sizes)]
    place = f"{hardware.device} in {str(hardware.dtype).removeprefix('torch.')}"
    each = f" of each of {plans.sharing.processes} processes" if plans.sharing.processes > 1 else ""
    columns = [Column(name="what"), *map(_column, planned)]
    return Table(title=f"Memory{each} on {place}, and disk (GB)", columns=columns, rows=rows, notes=_fitting(plans))


def _fitting(plans: Plans) -> list[str]:
    device = plans.hardware.device
    each = " for each process" if plans.sharing.neighbours > 1 and device.type == "cpu" else ""
    room = f"{plans.free / GB:.1f} GB are free{each}" if plans.free is not None else "how much is free cannot be told"
    notes = [f"{room} on {device}; a process of plant takes about 1 GB of host memory beside this, and the texts"]
    for name, found in plans.stages.items():
        if plans.free is not None and found.estimate.memory.peak > plans.free:
            changes = "; ".join(f"{change.knob} (then {change.peak / GB:.1f} GB)" for change in plans.changes[name])
            notes.append(f"{name} does not fit: " + (changes or "no knob helps; a smaller backbone or a larger machine does"))
    return notes


def _shares(plans: Plans) -> Table:
    """Each process under either way of sharing, whichever the launch file describes."""
    sharing = plans.sharing
    planned: dict[str, WordsEstimate | Planned] = {**plans.words, **plans.stages}
    rows: list[list[Cell]] = [
        [name, *(_gb(found.peaks[way]) for way in WAYS), _hours(found.alone), _hours(found.seconds)] for name, found in planned.items()
    ]
    columns = [Column(name="peak memory (GB)"), *map(_column, (*WAYS, "hours alone", "together"))]
    notes = [
        "whole: data parallelism, each process has the whole network and gradients are summed; spread: FSDP, parameters are shared out",
        f"the launch file describes '{'spread' if sharing.spreads else 'whole'}': all other figures are of it",
        "the time that sums between processes take is not reckoned",
    ]
    if plans.hardware.device.type == "cpu" and sharing.neighbours > 1:
        notes.append(f"{sharing.neighbours} processes on one machine share its cores and its memory")
    jobs = {name: found.estimate.job for name, found in plans.stages.items()}
    uneven = [name for name, job in jobs.items() if job.roles and job.micro_batches % sharing.processes]
    if uneven:
        notes.append(f"a smaller --micro-batch, or a larger --batch, gives each process work in every step: {', '.join(uneven)}")
    machines = f" on {sharing.machines} machines" if sharing.machines > 1 else ""
    return Table(title=f"Each of {sharing.processes} processes{machines}", columns=columns, rows=rows, notes=notes)


def _work(plans: Plans) -> Table:
    rows: list[list[Cell]] = [[name, 1, None, None, None, _hours(words.seconds)] for name, words in plans.words.items()]
    for name, found in plans.stages.items():
        estimate = found.estimate
        operations = f"{estimate.operations / 1e12:.3g}"
        rows.append([name, estimate.job.epochs, round(estimate.tokens), estimate.padding, operations, _hours(found.seconds)])
    columns = [Column(name="stage"), Column(name="epochs", kind="count"), Column(name="tokens an epoch", kind="count")]
    columns += [Column(name="padding", kind="points"), *map(_column, ("TFLOP", "hours"))]
    return Table(title="Work", columns=columns, rows=rows, notes=plans.told)


def _parts(prefix: str, memories: Sequence[Any]) -> list[list[Cell]]:
    """A row for each part of memory that any stage needs."""
    sizes = {field.name: [getattr(memory, field.name) for memory in memories] for field in fields(memories[0])}
    return [[prefix + name.replace("_", " "), *map(_gb, found)] for name, found in sizes.items() if any(found)]


def _gb(size: float) -> str:
    return f"{size / GB:.3f}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.3g}" if seconds >= 3.6 else "< 0.001"


def _column(name: str) -> Column:
    return Column(name=name, kind="exact")


def _plain_words(found: WordsEstimate) -> dict[str, Any]:
    return {
        "documents": found.documents,
        "words": found.words,
        "cells": round(found.pairs),
        "kept": found.kept,
        "memory_bytes": {**asdict(found.memory), "peak": found.memory.peak, "device": found.device},
        "disk_bytes": {"relevance": found.disk},
        "hours": found.seconds / 3600,
    }


def _plain(found: Planned, changes: Sequence[Change]) -> dict[str, Any]:
    estimate = found.estimate
    return {
        "parameters": {part.name: {"parameters": part.parameters, "trainable": part.trained, "bytes": part.size} for part in found.parts},
        "memory_bytes": {**asdict(estimate.memory), "peak": estimate.memory.peak, "host": found.host},
        "peak_bytes": dict(found.peaks),
        "disk_bytes": {"cache": estimate.cache, "written": estimate.disk},
        "epochs": estimate.job.epochs,
        "tokens_an_epoch": round(estimate.tokens),
        "padding_share": estimate.padding,
        "operations": {"epoch": estimate.epoch, "all": estimate.operations},
        "hours": found.seconds / 3600,
        "changes": [asdict(change) for change in changes],
    }
