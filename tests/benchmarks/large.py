"""Very many labels end to end: `mig`, `pretrain-attn` and `finetune` on a generated corpus, each stage's time and peak memory.

`python -m tests.benchmarks.large --labels 131073 --json FILE`. Every label has one training document, every document is words drawn
by Zipf's law; what is measured does not depend on their meaning. Each stage is a process of its own, as a user starts it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

STAGES = ("mig", "pretrain-attn", "finetune", "predict")
HELD_OUT = 16  # documents of validation, and of test
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
BACKBONES = {
    "tiny": "{name: tiny, hidden: 384, heads: 8, layers: 2}",
    "minilm": "{name: minilm, max_tokens: 128}",
}


def write_corpus(path: Path, *, labels: int, documents: int, words: int, vocabulary: int = 20_000) -> None:
    """A corpus in which label i is that of training document i mod `documents`, and of some held-out ones."""
    draw = np.random.default_rng(0)
    known = np.array(["".join(row) for row in LETTERS[draw.integers(0, 26, (vocabulary, 7))]])
    total = documents + 2 * HELD_OUT
    share = 1 / np.arange(1, vocabulary + 1)
    drawn = known[draw.choice(vocabulary, (total, words), p=share / share.sum())]
    owned = [[f"L{label:07d}" for label in range(row % documents, labels, documents)] for row in range(total)]
    frame = pl.DataFrame(
        {
            "doc_id": [f"d{row}" for row in range(total)],
            "text": [" ".join(row) for row in drawn],
            "labels": [names if row < documents else names[:8] for row, names in enumerate(owned)],
            "split": ["train"] * documents + ["validation"] * HELD_OUT + ["test"] * HELD_OUT,
        }
    )
    frame.write_parquet(path)


def command(options: argparse.Namespace, stage: str, folder: Path) -> list[str]:
    """The command line of a stage."""
    sets = {
        "data.path": str(folder / "data.parquet"),
        "model.backbone": BACKBONES[options.backbone],
        "model.decoder": f"{{name: label-attention, label_rank: {options.label_rank}}}",
        "machine.threads": "2",
        "pretrain-attn.epochs": "1",
        "finetune.epochs": "1",
        "finetune.sharpness": "1",
    }
    if options.shortlist:
        sets |= {f"{name}.shortlist": options.shortlist for name in ("finetune", "predict")}
    given = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    return [sys.executable, "-m", "plant_cli", stage, "--run", str(folder / "run"), "--quiet", *given]


def measure(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """What `stage.json` says of each stage: wall-clock seconds, peak resident memory of its process, and its main numbers."""
    write_corpus(folder / "data.parquet", labels=options.labels, documents=options.documents, words=options.words)
    found: dict[str, dict[str, float]] = {}
    for stage in STAGES:
        done = subprocess.run(command(options, stage, folder), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"plant {stage} failed:\n{done.stderr[-4000:]}")
        record = json.loads((folder / "run" / stage / "stage.json").read_text("utf-8"))
        numbers = {name: value for name, value in record["summary"].items() if isinstance(value, int | float)}
        found[stage] = {"seconds": record["seconds"], "peak_gb": record["peak_memory_gb"], **numbers}
        print(f"{stage:16}{record['seconds']:10.1f} s{record['peak_memory_gb']:10.2f} GB", flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.large", description=(__doc__ or "").splitlines()[0])
    for name, size in (("labels", 131_073), ("documents", 256), ("words", 128), ("label-rank", 64)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--backbone", choices=list(BACKBONES), default="minilm")
    parser.add_argument("--shortlist", help="let this propose candidate labels in finetune and predict")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, Path(folder))
    if options.json:
        machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
        sizes = {name: value for name, value in vars(options).items() if name != "json"}
        whole = {"seconds": sum(s["seconds"] for s in found.values()), "peak_gb": max(s["peak_gb"] for s in found.values())}
        options.json.write_text(json.dumps({**whole, "stages": found, "sizes": sizes, "machine": machine}, indent=2) + "\n")


if __name__ == "__main__":
    main()
