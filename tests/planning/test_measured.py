"""What is planned is what is measured: peak memory of a real training stage in a process of its own, on the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.running.runner import run_stage

TOLERANCE = 0.25
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1 << 16), "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}
"""What is freed is returned at once (glibc's allocator and that of polars), so that a process's memory is what it holds."""
MEASURE = """
import json, re, sys
from pathlib import Path
import accelerate, torch, transformers, scipy.sparse, polars
import plant_cli.stages.finetune, plant_cli.training.loop, plant_cli.evaluation.score, plant_cli.inference.scoring, plant_cli.stages.mig
import plant_cli.corpus.counts, plant_cli.relevance.engine, plant_cli.artefacts.relevance, plant_cli.model.hardware
from plant_cli.api import Request, SilentReporter
from plant_cli.registry import installed
from plant_cli.running.runner import run_stage

def status(key):
    return int(re.search(key + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

run, name, sets = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
step = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], fused=True)  # loads what the first step would load
step.param_groups[0]["params"][0].sum().backward(); step.step()
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
run_stage(Request(registry=installed(), run_path=Path(run), sets=sets, reporter=SilentReporter()), name)
print("MEASURED", status("VmHWM") - before)
"""
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


def measure(run: Path, name: str, sets: list[str]) -> int:
    """Bytes that a stage's process takes at most beside what it has before it begins."""
    command = [sys.executable, "-c", MEASURE, str(run), name, json.dumps(sets)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **GIVE_BACK})
    return int(done.stdout.split("MEASURED")[1])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(
    ("sizes", "sets", "dominant"),
    [
        ({"documents": 40, "words": 30, "labels": 24000}, MANY_LABELS, "optimiser"),
        ({"documents": 16, "words": 1500, "labels": 16}, LONG_TEXTS, "activations"),
    ],
    ids=["many labels", "long texts"],
)
def test_planned_peak_memory_is_the_measured_one(tmp_path: Path, sizes: dict[str, int], sets: list[str], dominant: str) -> None:
    write_corpus(tmp_path / "data.parquet", **sizes)
    sets = [f"data.path={tmp_path / 'data.parquet'}", *SHARED, *sets]
    run_stage(Request(registry=installed(), run_path=tmp_path / "run", sets=[*sets, "mig.k=1"], reporter=SilentReporter()), "mig")
    result = run_stage(Request(registry=installed(), run_path=tmp_path / "run", sets=sets, reporter=SilentReporter()), "plan")
    planned = result.data["finetune"]["memory_bytes"]
    measured = measure(tmp_path / "run", "finetune", sets)
    assert max((size, part) for part, size in planned.items() if part not in ("peak", "label_attention"))[1] == dominant
    assert measured > 300e6, "too little to tell parts from the noise of a process"
    assert abs(planned["peak"] / measured - 1) < TOLERANCE, (planned, measured)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(
    ("distinct", "longest", "labels", "dominant"), [(800, 1, 300, "counting"), (8, 20000, 300, "texts")], ids=["many words", "long texts"]
)
def test_planned_memory_of_relevance_is_the_measured_one(tmp_path: Path, distinct: int, longest: int, labels: int, dominant: str) -> None:
    documents, words = 12000, 40000
    names = ["".join("abcdefghij"[int(digit)] for digit in f"{number:05}") for number in range(words)]
    texts = (" ".join(names[(d * 37 + j * (1 + d % 61)) % words] for j in range(distinct)) + longest * "a" for d in range(documents))
    rows = [("train" if d % 100 else "test", str(d), text, [f"label {d % labels}"]) for d, text in enumerate(texts)]
    frame = pl.DataFrame(rows, schema=["split", "doc_id", "text", "labels"], orient="row")
    frame.write_parquet(tmp_path / "data.parquet", row_group_size=1000)
    sets = [f"data.path={tmp_path / 'data.parquet'}", "machine.device=cpu", "machine.threads=1", "mig.k=100"]
    result = run_stage(Request(registry=installed(), run_path=tmp_path / "run", sets=sets, reporter=SilentReporter()), "plan")
    planned = result.data["mig"]["memory_bytes"]
    measured = measure(tmp_path / "run", "mig", sets)
    assert max((size, part) for part, size in planned.items() if part != "peak")[1] == dominant
    assert measured > 300e6, "too little to tell parts from the noise of a process"
    assert abs(planned["peak"] / measured - 1) < TOLERANCE, (planned, measured)
