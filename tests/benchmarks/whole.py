"""From a corpus to ranked labels, end to end: `plant` beside what a user would pick instead, in one run.

`python -m tests.benchmarks.whole --corpus DIR [--json FILE]` trains on train and ranks the labels of validation (`--split test`: of test).
Systems: `plant` as it comes (mig, pretrain-attn, finetune, predict), one-vs-rest (LibMultiLabel's linear one where it is installed, else
LinearSVC of scikit-learn), Omikuji Parabel-like and Bonsai-like, TF-IDF nearest neighbours. Each is a process of its own, `plant` one for
each stage. Validation has chosen epochs, weights and thresholds of `plant`: its quality there flatters it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, save_npz

from plant_cli.evaluation.gold import read_gold
from plant_cli.runs.machine import peak_memory_gb
from tests.benchmarks import baselines
from tests.benchmarks.baselines import Features, Scored

STAGES = ("mig", "pretrain-attn", "finetune", "predict")
SHOWN = ("P@1", "P@5", "PSP@5")
BLOCK = 256  # documents whose scores for all labels are in memory at once


def train_one_vs_rest(features: Features, folder: Path) -> Scored:
    """A linear classifier with squared hinge loss for each label."""
    if importlib.util.find_spec("libmultilabel"):
        return _train_libmultilabel(features, folder)
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    model = OneVsRestClassifier(LinearSVC()).fit(features.train, features.gold)
    weights = np.stack([e.coef_[0] if hasattr(e, "coef_") else np.zeros(features.train.shape[1]) for e in model.estimators_])
    save_npz(folder / "model.npz", csr_matrix(weights))
    return _best(features.test, lambda rows: model.decision_function(rows))


def _train_libmultilabel(features: Features, folder: Path) -> Scored:
    from libmultilabel import linear

    threads = os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0))
    x, y = csr_matrix(features.train), csr_matrix(features.gold)
    model = linear.train_1vsrest(y, x, options=f"-s 1 -B 1 -e 0.0001 -m {threads}", verbose=False)
    linear.save_pipeline(str(folder), None, model)
    return _best(features.test, lambda rows: linear.predict_values(model, csr_matrix(rows)))


def _best(documents: csr_array, score: Callable[[csr_array], Any]) -> Scored:
    found: Scored = []
    for start in range(0, documents.shape[0], BLOCK):
        scores = np.asarray(score(documents[start : start + BLOCK]))
        order = np.argsort(-scores, axis=1, kind="stable")[:, : baselines.KEPT]
        found += [[(int(label), float(row[label])) for label in labels] for labels, row in zip(order, scores, strict=True)]
    return found


def find_neighbours(features: Features, folder: Path) -> Scored:
    """What the neighbours need is all of train."""
    save_npz(folder / "train.npz", csr_matrix(features.train))
    save_npz(folder / "gold.npz", csr_matrix(features.gold))
    return baselines.vote_of_neighbours(features)


TOOLS: dict[str, Callable[[Features, Path], Scored]] = {
    "one-vs-rest": train_one_vs_rest,
    "omikuji-parabel": lambda features, folder: baselines.grow_trees(features, folder),
    "omikuji-bonsai": lambda features, folder: baselines.grow_trees(features, folder, cluster_balanced=False, cluster_k=100, max_depth=3),
    "neighbours": find_neighbours,
}
SYSTEMS = ("plant", *TOOLS)


def run_tool(name: str, corpus: Path, split: str, work: Path) -> dict[str, Any]:
    """Train and predict here; reading the corpus counts, as it does for `plant`."""
    began, processor = time.perf_counter(), time.process_time()
    opened = baselines.open_corpus(corpus, work)
    asked = opened.split(split)
    model = work / "model"
    model.mkdir()
    scored = TOOLS[name](baselines.extract(opened.split("train"), asked), model)
    baselines.write(work / "predictions.parquet", scored, asked.doc_ids, opened.labels.ids)
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - processor,
        "peak_gb": peak_memory_gb(),
        "disk_mb": size_mb(model),
    }


def run_plant(corpus: Path, split: str, work: Path, sets: Sequence[str]) -> dict[str, Any]:
    """Every stage as a user starts it; a model's size is that of the folder `finetune` without checkpoints."""
    run, stages = work / "run", {}
    given = [part for pair in (f"data.path={corpus.absolute()}", f"predict.split={split}", *sets) for part in ("--set", pair)]
    for stage in STAGES:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "plant_cli", stage, "--run", str(run), "--quiet", *given], stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"plant {stage} failed")
        record = json.loads((run / stage / "stage.json").read_text("utf-8"))
        stages[stage] = {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": used.ru_utime + used.ru_stime,
            "peak_gb": record["peak_memory_gb"],
        }
    planted = json.loads((run / "pretrain-attn" / "stage.json").read_text("utf-8"))["summary"]
    (work / "predictions.parquet").write_bytes((run / "predict" / "predictions.parquet").read_bytes())
    return {
        **{key: sum(found[key] for found in stages.values()) for key in ("seconds", "cpu_seconds")},
        "peak_gb": max(found["peak_gb"] for found in stages.values()),
        "disk_mb": size_mb(run / "finetune", without="checkpoints"),
        "run_disk_mb": size_mb(run),
        "reading_seconds": planted["cache_seconds"],
        "stages": stages,
    }


