"""Devices, number formats and threads are chosen as asked, and work is spread over threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from plant_network import hardware
from plant_network.compute import each, round_up, uses_triton
from plant_network.hardware import choose_hardware, find_device, find_dtype

from plant_cli.api import MachineSection, ResourceError


@pytest.fixture(autouse=True)
def _threads() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("precision", "fast", "dtype"),
    [
        ("auto", True, torch.bfloat16),
        ("auto", False, torch.float32),
        ("fp32", True, torch.float32),
        ("bf16", False, torch.bfloat16),
    ],
    ids=str,
)
def test_auto_takes_bf16_only_where_the_processor_has_it(
    precision: str, fast: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "cpu_has_bf16", lambda: fast)
    chosen = choose_hardware(MachineSection(device="cpu", precision=precision, threads=1))
    assert (chosen.device.type, chosen.dtype, torch.get_num_threads()) == ("cpu", dtype, 1)
    with chosen.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == dtype


@pytest.mark.parametrize(
    ("has", "precision", "dtype"),
    [
        (True, "auto", torch.bfloat16),
        (True, "fp32", torch.float32),
        (False, "auto", torch.float32),
        (False, "bf16", torch.float32),
    ],
)
def test_a_card_without_bf16_computes_in_fp32(
    has: bool, precision: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        torch.cuda,
        "is_bf16_supported",
        lambda *, including_emulation: has and not including_emulation,
    )
    assert find_dtype(torch.device("cuda"), precision) == dtype


@pytest.mark.parametrize("name", ["cuda:99", "cpu:1"])
def test_a_device_that_is_not_there_is_told(name: str) -> None:
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(ResourceError, match=f"no device '{name}'") as caught:
        choose_hardware(MachineSection(device=name))
    assert "cpu" in caught.value.expected


def test_numbers_that_are_all_but_zero_are_zero() -> None:
    """Sharp attention is full of them, and took a processor 4 to 15 times as long."""
    torch.set_flush_denormal(False)
    smallest = torch.tensor([torch.finfo(torch.float32).tiny])
    assert (smallest * 0.5).item() > 0
    choose_hardware(MachineSection(device="cpu", threads=1))
    assert (smallest * 0.5).item() == 0


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (False, True, "cpu"), (False, False, "cpu")],
    ids=["cuda", "mps", "cpu"],
)
def test_auto_is_the_fastest_that_can_do_all(
    cuda: bool, mps: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: int(cuda))
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert find_device("auto").type == expected


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    first_may_end = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert first_may_end.wait(10)
        if item == 2:
            first_may_end.set()
        return item * item

    assert list(each(work, range(20))) == [n * n for n in range(20)]


def test_each_item_is_worked_on_by_one_thread_of_as_many_as_torch_has(threads: int) -> None:
    together = threading.Barrier(threads)

    def work(item: int) -> tuple[int, int]:
        if item < threads:
            together.wait(10)
        return threading.get_ident(), torch.get_num_threads()

    found = list(each(work, range(12)))
    assert {count for _, count in found} == {1}
    assert len({thread for thread, _ in found}) == threads
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(("count", "items"), [(1, 5), (3, 2), (3, 0)])
def test_few_items_and_one_thread_stay_with_the_caller(
    threads: int, count: int, items: int
) -> None:
    torch.set_num_threads(count)
    found = list(each(lambda _: (threading.get_ident(), torch.get_num_threads()), range(items)))
    assert found == [(threading.get_ident(), count)] * items


def test_modes_are_those_of_the_caller(threads: int) -> None:
    def work(_: int) -> tuple[bool, bool, torch.dtype]:
        return (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            (torch.ones(2, 2) @ torch.ones(2, 2)).dtype,
        )

    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        assert set(each(work, range(6))) == {(False, False, torch.bfloat16)}
    with torch.inference_mode():
        assert set(each(work, range(6))) == {(False, True, torch.float32)}
    assert set(each(work, range(6))) == {(True, False, torch.float32)}


def test_a_failure_is_raised_and_ends_the_rest(threads: int) -> None:
    begun = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 1:
            raise ValueError("item 1")
        return item

    with pytest.raises(ValueError, match="item 1"):
        list(each(work, range(1000)))
    assert len(begun) < 20
    assert torch.get_num_threads() == threads


def test_another_device_has_threads_of_its_own(threads: int) -> None:
    assert set(each(lambda _: threading.get_ident(), range(6), torch.device("meta"))) == {
        threading.get_ident()
    }


@pytest.mark.parametrize(
    ("size", "multiple", "expected"),
    [(0, 16, 0), (1, 16, 16), (16, 16, 16), (17, 16, 32), (5, 1, 5)],
)
def test_the_next_multiple(size: int, multiple: int, expected: int) -> None:
    assert round_up(size, multiple) == expected


@pytest.mark.parametrize(
    ("installed", "expected"), [(object(), {"cuda"}), (None, set())], ids=["triton", "no triton"]
)
def test_only_a_graphics_card_with_triton_runs_kernels(
    installed: object, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "plant_network.compute.find_spec", lambda name: {"triton": installed}.get(name)
    )
    assert {device for device in ("cuda", "cpu", "mps") if uses_triton(device)} == expected
