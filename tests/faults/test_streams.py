"""Streams that are closed or full, and signals at the very start: the work is done, or it is
said what is missing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plant_cli.data.files import read_json

MIG = (
    "-m",
    "plant_cli",
    "mig",
    "--dataset",
    "synthetic-clinic",
    "--set",
    "data.dataset.documents=60",
    "--quiet",
)


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in a folder; `$P` is the command line."""
    environment = {
        **os.environ,
        "P": f"{sys.executable} {' '.join(MIG)}",
        "PLANT": f"{sys.executable} -m plant_cli",
    }
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nothing(tmp_path: Path, closed: str) -> None:
    ended = shell(tmp_path, f"$P {closed}")
    assert ended.returncode == 0, ended.stderr
    assert (
        read_json(tmp_path / "plant-run" / "mig" / "stage.json", "the record")["status"] == "done"
    )


def test_a_full_disk_behind_stdout_does_not_deny_what_is_done(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    ended = shell(tmp_path, "$P > /dev/full")
    assert ended.returncode == 6
    assert "the stage is done and recorded, but its result could not be shown" in ended.stderr
    assert (
        read_json(tmp_path / "plant-run" / "mig" / "stage.json", "the record")["status"] == "done"
    )


def test_a_folder_that_was_deleted_is_told(tmp_path: Path) -> None:
    ended = shell(
        tmp_path, "mkdir gone; cd gone; rmdir ../gone; $PLANT data make synthetic-clinic -O x.csv"
    )
    assert ended.returncode == 2
    assert "the output cannot be written" in ended.stderr


def test_a_place_where_nothing_can_be_written_is_told(tmp_path: Path) -> None:
    for place, code, text in (
        ("/proc/x.csv", 2, "the output cannot be written"),
        ("/dev/null/x.parquet", 6, "the system refuses a file"),
    ):
        ended = shell(tmp_path, f"$PLANT data make synthetic-clinic --documents 60 -O {place}")
        assert (ended.returncode, text in ended.stderr) == (code, True), ended.stderr


def test_a_limit_on_the_size_of_files_is_told(tmp_path: Path) -> None:
    ended = shell(tmp_path, "ulimit -f 1; TMPDIR=. $P")
    assert ended.returncode == 6, ended.stderr
    assert "a file would be larger than the system allows" in ended.stderr
    assert shell(tmp_path, "$P --resume").returncode == 0


INTERRUPTED = """
import os, signal, sys
import plant_cli.__main__ as started
class Interrupter:
    def find_spec(self, name, *rest):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupter())
started.main()
"""


def test_ctrl_c_while_everything_is_loaded_shows_no_trace(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")
