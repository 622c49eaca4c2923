"""What the launcher says in the environment."""

from __future__ import annotations

import pytest

from plant_cli.parallel.environment import default_threads, leave_group, local_count, local_rank, process_count, process_rank


def test_the_launcher_says_which_process_this_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert (process_rank(), process_count()) == (0, 1)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert (process_rank(), process_count()) == (2, 4)


def test_threads_are_what_the_environment_says_or_a_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    for said, threads in (("3", 3), ("0", 8), ("many", 8), ("", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert default_threads() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as launchers set it, whatever is free
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    assert default_threads() == 2


def test_a_process_that_leaves_its_group_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    leave_group()
    assert (process_rank(), process_count(), local_rank(), local_count()) == (0, 1, 0, 1)
