import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import Interrupted
from plant_cli.data.parquet import write_frames

SCHEMA = {"number": pl.Int64(), "name": pl.String()}
BLOCKS, ROWS = 120, 50_000

PEAK = f"""
import resource, sys
from pathlib import Path
import numpy as np, polars as pl
from plant_cli.data.parquet import write_frames
def frames(count):
    for i in range(count):
        yield pl.DataFrame({{"number": np.random.default_rng(i).integers(0, 2**62, {ROWS}), "other": np.full({ROWS}, i)}})
write_frames(Path(sys.argv[1]), frames(8), {{"number": pl.Int64(), "other": pl.Int64()}}, {{}})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
write_frames(Path(sys.argv[1]), frames({BLOCKS}), {{"number": pl.Int64(), "other": pl.Int64()}}, {{}})
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def frames(count: int) -> Iterator[pl.DataFrame]:
    for i in range(count):
        yield pl.DataFrame({"number": [i, i], "name": [f"n{i}", None]})


def test_frames_stand_below_one_another_in_order_with_the_metadata(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_frames(path, frames(100), SCHEMA, {"plant.format": "7"})
    assert pl.read_parquet(path).equals(pl.concat(frames(100)))
    assert pl.read_parquet_metadata(path)["plant.format"] == "7"
    write_frames(path, frames(0), SCHEMA, {})
    assert pl.read_parquet(path).schema == SCHEMA


def test_what_the_frames_raise_comes_through_and_no_file_is_left(tmp_path: Path) -> None:
    begun = []

    def failing() -> Iterator[pl.DataFrame]:
        begun.extend(tmp_path.iterdir())  # so that polars makes no file later on
        yield from frames(3)
        raise Interrupted("stopped", where="here", expected="more", todo="again")

    with pytest.raises(Interrupted, match="stopped") as caught:
        write_frames(tmp_path / "rows.parquet", failing(), SCHEMA, {})
    assert caught.value.where == "here"
    assert len(begun) == 1
    assert not list(tmp_path.iterdir())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """96 MB of rows in 0.8 MB blocks add less than half of that to the process's peak."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(tmp_path / "rows.parquet")], capture_output=True, text=True, check=True)
    assert pl.scan_parquet(tmp_path / "rows.parquet").select(pl.len()).collect().item() == BLOCKS * ROWS
    assert int(done.stdout) < BLOCKS * ROWS * 16 // 2
