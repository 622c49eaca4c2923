"""What is told of a training's speed: operations counted by hand, shares of what the machine does, the ratio of the cache."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from plant_cli.api import TokenBatch
from plant_cli.network.hardware import Hardware
from plant_cli.training import throughput
from plant_cli.training.throughput import Throughput, measure_throughput

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)


def linear_step(rows: Any, *, epoch: int, seed: int) -> tuple[torch.Tensor, float]:
    """One product [documents, 8] x [8, 4]."""
    return (torch.ones(len(rows), 8) @ LAYER.weight.T).sum(), float(len(rows))


LAYER = torch.nn.Linear(8, 4, bias=False)


def figures(**values: Any) -> Throughput:
    given = {
        "documents_per_second": 2.0,
        "tokens_per_second": 20.0,
        "padding_share": 0.25,
        "share_of_peak": 0.5,
        "peak_memory_gb": 1.5,
        "cache_seconds": None,
        "epoch_seconds": [],
        "operations_per_document": 1e6,
        "parameters": 32,
        "trained_parameters": 8,
    }
    return Throughput(**(given | values))


def test_figures_follow_from_the_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "matrix_rate", lambda device, dtype: 1000.0)
    tokens = TokenBatch(ids=[np.arange(n) for n in (2, 4, 6)], spans=[np.zeros((n, 2)) for n in (2, 4, 6)], dropped=[0, 0, 0])
    reader: Any = SimpleNamespace(tokens=tokens)
    outcome: Any = SimpleNamespace(documents_per_second=2.0, padding=0.25, epoch_seconds=[3.0, 1.0])
    network: Any = torch.nn.Sequential(LAYER)
    found = measure_throughput(network, reader, CPU, linear_step, outcome, batch=1)
    assert (found.documents_per_second, found.tokens_per_second, found.padding_share) == (2.0, 8.0, 0.25)
    assert found.share_of_peak == pytest.approx(8.0 * (128 / 4) / 1000)  # the document of middling length has 4 tokens
    assert found.peak_memory_gb > 0
    assert LAYER.weight.grad is None
    assert found.cache_ratio is None
    assert found.operations_per_document == pytest.approx(4.0 * (128 / 4))  # documents have 4 tokens on average
    assert (found.parameters, found.trained_parameters) == (32, 32)
    assert found.summary()["parameters"] == 32


def test_the_ratio_of_the_cache_counts_what_the_backbone_read_for_it() -> None:
    cached = figures(cache_seconds=9.0, epoch_seconds=[1.0, 2.0, 0.5, 1.0])
    assert cached.cache_ratio == pytest.approx(10.0)
    assert "the first epoch took 10.0 s, 10.0 times as long" in cached.notes()[1]
    assert cached.summary()["cache_ratio"] == pytest.approx(10.0)
    for without in (figures(epoch_seconds=[1.0, 1.0]), figures(cache_seconds=3.0, epoch_seconds=[1.0])):
        assert without.cache_ratio is None
        assert len(without.notes()) == 1
    assert "25% of the positions are padding" in figures().notes()[0]
