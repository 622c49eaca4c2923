"""What a stage trains, and a number that costs what its loss costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from plant_cli.api import MachineSection, ModelSection, Reading
from plant_cli.training.planning import Job

GIVEN: dict[str, Any] = {"model": ModelSection(backbone="tiny"), "machine": MachineSection(), "documents": 9, "batch": 12, "micro_batch": 5}


def test_micro_batches_are_those_of_training() -> None:
    job = Job(**GIVEN, kind="label")  # a step of 12 documents, of which 5 are in memory at most
    assert (job.micro_batches, job.largest) == (3, 4)
    few = replace(job, batch=2)
    assert (few.micro_batches, few.largest) == (1, 2)


def test_only_the_named_roles_are_unfrozen(small_network: Any) -> None:
    network = small_network()
    ever, last = Job(**GIVEN, kind="rank", roles=frozenset({"attention"})).unfreeze(network)
    assert {id(p) for p in ever} == {id(p) for p in last} == {id(p) for p in network.decoder.parameter_roles()["attention"]}
    assert network.backbone_is_frozen


@pytest.mark.parametrize(("kind", "labels"), [("label", 0), ("label", 2), ("rank", 3), ("score", 0)])
def test_the_number_has_a_gradient(small_network: Any, kind: Any, labels: int) -> None:
    network = small_network()
    reading = Reading.of(torch.randn(2, 8, 16), torch.ones(2, 8, dtype=torch.bool))
    found = Job(**GIVEN, kind=kind, labels=labels).score(network, reading)
    assert found.ndim == 0
    assert found.requires_grad
