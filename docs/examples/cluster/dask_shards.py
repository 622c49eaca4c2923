"""A very large corpus with Dask: each task takes one share of the documents, and one adds the
shares up.

    pip install 'plant-cli[cluster]' python dask_shards.py /data/corpus.parquet /scratch/shards
    /scratch/run --shards 8 --workers 2 python dask_shards.py /data/corpus.parquet /scratch/shards
    /scratch/run --shards 8 --scheduler tcp://head:8786 python dask_shards.py /data/corpus.jsonl.gz
    /scratch/corpus --command convert

Without `--scheduler` the workers are processes of this machine. All workers must see the corpus and
the folders, and have `plant` installed. Further options are those of `plant mig` (`--k 100`;
`--memory` is for each worker) or `plant data convert`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def run_plant(arguments: list[str]) -> str:
    """Run `plant` on a worker; what it says, if it fails, is the error."""
    done = subprocess.run(
        [sys.executable, "-m", "plant_cli", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(
            f"plant {' '.join(arguments)} failed with {done.returncode}:\n{done.stderr}"
        )
    return done.stdout


def plan(
    command: str, corpus: str, folder: Path, run: str | None, shards: int, further: list[str]
) -> tuple[list[list[str]], list[str]]:
    """What `plant` does with each share, and at the end (nothing for convert: the folder of all
    shares is the corpus).
    """
    shares = [(str(number), f"{number}/{shards}") for number in range(1, shards + 1)]
    if command == "convert":
        return [
            ["data", "convert", corpus, str(folder), *further, "--shard", share, "--force"]
            for _, share in shares
        ], []
    if run is None:
        raise SystemExit("--command mig needs the run that gets the sum")
    counts = [
        ["mig", corpus, *further, "--shard", share, "--run", str(folder / name), "--force"]
        for name, share in shares
    ]
    return counts, [
        "mig",
        corpus,
        *further,
        "--merge",
        str(folder / "*" / "mig"),
        "--run",
        run,
        "--force",
    ]


def main() -> None:
    """Do all shares, then add them up."""
    from dask.distributed import Client, LocalCluster, as_completed

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("folder", type=Path, help="what comes of the shards")
    parser.add_argument("run", nargs="?", help="the run that gets the sum (mig)")
    parser.add_argument("--command", choices=("mig", "convert"), default="mig")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2, help="processes of this machine")
    parser.add_argument(
        "--scheduler", help="address of a Dask scheduler (default: workers of this machine)"
    )
    options, further = parser.parse_known_args()
    shares, last = plan(
        options.command, options.corpus, options.folder, options.run, options.shards, further
    )
    cluster = options.scheduler or LocalCluster(
        n_workers=options.workers, threads_per_worker=1, dashboard_address=None
    )
    with Client(cluster) as client:
        tasks = {
            client.submit(run_plant, arguments, pure=False): number
            for number, arguments in enumerate(shares, start=1)
        }
        for done in as_completed(tasks):
            done.result()
            print(f"shard {tasks[done]}/{options.shards} is done", file=sys.stderr)
        if last:
            print(client.submit(run_plant, last, pure=False).result())
    if options.scheduler is None:
        cluster.close()


if __name__ == "__main__":
    main()
