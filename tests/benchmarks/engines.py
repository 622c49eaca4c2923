"""What engines cost over a plain loop: the examples of docs/cluster.md as printed, and two
processes that take a half of the texts each.

    python -m tests.benchmarks.engines /tmp/engines --json FILE [--engine ray] [--texts 100000]

Processor seconds are those of all processes that an engine starts; they say more than seconds by the
clock where other work is done on the machine. A model of scorers learns from generated documents of
30 words.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl
import psutil

from tests.benchmarks.scale import Size, make
from tests.docs.test_engines import PACKAGES, start, start_example

SIZE = Size(5_000, 500, 30, 2.0)
PLAIN = """
import sys
import polars as pl
from plant_cli import load

label, number, of = load("model").label, int(sys.argv[1]), int(sys.argv[2])
table = pl.read_parquet("texts.parquet")
share = table.slice(len(table) * number // of, len(table) // of)
pl.concat([label(batch) for batch in share.iter_slices(1000)]).write_parquet(f"labelled/{number}.parquet")
"""


def measure(processes: Sequence[psutil.Popen]) -> dict[str, float]:
    """Seconds by the clock and of processors until all end, with what they start."""
    begin, used = time.perf_counter(), dict[tuple[int, float], float]()
    while any(one.poll() is None for one in processes):
        for root in processes:
            with suppress(psutil.Error):
                for one in (root, *root.children(recursive=True)):
                    with suppress(psutil.Error):
                        times = one.cpu_times()
                        used[one.pid, one.create_time()] = times.user + times.system
        time.sleep(0.1)
    seconds = time.perf_counter() - begin
    codes = sum(one.returncode != 0 for one in processes)
    return {"seconds": seconds, "processor_seconds": sum(used.values()), "failed": codes}


def prepare(folder: Path, texts: int) -> None:
    """The model and the texts."""
    if not (folder / "model").exists():
        corpus = make(folder, SIZE)
        command = ["finetune", str(corpus), "--no-network", "--run", str(folder / "model")]
        subprocess.run([sys.executable, "-m", "plant_cli", *command], check=True)
    drawn = pl.read_parquet(folder / "corpus.parquet")["text"].sample(
        texts, with_replacement=True, shuffle=True, seed=0
    )
    pl.DataFrame({"id": range(texts), "text": drawn}).write_parquet(folder / "texts.parquet")


def clear(folder: Path) -> None:
    """Without what an engine left."""
    for name in ("labelled", "progress"):
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "labelled").mkdir()


def main() -> None:
    """Measure the plain loop, then each engine, then the plain loop again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", action="append", choices=[*PACKAGES, "polars"])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder, options.texts)

    def loop(processes: int) -> Callable[[], list[psutil.Popen]]:
        return lambda: [
            start(folder, "-c", PLAIN, str(number), str(processes)) for number in range(processes)
        ]

    engines = options.engine or [*PACKAGES, "polars"]
    runs: dict[str, Callable[[], list[psutil.Popen]]] = {
        "plain": loop(2),
        **{name: lambda name=name: [start_example(name, folder)] for name in engines},
        "plain, one process": loop(1),
        "plain again": loop(2),
    }
    found: dict[str, dict[str, float]] = {}
    for name, begin in runs.items():
        clear(folder)
        found[name] = measure(begin())
        print(name, {key: round(value, 1) for key, value in found[name].items()}, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
