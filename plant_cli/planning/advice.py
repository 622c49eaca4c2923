"""What to change where a stage does not fit: options with their values, and the peak memory that remains once they are set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from plant_cli.api import BackboneSpec, Choice, ComponentError, DecoderSpec
from plant_cli.model.design import ComponentLookup
from plant_cli.planning.estimates import Change, Estimate
from plant_cli.planning.jobs import Job

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
