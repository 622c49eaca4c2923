"""What is planned is what is measured: peak memory of a real training stage in a process of its own, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from plant_cli.training.planning import Estimate

TOLERANCE = 0.25
SHARED = ["machine.precision=fp32", "machine.device=cpu", "machine.threads=1", "finetune.init=random", "finetune.epochs=1"]
"""Both: a step of training decides the peak, the whole network learns in the one epoch."""
MANY_LABELS = [
    "model.backbone={name: tiny, hidden: 256, layers: 1, buckets: 512, dropout: 0.0}",
    "finetune.micro_batch=2",
    "finetune.batch=4",
]
LONG_TEXTS = [
    "model.backbone={name: tiny, hidden: 128, layers: 4, buckets: 512, window: 128}",
    "finetune.micro_batch=4",
    "finetune.batch=8",
    "finetune.unfreeze=all",
]


def write_corpus(path: Path, *, documents: int, words: int, labels: int) -> None:
    """Documents of so many words; the labels are dealt out in turn, so that train has them all."""
    each = labels // documents
    train = [("train", " ".join(f"w{(i * 7 + j) % 301}" for j in range(words)), [f"label {i * each + j}" for j in range(each)])
             for i in range(documents)]  # fmt: skip
    rows = [*train, *(("validation", *row[1:]) for row in train[:4]), *(("test", *row[1:]) for row in train[:2])]
    frame = pl.DataFrame(rows, schema=["split", "text", "labels"], orient="row").with_row_index("doc_id")
    frame.with_columns(pl.col("doc_id").cast(pl.String)).write_parquet(path)


def test_the_peak_is_the_sum_of_the_parts() -> None:
    found = Estimate(memory={"weights": 3, "gradients": 4}, disk={}, work={}, seconds=0.0, measured=False)
    assert found.peak == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "sets"),
    [
        ({"documents": 40, "words": 30, "labels": 24000}, MANY_LABELS),
        ({"documents": 16, "words": 1500, "labels": 16}, LONG_TEXTS),
    ],
    ids=["many labels", "long texts"],
)
def test_planned_peak_memory_is_the_measured_one(
    tmp_path: Path, run_alone: Callable[..., Any], sizes: dict[str, int], sets: list[str]
) -> None:
    write_corpus(tmp_path / "data.parquet", **sizes)
    sets = [f"data.path={tmp_path / 'data.parquet'}", *SHARED, *sets, "mig.k=1"]
    run_alone(tmp_path / "run", "mig", sets)
    found = run_alone(tmp_path / "run", "plan", sets)["data"]["finetune"]
    network = {part: size for part, size in found["memory"].items() if part != "process and texts"}
    measured = run_alone(tmp_path / "run", "finetune", sets)["peak"]
    assert measured > 300e6, "too little to tell parts from the noise of a process"
    assert abs(sum(network.values()) / measured - 1) < TOLERANCE, (network, measured)
