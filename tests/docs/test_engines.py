"""The examples of docs/cluster.md run as printed, on real engines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli import fit, load

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
WORDS = ("fever", "cough", "fracture", "rash")
ROWS = 5_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and texts in five parts."""
    folder = tmp_path_factory.mktemp("engines")
    texts = [f"The patient has {word}, number {n}." for word in WORDS for n in range(5)]
    labels = [[word.upper()] for word in WORDS for _ in range(5)]
    fit(texts, labels, scorers=["words"]).save(folder / "model")
    asked = [f"{WORDS[row % 4]} in room {row % 97}" for row in range(ROWS)]
    table = pl.DataFrame({"id": range(ROWS), "text": asked})
    table.write_parquet(folder / "texts.parquet", row_group_size=ROWS // 5)
    return folder


@pytest.fixture
def run_example(place: Path) -> Callable[[str], pl.DataFrame]:
    """Run the example of an engine in a process of its own; what it wrote."""

    def run(name: str) -> pl.DataFrame:
        blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
        code = next(block for block in blocks if block.startswith(f"# {name}\n"))
        written = place / name
        written.mkdir()
        for link in ("model", "texts.parquet"):
            (written / link).symlink_to(place / link)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=written,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found = next(path for path in written.iterdir() if path.name.startswith("labelled"))
        return pl.read_parquet(found / "*.parquet" if found.is_dir() else found)

    return run


def label_here(place: Path) -> pl.DataFrame:
    """What the model gives for the texts in this process."""
    labelled: Any = load(place / "model").label(pl.read_parquet(place / "texts.parquet"))
    assert isinstance(labelled, pl.DataFrame)
    return labelled


def test_polars(run_example: Callable[[str], pl.DataFrame], place: Path) -> None:
    found, expected = run_example("polars"), label_here(place)
    assert sorted(found["id"]) == list(range(ROWS))
    assert found.select(expected.columns).sort("id").equals(expected)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package"), [("dask", "dask.dataframe"), ("ray", "ray.data")])
def test_engines(
    name: str, package: str, run_example: Callable[[str], pl.DataFrame], place: Path
) -> None:
    pytest.importorskip(package, reason=f"{name} is not installed")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    found, expected = run_example(name), label_here(place)
    assert sorted(found["id"]) == list(range(ROWS))  # every id once
    assert found.select(expected.columns).sort("id").equals(expected)
