from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys

import numpy as np
import pytest
import torch
from plant_network import group
from plant_network.group import SINGLE_PROCESS, Processes, join_processes

from plant_cli.api import ResourceError, UsageError
from plant_cli.runs.processes import (
    OWN_VARIABLES,
    TOGETHER,
    default_threads,
    leave_group,
    local_count,
    local_rank,
    process_count,
    process_rank,
)

LAUNCHED = {"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture(autouse=True)
def _not_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*TOGETHER, *OWN_VARIABLES):
        monkeypatch.delenv(name, raising=False)


ALONE = (0, 1, 0, 1)


def numbers() -> tuple[int, int, int, int]:
    return process_rank(), process_count(), local_rank(), local_count()


def set_all(monkeypatch: pytest.MonkeyPatch, values: dict[str, str]) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_the_launcher_says_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbers() == ALONE
    set_all(monkeypatch, {**LAUNCHED, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"})
    assert numbers() == (2, 4, 1, 2)
    leave_group()
    assert (numbers(), os.environ["MASTER_ADDR"]) == (ALONE, "127.0.0.1")


@pytest.mark.parametrize(
    "left_behind",
    [
        {"RANK": "5"},
        {"RANK": "x"},
        {"RANK": "1", "WORLD_SIZE": "1"},
        {"RANK": "1", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "8"},
        {"MASTER_ADDR": "host", "MASTER_PORT": "1", "WORLD_SIZE": "4"},
        {**LAUNCHED, "MASTER_ADDR": ""},
    ],
)
def test_variables_that_something_else_left_behind_do_not_count(
    monkeypatch: pytest.MonkeyPatch, left_behind: dict[str, str]
) -> None:
    set_all(monkeypatch, left_behind)
    assert numbers() == ALONE


@pytest.mark.parametrize(
    "wrong",
    [
        {"RANK": "x"},
        {"RANK": "4"},
        {"RANK": "-1"},
        {"WORLD_SIZE": "0"},
        {"WORLD_SIZE": "²"},
        {"LOCAL_RANK": "a"},
    ],
)
def test_a_launcher_that_makes_no_sense_is_told(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]
) -> None:
    set_all(monkeypatch, {**LAUNCHED, **wrong})
    name, value = next(iter(wrong.items()))
    with pytest.raises(UsageError, match=f"the launcher says {name} = '{value}'") as caught:
        numbers()
    assert "unset RANK" in caught.value.todo


def test_threads_are_what_the_environment_says_or_a_share_of_the_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)), raising=False)
    for said, threads in (("3", 3), ("0", 8), ("many", 8), ("", 8), ("²", 8), ("99999999", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert default_threads() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as launchers set it, whatever is free
    set_all(monkeypatch, {**LAUNCHED, "LOCAL_WORLD_SIZE": "3"})
    assert default_threads() == 2


def test_shares_are_disjoint_and_cover_everything() -> None:
    items = list(range(7))
    shares = [Processes(rank=rank, count=3).share(items) for rank in range(3)]
    assert sorted(item for share in shares for item in share) == items
    assert {len(share) for share in shares} == {2, 3}
    assert [Processes(rank=rank, count=3).first for rank in range(3)] == [True, False, False]


def test_alone_every_sum_is_the_own_number() -> None:
    numbers, array = torch.tensor([1.0, 2.0]), np.array([3, 4])
    SINGLE_PROCESS.add([numbers])
    SINGLE_PROCESS.add_arrays(array)
    SINGLE_PROCESS.copy_first([numbers])
    assert (numbers.tolist(), array.tolist()) == ([1.0, 2.0], [3, 4])
    assert (SINGLE_PROCESS.any(True), SINGLE_PROCESS.any(False), SINGLE_PROCESS.gather(2.5)) == (
        True,
        False,
        [2.5],
    )
    assert join_processes() == SINGLE_PROCESS


def test_a_process_that_lost_the_others_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("Connection closed by peer [127.0.0.1]:4711\nand a trace")

    monkeypatch.setattr(group.dist, "all_reduce", broken)
    with pytest.raises(
        ResourceError, match="process 2 of 3 no longer reaches the others"
    ) as caught:
        Processes(rank=1, count=3).any(False)
    assert caught.value.where == "Connection closed by peer [127.0.0.1]:4711"
    assert "--resume" in caught.value.todo


def test_processes_that_may_open_too_few_files_are_not_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library below torch would end the process without a word."""
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(group, "process_count", lambda: 2)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 6, limits[1]))
    try:
        with pytest.raises(
            ResourceError, match=r"the 2 processes cannot be joined: .*Too many open files"
        ) as raised:
            join_processes()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "ulimit -n" in raised.value.todo
    assert not torch.distributed.is_initialized()


CLOSING = """
import atexit, os, pathlib, sys
def name_threads():
    print(*(pathlib.Path(f"/proc/self/task/{number}/comm").read_text().strip() for number in os.listdir("/proc/self/task")))
atexit.register(name_threads)  # what is registered first comes last
from plant_network.group import join_processes
print(join_processes().gather(1.0))
name_threads()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="names of threads are read from /proc")
def test_threads_of_the_group_end_before_python_does() -> None:
    """One that drops its last tensor while Python ends would end the process with SIGABRT,
    after all work is done.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "CUDA_VISIBLE_DEVICES": "",
    }
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CLOSING],
            env={**os.environ, **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in started:
        said, problems = process.communicate(timeout=120)
        assert process.returncode == 0, problems
        gathered, before, after = said.splitlines()
        assert gathered == "[1.0, 1.0]"
        assert "gloo" in before
        assert "gloo" not in after


@pytest.mark.parametrize(
    "kind", [torch.distributed.DistStoreError, torch.distributed.DistNetworkError, RuntimeError]
)
def test_processes_that_cannot_be_joined_say_so(
    monkeypatch: pytest.MonkeyPatch, kind: type[RuntimeError]
) -> None:
    def fail(backend: str, timeout: object) -> None:
        raise kind("Failed to init uv loop")

    monkeypatch.setattr(group.dist, "init_process_group", fail)
    set_all(monkeypatch, {**LAUNCHED, "RANK": "1", "WORLD_SIZE": "2"})
    with pytest.raises(
        ResourceError, match="the 2 processes cannot be joined: Failed to init uv loop"
    ) as raised:
        join_processes()
    assert raised.value.where.endswith("127.0.0.1:29500")
    assert "ulimit -n" in raised.value.todo
