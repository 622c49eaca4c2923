"""Count a very large corpus with Dask: each task counts one share of the documents with `plant mig --shard`, and one adds them up.

    pip install 'plant-cli[cluster]'
    python dask_shards.py /data/corpus.parquet /scratch/shards /scratch/run --shards 8 --workers 2
    python dask_shards.py /data/corpus.parquet /scratch/shards /scratch/run --shards 8 --scheduler tcp://head:8786

Without `--scheduler` the workers are processes of this machine. All workers must see the corpus and the two folders, and have `plant`
installed. Further options are those of `plant mig`, such as `--k 100`; `--memory` is for each worker.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def run_plant(arguments: list[str]) -> str:
    """Run `plant` on a worker; what it says, if it fails, is the error."""
    done = subprocess.run([sys.executable, "-m", "plant_cli", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"plant {' '.join(arguments)} failed with {done.returncode}:\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Count all shards, then add them up."""
    from dask.distributed import Client, LocalCluster, as_completed

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("folder", type=Path, help="the counts of the shards")
    parser.add_argument("run", help="the run that gets the sum")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2, help="processes of this machine")
    parser.add_argument("--scheduler", help="address of a Dask scheduler (default: workers of this machine)")
    options, further = parser.parse_known_args()
    cluster = options.scheduler or LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None)
    with Client(cluster) as client:
        numbers = range(1, options.shards + 1)
        given = [
            ["mig", options.corpus, *further, "--shard", f"{n}/{options.shards}", "--run", str(options.folder / str(n)), "--force"]
            for n in numbers
        ]
        tasks = {client.submit(run_plant, arguments, pure=False): number for number, arguments in zip(numbers, given, strict=True)}
        for done in as_completed(tasks):
            done.result()
            print(f"shard {tasks[done]}/{options.shards} is counted", file=sys.stderr)
        merged = ["mig", options.corpus, *further, "--merge", str(options.folder / "*" / "mig"), "--run", options.run, "--force"]
        print(client.submit(run_plant, merged, pure=False).result())
    if options.scheduler is None:
        cluster.close()


if __name__ == "__main__":
    main()
