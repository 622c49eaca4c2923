"""What engines cost over a plain loop: the examples of docs/cluster.md as printed, and two
processes that take a half of the texts each.

    python -m tests.benchmarks.engines /tmp/engines --json FILE [--engine ray]

Processor seconds are those of all processes that an engine starts; they say more than seconds by the
clock where other work is done on the machine. A model of scorers has learned from generated documents
of 30 words.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import polars as pl
import psutil

from tests.benchmarks.scale import Size, make
from tests.docs.test_engines import PACKAGES, start, start_example

SIZE = Size(5_000, 500, 30, 2.0)
TEXTS = (10_000, 60_000)  # the second number without the first is what texts take, and no start
PLAIN = """
import sys
import polars as pl
from plant_cli import load

label, number, of = load("model").label, int(sys.argv[1]), int(sys.argv[2])
table = pl.read_parquet("texts.parquet")
share = table.slice(len(table) * number // of, len(table) // of)
labelled = pl.concat([label(batch) for batch in share.iter_slices(1000)])
labelled.write_parquet(f"labelled/{number}.parquet")
"""


def measure(folder: Path, name: str, texts: int) -> dict[str, float]:
    """Seconds by the clock and of processors until all texts are labelled, with what the
    processes start.
    """
    prepare(folder, texts)
    processes = begin(folder, name)
    first, used = time.perf_counter(), dict[tuple[int, float], float]()
    while any(one.poll() is None for one in processes):
        for root in processes:
            with suppress(psutil.Error):
                for one in (root, *root.children(recursive=True)):
                    with suppress(psutil.Error):
                        times = one.cpu_times()
                        used[one.pid, one.create_time()] = times.user + times.system
        time.sleep(0.1)
    return {
        "seconds": time.perf_counter() - first,
        "processor_seconds": sum(used.values()),
        "failed": sum(one.returncode != 0 for one in processes),
    }


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


def begin(folder: Path, name: str) -> list[psutil.Popen]:
    """The processes of an engine, or of the plain loop, without what another one left."""
    for left in ("labelled", "progress"):
        shutil.rmtree(folder / left, ignore_errors=True)
    (folder / "labelled").mkdir()
    if name != "plain":
        return [start_example(name, folder)]
    return [start(folder, "-c", PLAIN, str(number), "2") for number in range(2)]


def main() -> None:
    """Measure the plain loop and each engine on few and on many texts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", action="append", choices=[*PACKAGES, "polars"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, float]] = {}
    for name in ["plain", *(options.engine or [*PACKAGES, "polars"])]:
        few, many = (measure(folder, name, texts) for texts in TEXTS)
        each = (many["processor_seconds"] - few["processor_seconds"]) / (TEXTS[1] - TEXTS[0])
        found[name] = {
            "ms_a_text": 1000 * each,
            "start_seconds": few["processor_seconds"] - TEXTS[0] * each,
            "clock_seconds": many["seconds"],
            "failed": few["failed"] + many["failed"],
        }
        found[name]["overhead"] = found[name]["ms_a_text"] / found["plain"]["ms_a_text"] - 1
        print(name, {key: round(value, 3) for key, value in found[name].items()}, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
