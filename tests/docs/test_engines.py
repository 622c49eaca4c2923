"""The examples of docs/cluster.md run as printed, on real engines: with two workers, one of which
is killed, every text is labelled once, as one process labels it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import polars as pl
import psutil
import pytest

from plant_cli import fit, load

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
WORDS = ("fever", "cough", "fracture", "rash")
FEW, MANY = 5_000, 200_000
LIMIT = 900  # seconds for an example, on a busy machine
PACKAGES = {
    "ray": ("ray.data",),
    "spark": ("pyspark", "pyarrow"),
    "dask": ("dask.dataframe", "distributed", "pyarrow"),
    "daft": ("daft",),
}
WORKERS = {
    "ray": "ray::.*MapBatches",
    "spark": "pyspark.daemon",
    "dask": "multiprocessing.*spawn_main",
    "daft": "daft.execution.udf_worker",
}
"""Command lines of the processes in which an engine labels texts."""
GOES_ON = ("ray", "spark", "dask")  # engines that do without a worker that died


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engines") / "model"
    texts = [f"The patient has {word}, number {n}." for word in WORDS for n in range(5)]
    labels = [[word.upper()] for word in WORDS for _ in range(5)]
    fit(texts, labels, scorers=["words"]).save(folder)
    return folder


@pytest.fixture
def place(model: Path, tmp_path: Path) -> Path:
    """A folder with the model."""
    (tmp_path / "model").symlink_to(model)
    return tmp_path


def write_texts(place: Path, rows: int) -> None:
    asked = [f"{WORDS[row % 4]} in room {row % 97}" for row in range(rows)]
    pl.DataFrame({"id": range(rows), "text": asked}).write_parquet(place / "texts.parquet")


def start(place: Path, *command: str) -> psutil.Popen:
    """A process of Python in the folder."""
    programs = Path(sys.executable).parent  # where Spark looks for Python
    return psutil.Popen(
        [sys.executable, *command],
        cwd=place,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PATH": f"{programs}:{os.environ['PATH']}",
        },
        stdout=(place / "log").open("a"),
        stderr=subprocess.STDOUT,
    )


def start_example(name: str, place: Path) -> psutil.Popen:
    """An example of the page, in a file of its own, as a person has who tries it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    code = next(block for block in blocks if block.startswith(f"# {name}\n"))
    (place / "example.py").write_text(code, "utf-8")
    return start(place, "example.py")


def wait_until(process: psutil.Popen, what: Callable[[], bool]) -> None:
    """Wait for something that happens while a process runs."""
    until = monotonic() + LIMIT
    while not what():
        assert process.poll() is None, "it ended too soon"
        assert monotonic() < until
        sleep(0.1)


def has_labelled(process: psutil.Process) -> bool:
    return process.cpu_times().user > 5  # seconds; opening a model takes two


def kill_worker(process: psutil.Popen, pattern: str) -> None:
    """Kill a process in which an engine labels texts, once it has done some."""

    def kill() -> bool:
        for one in process.children(recursive=True):
            with suppress(psutil.Error):
                named = re.search(pattern, " ".join(one.cmdline()))
                if named and has_labelled(one):
                    one.kill()
                    return True
        return False

    wait_until(process, kill)


def finish(process: psutil.Popen, place: Path, *, well: bool = True) -> None:
    """Wait until the example ends, and see whether it ended well."""
    code = process.wait(LIMIT)
    assert (code == 0) == well, (place / "log").read_text("utf-8")[-3000:]


def check(place: Path, labelled: Path) -> None:
    """Every id once, with the labels that this process gives."""
    found = pl.read_parquet(labelled / "*.parquet" if labelled.is_dir() else labelled)
    label: Callable[[Any], Any] = load(place / "model").label
    expected = label(pl.read_parquet(place / "texts.parquet"))
    assert sorted(found["id"]) == sorted(expected["id"])
    assert found.select(expected.columns).sort("id").equals(expected)


def require(name: str) -> None:
    for package in PACKAGES[name]:
        pytest.importorskip(package, reason=f"{name} is not installed")


def test_polars(place: Path) -> None:
    write_texts(place, FEW)
    finish(start_example("polars", place), place)
    check(place, place / "labelled.parquet")


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_dies(name: str, place: Path) -> None:
    require(name)
    write_texts(place, MANY)
    process = start_example(name, place)
    kill_worker(process, WORKERS[name])
    finish(process, place, well=name in GOES_ON)
    if name not in GOES_ON:
        finish(start_example(name, place), place)
    check(place, place / "labelled")


@pytest.mark.slow
def test_ray_goes_on(place: Path) -> None:
    require("ray")
    write_texts(place, MANY)
    process = start_example("ray", place)
    wait_until(process, lambda: len(list(place.glob("labelled/*.parquet"))) >= 4)
    process.kill()
    process.wait()
    sleep(5)  # its workers end when they find that it is gone
    done = set(place.glob("labelled/*.parquet"))
    assert len(done) < 20
    finish(start_example("ray", place), place)
    assert done < set(place.glob("labelled/*.parquet"))  # what was written is not done again
    check(place, place / "labelled")


@pytest.mark.slow
def test_a_share_goes_on(place: Path) -> None:
    write_texts(place, MANY)
    (place / "labelled").mkdir()
    lines = re.findall("^plant (suggest .*--shard.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    tasks = [("-m", "plant_cli", *line.split(), "--id-column", "id") for line in lines]
    first, second = (start(place, *task) for task in tasks)
    wait_until(first, lambda: has_labelled(first))
    first.kill()
    first.wait()
    finish(second, place)
    assert not (place / "labelled" / "1.parquet").exists()
    finish(start(place, *tasks[0]), place)
    assert "goes on after" in (place / "log").read_text("utf-8")
    found = pl.read_parquet(place / "labelled" / "*.parquet")
    assert found["doc_id"].to_list() == [str(row) for row in range(MANY)]
