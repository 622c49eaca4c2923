"""The scripts for Slurm, with two processes of this machine: the sum of the shards is what one
process counts, to the last bit, and a network is trained by both.
"""

from __future__ import annotations

import json
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


def stand_in(folder: Path, **scripts: str) -> dict[str, str]:
    """An environment in which these commands are others."""
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    programs = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{folder}:{programs}:{os.environ['PATH']}"}


def test_slurm_trains_a_network_on_two_machines(corpus: Path, tmp_path: Path) -> None:
    """Both machines are this one; the same command once more has nothing left to do."""
    environment = stand_in(
        tmp_path,
        scontrol="echo 127.0.0.1",
        srun='SLURM_NODEID=0 "$@" & one=$!; SLURM_NODEID=1 "$@" & two=$!; wait $one && wait $two',
        torchrun=f'exec {sys.executable} -m torch.distributed.run "$@"',
    )
    environment |= {"SLURM_JOB_NODELIST": "two", "SLURM_NNODES": "2", "OMP_NUM_THREADS": "1"}
    environment |= {"SLURM_JOB_ID": str(os.getpid()), "CUDA_VISIBLE_DEVICES": ""}
    options = "--epochs 1 --head random --init random --scorers none --set model.backbone.name=tiny"
    command = ["bash", str(EXAMPLES / "slurm-finetune.sh"), str(corpus), *options.split()]
    for said in ("next: plant eval", "unchanged, skipped"):
        done = subprocess.run(
            [*command, "--run", str(tmp_path / "run")],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert said in done.stderr
    record = json.loads((tmp_path / "run" / "finetune" / "stage.json").read_text("utf-8"))
    assert record["environment"]["processes"] == 2


def test_slurm_starts_accelerate_where_a_network_is_shared(tmp_path: Path) -> None:
    """What would be started on each machine."""
    environment = stand_in(
        tmp_path,
        scontrol="echo first; echo second",
        srun='SLURM_NODEID=0 "$@"; SLURM_NODEID=1 "$@"',
        accelerate='echo "$@"',
    )
    environment |= {"SLURM_JOB_NODELIST": "two", "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "4"}
    environment |= {"SLURM_JOB_ID": "7", "SHARED": "fsdp.yaml"}
    found = subprocess.run(
        ["bash", str(EXAMPLES / "slurm-finetune.sh"), "--run", "run"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines() == [
        "launch --config_file fsdp.yaml --num_machines 2 --num_processes 8 "
        f"--machine_rank {rank} --main_process_ip first --main_process_port 20007 "
        "-m plant_cli finetune --resume --run run"
        for rank in (0, 1)
    ]
