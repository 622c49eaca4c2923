"""Two processes that meet over gloo count what one counts: through the command line, as `accelerate launch` starts it."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest


def launch(arguments: list[str], folder: Path, processes: int) -> list[subprocess.CompletedProcess[str]]:
    """Start the processes with the environment that torch's launchers give them, and wait for all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(processes), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "plant_cli", *arguments],
            cwd=folder,
            env={**os.environ, **meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    ended = [(process, *process.communicate(timeout=60)) for process in started]
    return [subprocess.CompletedProcess(process.args, process.returncode, out, err) for process, out, err in ended]


@pytest.mark.slow
def test_two_processes_write_what_one_writes(tmp_path: Path) -> None:
    rows = [("train", f"word{i % 7} word{i % 5} rare{i} both", [f"label{i % 3}"]) for i in range(30)] + [
        ("validation", "word1", ["label1"])
    ]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(tmp_path / "data.parquet")
    command = ["mig", "data.parquet", "--score", "tf", "--sign", "any", "--min-df", "2"]
    together = launch([*command, "--run", "together"], tmp_path, 2)
    assert [process.returncode for process in together] == [0, 0], together[0].stderr + together[1].stderr
    assert "Relevance" in together[0].stdout
    assert not together[1].stdout
    alone = launch([*command, "--run", "alone"], tmp_path, 1)
    assert alone[0].returncode == 0, alone[0].stderr
    for name in ("mig", "words", "labels"):
        assert pl.read_parquet(tmp_path / "together" / "mig" / f"{name}.parquet").equals(
            pl.read_parquet(tmp_path / "alone" / "mig" / f"{name}.parquet")
        )
