from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plant_cli.api import ArtefactError
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
        pytest.raises(ArtefactError, match="another process is writing to this run: pretrain-attn") as caught,
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
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ArtefactError, match="finetune") as caught, hold_lock(tmp_path, "mig"):
            pass
        assert f"process {holder.pid}" in caught.value.where
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with hold_lock(tmp_path, "mig"):
        pass
