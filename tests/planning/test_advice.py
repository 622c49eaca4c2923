"""Knobs are turned one after the other until a stage fits, and only those that help are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plant_cli.api import Choice, MachineSection, ModelSection
from plant_cli.api.kinds import KINDS
from plant_cli.kit.profile import HuggingFaceOptions
from plant_cli.planning.advice import advise
from plant_cli.planning.estimates import Estimate, Memory
from plant_cli.planning.jobs import Job
from plant_cli.registry import installed

JOB = Job(name="finetune", model=ModelSection(backbone="minilm"), machine=MachineSection(), kind="label", batch=8, micro_batch=8)


def options_of(kind: str, chosen: Choice) -> Any:
    return HuggingFaceOptions(**chosen.options) if kind == "backbone" else installed().resolve(KINDS[kind].spec, chosen)[1]


def pretend(job: Job) -> Estimate:
    """100 for a document in memory, a tenth of it with checkpointing; 1,000 for weights, 250 in 4 bits."""
    options = options_of("backbone", job.model.backbone)
    activations = job.micro_batch * (10 if options.gradient_checkpointing else 100)
    memory = Memory(weights=250 if options.quantization == "nf4" else 1000, activations=activations)
    return Estimate(job=job, memory=memory, reading="trained", cache=0, disk=0, tokens=0, padding=0, once=0, steps=0, scoring=0)


def test_a_stage_that_fits_needs_nothing() -> None:
    assert advise(pretend(JOB), 1800, pretend, options_of) == []


def test_the_first_knob_is_turned_no_further_than_needed() -> None:
    assert [(c.knob, c.peak) for c in advise(pretend(JOB), 1400, pretend, options_of)] == [("--micro-batch 4", 1400)]


def test_knobs_add_up_and_weights_go_to_four_bits_with_an_adapter() -> None:
    found = advise(pretend(JOB), 300, pretend, options_of)
    assert [(c.knob, c.peak) for c in found] == [
        ("--micro-batch 1", 1100),
        ("--set model.backbone.gradient_checkpointing=true", 1010),
        ("--set model.backbone.quantization=nf4 --set model.backbone.adapter=lora", 260),
    ]


def test_what_does_not_help_is_not_named() -> None:
    weights_only = lambda job: replace(pretend(job), memory=Memory(weights=pretend(job).memory.weights))  # noqa: E731
    assert [c.knob.split()[1] for c in advise(weights_only(JOB), 300, weights_only, options_of)] == ["model.backbone.quantization=nf4"]
