"""A few layers and documents stand for all: the extrapolated figures are those of the whole network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from plant_cli.api import ComponentError, MachineSection, ModelSection, TokenBatch
from plant_cli.data.labels import LabelTable
from plant_cli.network.hardware import Hardware
from plant_cli.registry import installed
from plant_cli.training.planning import Blocks, Cost, Documents, Job, Probe, outline
from plant_cli.training.throughput import count_operations

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
LABELS = LabelTable(ids=["a", "b", "c"], titles=[None] * 3, train_counts=[1, 2, 3])
ROLES = frozenset({"head", "boost", "value", "attention", "backbone"})


def batch(*lengths: int) -> TokenBatch:
    return TokenBatch(
        ids=[np.ones(n, dtype=np.int32) for n in lengths],
        spans=[np.zeros((n, 2), dtype=np.int32) for n in lengths],
        dropped=[0] * len(lengths),
    )


def make_probe(layers: int, *, roles: frozenset[str] = ROLES, timed: bool = False) -> Probe:
    backbone = {"name": "tiny", "hidden": 16, "heads": 2, "layers": layers, "buckets": 64, "dropout": 0.0}
    job = Job(
        model=ModelSection(backbone=backbone, decoder="label-attention"),  # type: ignore[arg-type]
        machine=MachineSection(),
        kind="label" if roles else "score",
        documents=9,
        roles=roles,
        batch=8,
        micro_batch=4,
    )
    sketch = outline(installed().resolve, job, LABELS)
    documents = Documents(tokens=batch(24, 24), longest=batch(24))
    return Probe(sketch=sketch, job=job, documents=documents, hardware=CPU, timed=timed)


def test_operations_of_five_layers_and_four_documents_follow_from_two_of_each() -> None:
    probe = make_probe(layers=5)
    found = probe.measure("trained").each(4)[0]
    network = probe.sketch.network.to_empty(device="cpu")
    for parameter in network.parameters():
        nn.init.normal_(parameter.data, std=0.02)
    whole = count_operations(lambda: probe._pass(probe.documents.longest.select([0] * 4), "trained", 1))
    assert found == pytest.approx(whole / 4, rel=1e-9)


def test_memory_grows_with_documents_and_with_layers() -> None:
    small, large = (make_probe(layers).measure("trained") for layers in (2, 8))
    assert small.memory(1) < small.memory(4) < large.memory(4)


def test_reading_and_cached_states_cost_less_than_training() -> None:
    probe = make_probe(layers=3)
    trained, cached, reading = (probe.measure(source).each(4)[0] for source in ("trained", "cached", "reading"))  # type: ignore[arg-type]
    assert cached + reading < trained
    assert {p.device.type for p in probe.sketch.network.parameters()} == {"meta"}, "weights are let go"


def test_time_is_measured_when_asked() -> None:
    assert make_probe(layers=2, roles=frozenset(), timed=True).measure("frozen").each(4)[1] > 0


def test_noise_makes_no_time_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine one document may seem to take longer than two."""
    monkeypatch.setattr(Probe, "_run", lambda *given: np.array([[1.0, 1.0, 4.0], [2.0, 2.0, 2.0]]))
    assert make_probe(layers=2, timed=True).measure("frozen").each(4)[1] > 0


def test_a_network_that_cannot_be_tried_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise RuntimeError("no such layer")

    monkeypatch.setattr(Probe, "_pass", fail)
    with pytest.raises(ComponentError, match="cannot be tried with made-up weights: no such layer"):
        make_probe(layers=2).measure("trained")


def test_blocks_of_a_kind_agree_in_shapes_and_in_what_is_trained() -> None:
    layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 8)])
    layers[0].requires_grad_(False)
    module = nn.Sequential()
    module.add_module("layers", layers)
    blocks = Blocks(module)
    assert sorted(blocks.kinds.values()) == [1, 1, 2]
    twice = max(blocks.kinds, key=lambda kind: blocks.kinds[kind])
    with blocks.keep(twice):
        assert [part.out_features for part in module.get_submodule("layers")] == [4, 4, 4, 8]  # type: ignore[union-attr, arg-type]
    with blocks.keep():
        assert [part.out_features for part in module.get_submodule("layers")] == [4, 4, 8]  # type: ignore[union-attr, arg-type]
    assert len(module.get_submodule("layers")) == 4  # type: ignore[arg-type]


def test_a_backbone_without_a_list_of_layers_is_tried_whole() -> None:
    module = nn.Linear(2, 2)
    with Blocks(module).keep():
        assert [name for name, _ in module.named_parameters()] == ["weight", "bias"]


def test_a_cost_is_fixed_and_by_document() -> None:
    cost = Cost(fixed=np.array([100.0, 8.0, 4.0]), document=np.array([10.0, 1.0, 0.5]))
    assert cost.memory(4) == 140
    assert cost.each(4) == (3.0, 1.5)
