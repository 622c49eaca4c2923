"""Stages of one corpus are planned together: documents are tokenised once, and a cache that is filled is not filled again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from plant_cli.api import Choice, MachineSection, ModelSection, Split
from plant_cli.data.labels import LabelTable
from plant_cli.network.hardware import Hardware
from plant_cli.registry import installed
from plant_cli.training.planner import Planner, free_memory
from plant_cli.training.planning import ALONE, Job, Sharing

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)
JOB = Job(
    model=ModelSection(backbone={"name": "tiny", "hidden": 16, "heads": 2, "layers": 1, "buckets": 64}, decoder="label-attention"),  # type: ignore[arg-type]
    machine=MachineSection(),
    kind="rank",
    documents=4,
    read=4,
    roles=frozenset({"attention"}),
    batch=4,
    micro_batch=4,
    labels=2,
    cache_limit=1.0,
)


class SmallCorpus:
    """Four documents; by default of three labels."""

    def __init__(self, labels: int = 3) -> None:
        self.labels = LabelTable(ids=[str(label) for label in range(labels)], titles=[None] * labels, train_counts=[1] * labels)

    def split(self, name: str) -> Split:
        gold = csr_array(np.eye(4, len(self.labels)))
        return Split(name="train", doc_ids=list("wxyz"), texts=["a b c", "d e", "f", "g h"], gold=gold, unseen=csr_array((4, 0)))


def make_planner(free: int = 10**12, labels: int = 3) -> Planner:
    corpus: Any = SmallCorpus(labels)
    return Planner(installed().resolve, corpus, CPU, ALONE, free=free, timed=False)


def test_a_cache_is_filled_once() -> None:
    planner = make_planner()
    first, second = planner.plan(JOB), planner.plan(JOB)
    assert first.disk["cache"] == second.disk["cache"] == 4 * 2 * 16 * 4
    assert first.work["operations"] > second.work["operations"]
    assert len(planner.notes) == 1, "documents are read once"


def test_a_backbone_that_is_trained_has_no_cache() -> None:
    found = make_planner().plan(replace(JOB, roles=frozenset({"attention", "backbone"})))
    assert found.disk["cache"] == 0
    assert found.memory["gradients"] > 0


def operations(decoder: str, labels: int, candidates: int) -> float:
    """Of stage 2 over 2,000 labels, of which the loss looks at `labels` of each document."""
    model = JOB.model.model_copy(update={"decoder": Choice(name=decoder)})
    job = replace(JOB, kind="label", model=model, roles=frozenset({"attention", "head"}), labels=labels, candidates=candidates)
    return make_planner(labels=2000).plan(job).work["operations"]


def test_a_shortlist_saves_operations() -> None:
    assert operations("label-attention", 100, 100) < operations("label-attention", 100, 400) < operations("label-attention", 100, 0)


def test_epochs_are_those_of_how_the_decoder_starts() -> None:
    job = replace(JOB, epochs=2, drawn_epochs=10)
    assert make_planner().plan(job).work["epochs"] == 2
    drawn = job.model.model_copy(update={"decoder": Choice(name="plm-ca")})
    assert make_planner().plan(replace(job, model=drawn)).work["epochs"] == 10


def test_what_fits_needs_no_change_and_what_does_not_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_cli.training.planner.resident_memory", lambda: 0)  # the process itself dwarfs this network
    large = replace(JOB, micro_batch=64, batch=64, roles=frozenset({"attention", "backbone"}))
    assert make_planner().plan(large).changes == []
    assert make_planner(free=1).plan(large).changes[0].options.startswith("--micro-batch ")


def test_neighbours_share_the_memory_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_cli.training.planner.available_memory", lambda: 700)
    monkeypatch.setattr("plant_cli.training.planner.resident_memory", lambda: 100)
    assert free_memory(CPU, Sharing(processes=4, machines=2)) == 400
