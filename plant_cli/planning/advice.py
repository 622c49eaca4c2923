"""What to change where a stage does not fit: knobs, each with its value and the peak that remains once it is set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from plant_cli.api import Choice, Options
from plant_cli.planning.estimates import Estimate
from plant_cli.planning.jobs import Job

SHORTEST = 512
"""Tokens of a document below which cutting is no advice."""
LABEL_RANK = 64
WORTH = 0.98
"""A change that leaves more of the peak than this is none."""

OptionsOf = Callable[[str, Choice], Options]
Knob = Callable[[Job, OptionsOf], tuple[str, Job] | None]


@dataclass(frozen=True, kw_only=True)
class Change:
    """A knob as it is written on the command line, and the peak memory once it and those before it are set."""

    knob: str
    peak: int


def advise(found: Estimate, limit: int, again: Callable[[Job], Estimate], options_of: OptionsOf) -> list[Change]:
    """Changes, one upon the other, until the stage fits; all that help if it never does.

    Args:
        found: the stage as it is.
        limit: bytes that are free.
        again: estimates a changed job.
        options_of: the validated options of a component, by kind.
    """
    changes: dict[Knob, Change] = {}
    for knob in KNOBS:
        while found.memory.peak > limit and (proposed := knob(found.job, options_of)) is not None:
            text, job = proposed
            tried = again(job)
            if tried.memory.peak > WORTH * found.memory.peak:
                break
            found = tried
            changes[knob] = Change(knob=text, peak=found.memory.peak)
    return list(changes.values())


def fewer_documents(job: Job, options_of: OptionsOf) -> tuple[str, Job] | None:
    """Half the documents in memory at once; gradients are gathered over more micro-batches instead."""
    half = job.micro_batch // 2
    flag = "--batch" if job.kind == "score" else "--micro-batch"
    return (f"{flag} {half}", replace(job, micro_batch=half)) if half else None


def checkpointing(job: Job, options_of: OptionsOf) -> tuple[str, Job] | None:
    """Recompute activations."""
    options = options_of("backbone", job.model.backbone)
    if getattr(options, "gradient_checkpointing", True) or job.kind == "score":
        return None
    return _set(job, "backbone", gradient_checkpointing=True)


def four_bits(job: Job, options_of: OptionsOf) -> tuple[str, Job] | None:
    """Frozen weights in 4 bits."""
    options = options_of("backbone", job.model.backbone)
    if getattr(options, "quantization", "nf4") == "nf4":
        return None
    adapter = {"adapter": "lora"} if getattr(options, "adapter", None) == "full" else {}
    return _set(job, "backbone", quantization="nf4", **adapter)


def shorter_documents(job: Job, options_of: OptionsOf) -> tuple[str, Job] | None:
    """Half the tokens of each document."""
    half = int(getattr(options_of("backbone", job.model.backbone), "max_tokens", 0)) // 2
    return _set(job, "backbone", max_tokens=half) if half >= SHORTEST else None


def low_rank_labels(job: Job, options_of: OptionsOf) -> tuple[str, Job] | None:
    """Label queries of low rank."""
    if getattr(options_of("decoder", job.model.decoder), "label_rank", LABEL_RANK) is not None:
        return None
    return _set(job, "decoder", label_rank=LABEL_RANK)


def _set(job: Job, part: str, **options: Any) -> tuple[str, Job]:
    chosen: Choice = getattr(job.model, part)
    changed = Choice(name=chosen.name, options={**chosen.options, **options})
    text = " ".join(f"--set model.{part}.{key}={str(value).lower()}" for key, value in options.items())
    return text, replace(job, model=job.model.model_copy(update={part: changed}))


KNOBS: tuple[Knob, ...] = (fewer_documents, checkpointing, four_bits, low_rank_labels, shorter_documents)
