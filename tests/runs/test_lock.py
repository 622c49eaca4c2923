from __future__ import annotations

import errno
import fcntl
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from plant_cli.api import ArtefactError, Interrupted, ResourceError
from plant_cli.runs.lock import LOCK_NAME, hold_lock

HOLDER = """
import sys, time
from pathlib import Path
from plant_cli.runs.lock import hold_lock
with hold_lock(Path(sys.argv[1]), "finetune"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_told_who_holds_the_run(tmp_path: Path) -> None:
    with (
        hold_lock(tmp_path, "pretrain-attn"),
        pytest.raises(
            ArtefactError, match="another process is writing to this run: pretrain-attn"
        ) as caught,
        hold_lock(tmp_path, "finetune"),
    ):
        raise AssertionError("both hold it")
    assert f"process {os.getpid()} on" in caught.value.where
    assert caught.value.exit_code == 4


def test_it_is_free_again_afterwards_even_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold_lock(tmp_path, "mig"):
        _ = 1 / 0
    with hold_lock(tmp_path, "mig"):
        assert b'"purpose": "mig"' in (tmp_path / LOCK_NAME).read_bytes()
    assert (tmp_path / LOCK_NAME).read_bytes() == b""


def test_a_holder_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ArtefactError, match="finetune") as caught, hold_lock(tmp_path, "mig"):
            pass
        assert f"process {holder.pid}" in caught.value.where
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with hold_lock(tmp_path, "mig"):
        pass


@pytest.mark.parametrize("kind", ["symlink_to", "hardlink_to"])
def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays(
    tmp_path: Path, kind: str
) -> None:
    run, precious = tmp_path / "run", tmp_path / "precious"
    run.mkdir()
    precious.write_text("precious")
    getattr(run / LOCK_NAME, kind)(precious)
    with (
        pytest.raises(ArtefactError, match="a link or no plain file") as caught,
        hold_lock(run, "eval"),
    ):
        pass
    assert precious.read_text() == "precious"
    assert caught.value.todo == f"remove it: rm {run / LOCK_NAME}"


def test_a_link_to_nowhere_makes_no_file_and_a_pipe_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "nowhere")
    for _ in range(2):
        with (
            pytest.raises(ArtefactError, match="a link or no plain file"),
            hold_lock(tmp_path, "eval"),
        ):
            pass
        assert not (tmp_path / "nowhere").exists()
        (tmp_path / LOCK_NAME).unlink()
        os.mkfifo(tmp_path / LOCK_NAME)


def test_who_waits_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    def hold() -> None:
        with hold_lock(tmp_path, "mig edit"):
            held.set()
            time.sleep(0.2)

    held = threading.Event()
    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    with pytest.raises(ArtefactError, match="mig edit"), hold_lock(tmp_path, "mig edit", wait=0.01):
        pass
    with hold_lock(tmp_path, "mig edit", wait=10):
        pass
    other.join()


def test_a_lock_that_is_deleted_while_it_is_held_lets_nobody_in(tmp_path: Path) -> None:
    with hold_lock(tmp_path, "finetune"):
        (tmp_path / LOCK_NAME).unlink()
        with (
            pytest.raises(ArtefactError, match="another process is writing to this run"),
            hold_lock(tmp_path, "eval"),
        ):
            raise AssertionError("both hold it")
    with hold_lock(tmp_path, "eval"):
        pass


def test_who_waits_without_end_can_be_stopped(tmp_path: Path) -> None:
    asked: list[bool] = []

    def should_stop() -> bool:
        asked.append(len(asked) > 1)
        return asked[-1]

    with (
        hold_lock(tmp_path, "filling the cache"),
        pytest.raises(
            Interrupted, match="waiting for another process: filling the cache"
        ) as caught,
        hold_lock(tmp_path, "filling the cache", wait=math.inf, should_stop=should_stop),
    ):
        raise AssertionError("both hold it")
    assert asked == [False, False, True]
    assert f"process {os.getpid()}" in caught.value.where


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(ResourceError, match="cannot lock a file") as caught,
        hold_lock(tmp_path, "mig"),
    ):
        pytest.fail("it went on without a lock")
    assert caught.value.where == str(tmp_path / ".lock")
    assert caught.value.exit_code == 6


def test_a_lock_that_its_holder_took_away_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever opened the lock of a run that was just removed must not work on as if it were
    there.
    """
    take = fcntl.flock

    def remove_and_take(handle: int, operation: int) -> None:
        (tmp_path / LOCK_NAME).unlink(missing_ok=True)
        take(handle, operation)

    monkeypatch.setattr(fcntl, "flock", remove_and_take)
    with (
        pytest.raises(ArtefactError, match="another process is writing"),
        hold_lock(tmp_path, "mig"),
    ):
        raise AssertionError("it is held")
