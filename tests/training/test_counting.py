"""Operations and bytes of small computations, by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from plant_cli.network.compute import each
from plant_cli.training.throughput import count_operations, peak_allocated

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
    assert found == 2 * 5 * (8 * 24 + 8 * 8 + 2 * 8 * 16)  # torch has no formula for its fused attention on processors
    assert torch.backends.mha.get_fastpath_enabled()


def test_an_operator_can_be_given_its_own_formula() -> None:
    found = count_operations(lambda: torch.ones(3).sin(), {torch.ops.aten.sin: lambda shape, **rest: 7 * shape[0]})
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
