"""How OpenMP's threads should wait: `mig`, both trainings and scoring, alone and beside busy processes, in several ways of waiting.

`python -m tests.benchmarks.waiting --corpus data.parquet --json FILE`. Every stage is a process of its own, as a user starts it; its
time is that of `stage.json`. Competing processes count as fast as they can and end with the measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from plant_cli.runs.machine import CHOICES

STAGES = ("mig", "pretrain-attn", "finetune", "predict")
WAYS: dict[str, dict[str, str]] = {
    "as it comes": {"KMP_BLOCKTIME": "200"},  # what LLVM's OpenMP does anyway and GNU's does not read; plant then sets nothing
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    **{f"spins {count}": {"GOMP_SPINCOUNT": count} for count in ("0", "100", "1000", "10000", "100000")},
    "blocktime 0": {"KMP_BLOCKTIME": "0"},  # LLVM's OpenMP: sleep at once; with LD_PRELOAD=libiomp5.so it takes the place of GNU's
    "blocktime 100us": {"KMP_BLOCKTIME": "100us"},
    "one thread": {"KMP_BLOCKTIME": "200", "OMP_NUM_THREADS": "1"},
}
BACKBONES = {"tiny": "{name: tiny, hidden: 384, heads: 8, layers: 2}", "minilm": "{name: minilm, max_tokens: 256}"}
BUSY = "while True: pass"


@contextmanager
def competing(count: int) -> Iterator[None]:
    """So many processes that keep a core busy each."""
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def time_stages(options: argparse.Namespace, way: str) -> dict[str, float]:
    """Seconds of each stage of a new run, as `stage.json` has them."""
    environment = {name: value for name, value in os.environ.items() if name not in (*CHOICES, "OMP_NUM_THREADS")} | WAYS[way]
    sets = {"model.backbone": BACKBONES[options.backbone], "pretrain-attn.epochs": "1", "finetune.epochs": "1"}
    sets |= {"data.path": str(options.corpus.absolute())} if options.corpus else {"data.dataset": "synthetic-clinic"}
    given = [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for stage in STAGES:
            command = [sys.executable, "-m", "plant_cli", stage, "--run", f"{folder}/run", "--quiet", *given]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode:
                raise SystemExit(f"plant {stage} failed:\n{done.stderr[-4000:]}")
            found[stage] = float(json.loads(Path(folder, "run", stage, "stage.json").read_text("utf-8"))["seconds"])
    return found


def measure(options: argparse.Namespace) -> list[dict[str, object]]:
    """The median of some runs for each way of waiting and each number of competing processes."""
    rows: list[dict[str, object]] = []
    print(f"{'way':14}{'beside':>8}" + "".join(f"{stage:>16}" for stage in STAGES))
    for count in options.beside:
        for way in options.way:
            with competing(count):
                runs = [time_stages(options, way) for _ in range(options.repeats)]
            seconds = {stage: statistics.median(run[stage] for run in runs) for stage in STAGES}
            print(f"{way:14}{count:>8}" + "".join(f"{value:>14.1f} s" for value in seconds.values()), flush=True)
            rows.append({"way": way, "environment": WAYS[way], "beside": count, "seconds": seconds, "runs": runs})
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.waiting", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="a file of texts and labels (default: synthetic-clinic)")
    parser.add_argument("--backbone", choices=list(BACKBONES), default="minilm")
    parser.add_argument("--way", choices=list(WAYS), nargs="+", default=list(WAYS))
    parser.add_argument("--beside", type=int, nargs="+", default=[0, 1, 2], help="competing processes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    rows = measure(options)
    if options.json:
        machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
        options.json.write_text(json.dumps({"rows": rows, "backbone": options.backbone, "machine": machine}, indent=2) + "\n")


if __name__ == "__main__":
    main()
