"""What a text costs that is labelled by scorers, by words and labels: generated corpora of three
shapes, from which the slopes of `plant plan --documents` come.

    python -m tests.benchmarks.labelling /tmp/labelling --json FILE [--shape words]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import polars as pl

from tests.benchmarks.scale import Size, make, measure_commands

SHAPES = {  # more than 50,000 train, so that scorers know words alone, as of larger corpora
    "few": Size(54_000, 10_000, 50, 4.0),
    "words": Size(54_000, 10_000, 200, 4.0),
    "labels": Size(54_000, 60_000, 50, 4.0),
}
TEXTS = (1_000, 6_000)  # the second number without the first is what texts take, and no start


def measure(folder: Path, size: Size) -> dict[str, float]:
    """Processor seconds and memory of fitting, and of labelling; the model on disk in GB."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus, run, log = make(folder, size), folder / "run", folder / "log"
    plant = [sys.executable, "-m", "plant_cli"]
    commands = [[*plant, "finetune", str(corpus), "--no-network", "--run", str(run), "--force"]]
    for count in TEXTS:
        texts = folder / f"{count}.parquet"
        pl.scan_parquet(corpus).select("doc_id", "text").head(count).sink_parquet(texts)
        output = str(folder / f"{count}.labels.parquet")
        commands.append([*plant, "suggest", str(texts), "--run", str(run), "-O", output, "--force"])
    fit, small, large = (measure_commands([one], log)[0] for one in commands)
    model = sum(one.stat().st_size for one in run.rglob("*") if one.is_file())
    seconds = (large["processor_seconds"] - small["processor_seconds"]) / (TEXTS[1] - TEXTS[0])
    written = (folder / f"{TEXTS[1]}.labels.parquet").stat().st_size
    return {
        "fit_seconds": fit["processor_seconds"],
        "fit_gb": fit["peak_gb"],
        "ms_a_text": 1000 * seconds,
        "worker_gb": large["peak_gb"],
        "model_gb": model / 1e9,
        "bytes_of_labels_a_text": written / TEXTS[1],
        "codes": fit["code"] + small["code"] + large["code"],
    }


def main() -> None:
    """Measure the shapes, one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    for name in options.shape or SHAPES:
        found[name] = measure(options.folder / name, SHAPES[name])
        print(name, {key: round(value, 3) for key, value in found[name].items()}, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
