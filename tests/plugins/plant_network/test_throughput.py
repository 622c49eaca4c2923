"""Operations, memory, time and rates are measured as counted by hand, and a training's speed
follows from them.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from plant_network import throughput
from plant_network import throughput as rates
from plant_network.compute import each
from plant_network.hardware import Hardware, peak_allocated
from plant_network.throughput import Throughput, count_operations, measure_throughput
from torch import nn

from plant_cli.api import TokenBatch

HARDWARE = Hardware(device=torch.device("cpu"), dtype=torch.float32)


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
    tokens = TokenBatch(
        ids=[np.arange(n) for n in (2, 4, 6)],
        spans=[np.zeros((n, 2)) for n in (2, 4, 6)],
        dropped=[0, 0, 0],
    )
    reader: Any = SimpleNamespace(tokens=tokens)
    outcome: Any = SimpleNamespace(documents_per_second=2.0, padding=0.25, epoch_seconds=[3.0, 1.0])
    network: Any = torch.nn.Sequential(LAYER)
    found = measure_throughput(network, reader, HARDWARE, linear_step, outcome, batch=1)
    assert (found.documents_per_second, found.tokens_per_second, found.padding_share) == (
        2.0,
        8.0,
        0.25,
    )
    assert found.share_of_peak == pytest.approx(
        8.0 * (128 / 4) / 1000
    )  # the document of middling length has 4 tokens
    assert found.peak_memory_gb > 0
    assert LAYER.weight.grad is None
    assert found.cache_ratio is None
    assert found.operations_per_document == pytest.approx(
        4.0 * (128 / 4)
    )  # documents have 4 tokens on average
    assert (found.parameters, found.trained_parameters) == (32, 32)
    assert found.summary()["parameters"] == 32


def test_the_ratio_of_the_cache_counts_what_the_backbone_read_for_it() -> None:
    cached = figures(cache_seconds=9.0, epoch_seconds=[1.0, 2.0, 0.5, 1.0])
    assert cached.cache_ratio == pytest.approx(10.0)
    assert cached.summary()["cache_ratio"] == pytest.approx(10.0)
    for without in (
        figures(epoch_seconds=[1.0, 1.0]),
        figures(cache_seconds=3.0, epoch_seconds=[1.0]),
    ):
        assert without.cache_ratio is None
    assert figures().note == "2.0 documents/s, 20 tokens/s; peak memory 1.50 GB"


CPU = torch.device("cpu")
KILO = 1000 * 4  # bytes of a thousand numbers in fp32


def test_operations_are_those_of_forward_and_backward() -> None:
    weight, given = torch.ones(100, 100, requires_grad=True), torch.ones(10, 100)
    found = count_operations(lambda: (given @ weight).sigmoid().sum().backward())
    assert found == 2 * 2 * 10 * 100 * 100  # forward, and backward for the weight alone


def test_a_module_may_run_first_without_gradients() -> None:
    layer, given = nn.Linear(8, 4, bias=False), torch.ones(3, 8)

    def run() -> None:
        with torch.no_grad():
            layer(given)
        layer(given).sum().backward()

    assert count_operations(run) == 3 * (2 * 3 * 8 * 4)


def test_a_whole_layer_of_torch_is_counted_by_its_products() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).eval()
    with torch.no_grad():
        found = count_operations(lambda: layer(torch.ones(1, 5, 8)))
    assert found == 2 * 5 * (
        8 * 24 + 8 * 8 + 2 * 8 * 16
    )  # torch has no formula for its fused attention on processors
    assert torch.backends.mha.get_fastpath_enabled()


def test_an_operator_can_be_given_its_own_formula() -> None:
    found = count_operations(
        lambda: torch.ones(3).sin(), {torch.ops.aten.sin: lambda shape, **rest: 7 * shape[0]}
    )
    assert found == 21


@pytest.mark.parametrize(("keep", "peak"), [(True, 3), (False, 2)])
def test_what_is_freed_counts_no_more(keep: bool, peak: int) -> None:
    given = torch.ones(1000)

    def run() -> None:
        first = given + 1
        second = first * 2
        if not keep:
            del first
        third = second.exp()
        del third

    assert peak_allocated(run, CPU) == pytest.approx(peak * KILO, abs=100)


def test_views_and_changes_in_place_take_nothing() -> None:
    given = torch.ones(10, 100)
    assert peak_allocated(lambda: given.T[:5].unsqueeze(0).mul_(2), CPU) < 100


def test_nothing_is_written_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    peak_allocated(lambda: torch.ones(10), CPU)
    assert capfd.readouterr() == ("", "")


def test_modules_that_are_called_without_gradients_inside_are_counted_too() -> None:
    """A step may score all labels without gradients and some of them once more with."""
    layer, outer = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)

    def run() -> None:
        states = outer(torch.ones(3, 4))
        with torch.no_grad():
            layer(states[1:])
        layer(states).sum().backward()  # type: ignore[no-untyped-call]

    assert count_operations(run) == 2 * 16 * (3 + 2 + 3 + 3 + 3 + 3)


@pytest.mark.parametrize("threads", [1, 3])
def test_work_that_threads_would_share_counts_too(threads: int) -> None:
    given = torch.ones(100, 100)

    def run() -> list[torch.Tensor]:
        return list(each(lambda rows: given[:rows] @ given, [10] * 6))

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert count_operations(run) == 6 * 2 * 10 * 100 * 100
        assert peak_allocated(run, CPU) == pytest.approx(6 * KILO, abs=100)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_the_rate_is_operations_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "time_fastest", lambda run, device, repeats: (run(), 0.5)[1])
    monkeypatch.setitem(rates.MATRIX_SIDE, "cpu", 64)
    assert rates.matrix_rate(torch.device("cpu"), torch.float32) == 2 * 64**3 / 0.5


def test_this_machine_has_a_rate() -> None:
    assert 1e6 < rates.matrix_rate(torch.device("cpu"), torch.float32) < 1e16


def test_attention_whose_queries_have_more_heads_than_its_keys_is_counted() -> None:
    queries, keys = (
        torch.empty(2, heads, 16, 8, dtype=torch.bfloat16, device="meta") for heads in (6, 2)
    )
    count = partial(torch.ops.aten._scaled_dot_product_flash_attention, queries, keys, keys)
    assert count_operations(count) == 2 * (2 * 6) * 16 * 16 * (8 + 8)