def size_mb(folder: Path, without: str | None = None) -> float:
    """Of all files below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and without not in path.relative_to(folder).parts)
    return sum(path.stat().st_size for path in files) / 1e6


def measure_system(name: str, options: argparse.Namespace, corpus: Path, work: Path) -> dict[str, Any]:
    """Figures of a system, the quality of its predictions included."""
    work.mkdir(parents=True)
    if name == "plant":
        found = run_plant(corpus, options.split, work, options.set)
    else:
        command = [sys.executable, "-m", "tests.benchmarks.whole", "--corpus", str(corpus), "--split", options.split, "--work", str(work)]
        done = subprocess.run([*command, "--part", name], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr[-4000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
    gold = read_gold(baselines.open_corpus(corpus, work / "gold"), options.split)
    return {**found, **baselines.measure(work / "predictions.parquet", gold)}


def show(results: Mapping[str, Mapping[str, Any]], split: str) -> None:
    """The table."""
    print(f"quality on {split}\n{'':18}{'seconds':>10}{'cpu s':>10}{'peak GB':>10}{'MB on disk':>12}" + "".join(f"{n:>8}" for n in SHOWN))
    for name, found in results.items():
        figures = f"{found['seconds']:10.1f}{found['cpu_seconds']:10.1f}{found['peak_gb']:10.2f}{found['disk_mb']:12.1f}"
        print(f"{name:18}{figures}" + "".join(f"{found[metric]:8.1f}" for metric in SHOWN))
        for stage, spent in found.get("stages", {}).items():
            print(f"  {stage:16}{spent['seconds']:10.1f}{spent['cpu_seconds']:10.1f}{spent['peak_gb']:10.2f}")
        if found.get("reading_seconds") is not None:
            print(f"  {'(encoder reads)':16}{found['reading_seconds']:10.1f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.whole", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="a folder of train, validation and test")
    parser.add_argument("--split", choices=["validation", "test"], default="validation", help="whose labels are ranked")
    parser.add_argument("--system", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="options of plant (default: as it comes)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--part", choices=list(TOOLS), help="run this tool here and print its figures")
    parser.add_argument("--work", type=Path, help="where --part leaves its predictions")
    options = parser.parse_args(arguments)
    if options.part:
        print(json.dumps(run_tool(options.part, options.corpus, options.split, options.work)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        results = {name: measure_system(name, options, options.corpus, Path(scratch) / "work" / name) for name in options.system}
    show(results, options.split)
    linear = "LibMultiLabel" if importlib.util.find_spec("libmultilabel") else "scikit-learn"
    print(f"one-vs-rest is that of {linear}")
    if options.json:
        machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, {platform.system()}"
        rest = {"split": options.split, "set": options.set, "one_vs_rest": linear, "machine": machine}
        options.json.write_text(json.dumps({"systems": results, **rest}, indent=2) + "\n")


if __name__ == "__main__":
    main()
