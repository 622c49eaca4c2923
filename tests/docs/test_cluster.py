"""The examples for clusters, with two workers of this machine: the sum of the shards is what
one process counts, to the last bit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plant_cli import fit

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "cluster"
FILES = ("mig.parquet", "words.parquet", "labels.parquet")
PLANT = (sys.executable, "-m", "plant_cli")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 documents over 12 labels, and the run `whole` beside it that one process made."""
    folder = tmp_path_factory.mktemp("cluster")
    draw = np.random.default_rng(0)
    texts = [" ".join(f"word{number}" for number in draw.zipf(1.5, 40) % 300) for _ in range(200)]
    texts[190] = f"{texts[5]} more"
    labels = [sorted({f"L{number}" for number in draw.integers(0, 12, 3)}) for _ in range(200)]
    frame = pl.DataFrame(
        {
            "doc_id": [str(row) for row in range(200)],
            "text": texts,
            "labels": labels,
            "split": ["train"] * 180 + ["test"] * 20,
        }
    )
    frame.write_parquet(folder / "corpus.parquet")
    plant("mig", str(folder / "corpus.parquet"), "--k", "20", "--run", str(folder / "whole"))
    return folder / "corpus.parquet"


def plant(*arguments: str) -> str:
    return subprocess.run([*PLANT, *arguments], check=True, capture_output=True, text=True).stdout


def same(first: Path, second: Path) -> bool:
    return all(
        pl.read_parquet(first / "mig" / name).equals(pl.read_parquet(second / "mig" / name))
        for name in FILES
    )


def test_dask_with_two_workers(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    arguments = [
        str(corpus),
        str(tmp_path / "shards"),
        str(tmp_path / "run"),
        "--shards",
        "3",
        "--workers",
        "2",
        "--k",
        "20",
    ]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "dask_shards.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert all(f"shard {number}/3 is done" in done.stderr for number in (1, 2, 3))
    assert same(tmp_path / "run", corpus.parent / "whole")


def test_dask_converts_with_two_workers(corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    arguments = [
        str(corpus),
        str(tmp_path / "convert"),
        "--command",
        "convert",
        "--shards",
        "2",
        "--workers",
        "2",
    ]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "dask_shards.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert converted(tmp_path / "convert").equals(pl.read_parquet(corpus))


def converted(folder: Path) -> pl.DataFrame:
    names = ("train", "test")
    return pl.concat(
        pl.read_parquet(folder / f"{name}-*.parquet").with_columns(split=pl.lit(name))
        for name in names
    )


def start(corpus: Path, folder: Path, target: Path, *what: str) -> None:
    """Two tasks of an array, side by side; Slurm itself is not there."""
    (folder / "plant").write_text(f'#!/bin/bash\nexec {sys.executable} -m plant_cli "$@"\n')
    (folder / "plant").chmod(0o755)
    common = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SLURM_ARRAY_TASK_MAX": "2"}
    command = ["bash", str(EXAMPLES / "slurm-shards.sh"), str(corpus), str(target), *what]
    tasks = [
        subprocess.Popen(
            command, env={**common, "SLURM_ARRAY_TASK_ID": number}, stderr=subprocess.PIPE
        )
        for number in ("1", "2")
    ]
    for task in tasks:
        assert task.wait() == 0, task.communicate()[1]


def test_slurm_as_its_tasks_would_run(corpus: Path, tmp_path: Path) -> None:
    start(corpus, tmp_path, tmp_path / "shards")
    plant(
        "mig",
        str(corpus),
        "--k",
        "20",
        "--merge",
        str(tmp_path / "shards" / "*" / "mig"),
        "--run",
        str(tmp_path / "run"),
    )
    assert same(tmp_path / "run", corpus.parent / "whole")


def test_slurm_converts(corpus: Path, tmp_path: Path) -> None:
    start(corpus, tmp_path, tmp_path / "parts", "convert")
    assert converted(tmp_path / "parts").equals(pl.read_parquet(corpus))


def test_slurm_labels_texts(corpus: Path, tmp_path: Path) -> None:
    frame = pl.read_parquet(corpus)
    texts, labels = frame["text"].to_list(), frame["labels"].to_list()
    fit(texts, labels, scorers=["words"]).save(tmp_path / "model")
    start(corpus, tmp_path, tmp_path / "labelled", "suggest", str(tmp_path / "model"))
    whole = str(tmp_path / "whole.parquet")
    plant("suggest", str(corpus), "--run", str(tmp_path / "model"), "-O", whole)
    found = pl.read_parquet(tmp_path / "labelled" / "*.parquet")
    assert len(found) == 200
    assert found.equals(pl.read_parquet(whole))
