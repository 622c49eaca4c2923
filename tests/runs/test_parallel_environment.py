from __future__ import annotations

import os

import pytest

from plant_cli.api import UsageError
from plant_cli.runs.processes import (
    OWN,
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
    for name in (*TOGETHER, *OWN):
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
    assert numbers() == ALONE


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
def test_variables_that_something_else_left_behind_do_not_count(monkeypatch: pytest.MonkeyPatch, left_behind: dict[str, str]) -> None:
    set_all(monkeypatch, left_behind)
    assert numbers() == ALONE


@pytest.mark.parametrize(
    "wrong", [{"RANK": "x"}, {"RANK": "4"}, {"RANK": "-1"}, {"WORLD_SIZE": "0"}, {"WORLD_SIZE": "²"}, {"LOCAL_RANK": "a"}]
)
def test_a_launcher_that_makes_no_sense_is_told(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]) -> None:
    set_all(monkeypatch, {**LAUNCHED, **wrong})
    name, value = next(iter(wrong.items()))
    with pytest.raises(UsageError, match=f"the launcher says {name} = '{value}'") as caught:
        numbers()
    assert "unset RANK" in caught.value.todo


def test_threads_are_what_the_environment_says_or_a_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)), raising=False)
    for said, threads in (("3", 3), ("0", 8), ("many", 8), ("", 8), ("²", 8), ("99999999", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert default_threads() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as launchers set it, whatever is free
    set_all(monkeypatch, {**LAUNCHED, "LOCAL_WORLD_SIZE": "3"})
    assert default_threads() == 2


def test_leaving_the_group_touches_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, LAUNCHED)
    leave_group()
    assert os.environ["MASTER_ADDR"] == "127.0.0.1"
