"""A network without weights has all the sizes of the one with weights."""

from __future__ import annotations

import pytest
import torch

from plant_cli.api import BackboneSpec, ComponentError, MachineSection, ModelSection, NoOptions, Options
from plant_cli.data.labels import LabelTable
from plant_cli.registry import installed
from plant_cli.training.options import Schedule
from plant_cli.training.planning import Job, outline, size_of

LABELS = LabelTable(ids=["a", "b", "c"], titles=[None] * 3, train_counts=[1, 2, 3])
ROLES = frozenset({"head", "boost", "value", "attention", "backbone"})


def make_job(**values: object) -> Job:
    model = ModelSection(backbone={"name": "tiny", "hidden": 16, "heads": 2, "layers": 2, "buckets": 64}, decoder="label-attention")
    given = {"model": model, "kind": "label", "documents": 9, "roles": ROLES, "batch": 8, "micro_batch": 4}
    return Job(machine=MachineSection(), **(given | values))  # type: ignore[arg-type]


def test_nothing_has_values_and_all_has_a_size() -> None:
    found = outline(installed().resolve, make_job(), LABELS)
    assert {p.device.type for p in found.network.parameters()} == {"meta"}
    assert found.size == found.changed == found.learning == size_of(found.network.parameters())
    assert {part.name: part.parameters for part in found.parts}["label tables"] == 3 * 3 * 16
    assert not found.fixed


def test_what_is_frozen_in_the_last_epoch_has_no_gradient() -> None:
    head = outline(installed().resolve, make_job(epochs=1, schedule=Schedule(gradual=True)), LABELS)
    assert 0 < head.learning < head.changed
    scoring = outline(installed().resolve, make_job(roles=frozenset()), LABELS)
    assert (scoring.learning, scoring.changed) == (0, 0)


def test_a_backbone_reads_alike_unless_a_stage_trains_it() -> None:
    frozen = {"model": ModelSection(backbone="minilm", decoder="label-attention")}
    scored = {"roles": frozenset()}
    jobs = {"trained": {}, "trained and scored": scored, "frozen": frozen, "frozen and scored": frozen | scored}
    found = {name: outline(installed().resolve, make_job(**values), LABELS).fixed for name, values in jobs.items()}
    assert found == {"trained": False, "trained and scored": False, "frozen": True, "frozen and scored": True}


def test_a_backbone_that_needs_values_is_refused() -> None:
    def load(options: Options, machine: MachineSection) -> None:
        torch.ones(1).item()

    def find(kind: type, chosen: object) -> object:
        if kind is BackboneSpec:
            return BackboneSpec(name="greedy", summary="It reads a value.", options=NoOptions, load=load), NoOptions()  # type: ignore[arg-type]
        return installed().resolve(kind, chosen)  # type: ignore[arg-type]

    with pytest.raises(ComponentError, match=r"greedy.*cannot be built without its weights"):
        outline(find, make_job(), LABELS)  # type: ignore[arg-type]
