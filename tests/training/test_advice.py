"""Options are changed one after the other until a stage fits, and only those that help are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plant_cli.api import BackboneSpec, Choice, ComponentError, MachineSection, ModelSection
from plant_cli.network.profile import HuggingFaceOptions
from plant_cli.registry import installed
from plant_cli.training.planner import advise, fewer_documents
from plant_cli.training.planning import Estimate, Job

JOB = Job(
    model=ModelSection(backbone="minilm"),
    machine=MachineSection(),
    kind="label",
    documents=9,
    roles=frozenset({"head"}),
    batch=8,
    micro_batch=8,
)


def find(kind: Any, chosen: Choice) -> Any:
    return (None, HuggingFaceOptions(**chosen.options)) if kind is BackboneSpec else installed().resolve(kind, chosen)


def pretend(job: Job, activations: int = 100) -> Estimate:
    """100 for a document in memory, a tenth of it with checkpointing; 1,000 for weights, 250 in 4 bits."""
    options = find(BackboneSpec, job.model.backbone)[1]
    held = job.micro_batch * (activations // 10 if options.gradient_checkpointing else activations)
    memory = {"weights": 250 if options.quantization == "nf4" else 1000, "activations": held}
    return Estimate(memory=memory, disk={}, work={}, seconds=0.0, measured=False)


def test_a_stage_that_fits_needs_nothing() -> None:
    assert advise(JOB, pretend(JOB), 1800, pretend, find) == []


def test_the_first_option_is_changed_no_further_than_needed() -> None:
    assert [(c.options, c.peak) for c in advise(JOB, pretend(JOB), 1400, pretend, find)] == [("--micro-batch 4", 1400)]


def test_half_of_what_is_in_memory_is_proposed_where_a_step_has_fewer_documents() -> None:
    found = fewer_documents(replace(JOB, batch=12), find)
    assert found is not None
    assert (found[0], found[1].largest) == ("--micro-batch 3", 3)
    assert fewer_documents(replace(JOB, batch=1), find) is None


def test_changes_add_up_and_weights_go_to_four_bits_with_an_adapter() -> None:
    assert [(c.options, c.peak) for c in advise(JOB, pretend(JOB), 300, pretend, find)] == [
        ("--micro-batch 1", 1100),
        ("--set model.backbone.gradient_checkpointing=true", 1010),
        ("--set model.backbone.quantization=nf4 --set model.backbone.adapter=lora", 260),
    ]


def test_what_does_not_help_is_not_named() -> None:
    def weights_only(job: Job) -> Estimate:
        return pretend(job, activations=0)

    found = advise(JOB, weights_only(JOB), 200, weights_only, find)
    assert [c.options.split()[1] for c in found] == ["model.backbone.quantization=nf4"]


def test_what_a_component_refuses_is_no_advice() -> None:
    def refuse_rank(job: Job) -> Estimate:
        if "label_rank" in job.model.decoder.options:
            raise ComponentError("a rank of 64", where="model.decoder", expected="at most 32", todo="a smaller one")
        return pretend(job)

    found = advise(JOB, pretend(JOB), 100, refuse_rank, find)
    assert found
    assert not any("label_rank" in change.options for change in found)
