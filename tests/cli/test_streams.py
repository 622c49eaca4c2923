"""Progress that nobody reads any more fails nothing."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.cli.execution import tolerate_lost_reader
from plant_cli.data.files import read_json


def test_a_stream_outlives_its_reader() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as pipe:
        stream = tolerate_lost_reader(pipe)
        print("read", file=stream)
        assert os.read(reader, 100) == b"read\n"
        os.close(reader)
        for _ in range(3):
            print("unread", file=stream, flush=True)
        os.write(writer, b"what a library writes by itself")


def test_other_failures_are_told() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    with full.open("w") as file:
        stream: Any = tolerate_lost_reader(file)
        with pytest.raises(OSError, match="No space left") as caught:
            stream.buffer.raw.write(b"lost")
    assert caught.value.errno == errno.ENOSPC


def test_a_stream_in_memory_stays_as_it_is() -> None:
    stream = io.StringIO()
    assert tolerate_lost_reader(stream) is stream


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "c.parquet"
    rows = [(split, f"{word} and more", [word]) for split in ("train", "validation", "test") for word in ("fever", "cough", "pain")]
    pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").write_parquet(path)
    return path


def start(*arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "plant_cli", *arguments], **streams)


def test_a_stage_ends_well_though_nobody_reads_its_progress_or_its_result(corpus: Path) -> None:
    """As in `plant mig c.parquet 2>&1 | head -1`."""
    stage = start("mig", str(corpus), "--run", str(corpus.parent / "run"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert stage.stdout is not None
    stage.stdout.close()
    assert stage.wait(timeout=60) == 0
    assert read_json(corpus.parent / "run" / "mig" / "stage.json", "the record")["status"] == "done"


def test_an_action_whose_result_nobody_reads_ends_quietly(corpus: Path) -> None:
    """As in `plant data stats c.parquet --quiet | head -0`: no complaint; without `--quiet` stderr tells of progress."""
    action = start("data", "stats", str(corpus), "--quiet", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert action.stdout is not None
    action.stdout.close()
    assert action.stderr is not None
    assert (action.wait(timeout=60), action.stderr.read()) == (141, b"")
    action.stderr.close()
