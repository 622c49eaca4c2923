"""From a corpus to ranked labels, end to end: `plant` beside what a user would pick instead, in one
run.

`python -m tests.benchmarks.whole --corpus DIR [DIR …] [--json FILE] [--table FILE]` trains on train
and ranks the labels of validation (`--split test`: of test). Systems: `plant` as it comes (mig,
pretrain-attn, finetune, predict) and without a network, one-vs-rest (LibMultiLabel's linear one
where it is installed, else LinearSVC of scikit-learn), Omikuji Parabel-like and Bonsai-like,
napkinXC's PLT, PECOS XR-Linear, TF-IDF nearest neighbours, Annif's ensemble. Each is a process of
its own, `plant` and Annif one for each command. What the file of `--json` has is not measured
again; it is written after each system. Validation has chosen epochs, weights and thresholds of
`plant`: its quality there flatters it.
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
from tests.benchmarks import annif, baselines
from tests.benchmarks.baselines import Features, Scored

STAGES = ("mig", "pretrain-attn", "finetune", "predict")
SHOWN = ("P@1", "P@5", "PSP@5", "R@10", "R@10[1-5]")
COSTS = ("seconds", "cpu_seconds", "peak_gb", "disk_mb")
BINS = (("1-5", 1, 5),)
BLOCK = 256  # documents whose scores for all labels are in memory at once


def train_one_vs_rest(features: Features, folder: Path) -> Scored:
    """A linear classifier with squared hinge loss for each label."""
    if importlib.util.find_spec("libmultilabel"):
        return _train_libmultilabel(features, folder)
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    model = OneVsRestClassifier(LinearSVC()).fit(features.train, features.gold)
    weights = np.stack(
        [
            e.coef_[0] if hasattr(e, "coef_") else np.zeros(features.train.shape[1])
            for e in model.estimators_
        ]
    )
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
        found += [
            [(int(label), float(row[label])) for label in labels]
            for labels, row in zip(order, scores, strict=True)
        ]
    return found


def find_neighbours(features: Features, folder: Path) -> Scored:
    """What the neighbours need is all of train."""
    save_npz(folder / "train.npz", csr_matrix(features.train))
    save_npz(folder / "gold.npz", csr_matrix(features.gold))
    return baselines.vote_of_neighbours(features)


def grow_probabilistic_tree(features: Features, folder: Path) -> Scored:
    """NapkinXC's probabilistic label tree, as it comes."""
    from napkinxc.models import PLT

    model = PLT(str(folder))
    labels = [own.tolist() for own in np.split(features.gold.indices, features.gold.indptr[1:-1])]
    model.fit(csr_matrix(features.train), labels)
    scored: Scored = model.predict_proba(csr_matrix(features.test), top_k=baselines.KEPT)
    return scored


def rank_by_clusters(features: Features, folder: Path) -> Scored:
    """PECOS XR-Linear on hierarchical clusters of labels by the mean of their documents (PIFA),
    as its manual has it.
    """
    from pecos.utils import smat_util
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    smat_util.cs_matrix = lambda cells, kind, shape, dtype, copy: kind(
        cells, shape, dtype, copy
    )  # that of PECOS 1.2 needs NumPy 1
    train, gold = (
        csr_matrix(features.train, dtype=np.float32),
        csr_matrix(features.gold, dtype=np.float32),
    )
    clusters = Indexer.gen(
        LabelEmbeddingFactory.create(gold, train, method="pifa"), indexer_type="hierarchicalkmeans"
    )
    model = XLinearModel.train(train, gold, C=clusters)
    model.save(str(folder))
    return baselines.list_best(
        csr_array(
            model.predict(csr_matrix(features.test, dtype=np.float32), only_topk=baselines.KEPT)
        )
    )


TOOLS: dict[str, Callable[[Features, Path], Scored]] = {
    "one-vs-rest": train_one_vs_rest,
    "omikuji-parabel": lambda features, folder: baselines.grow_trees(features, folder),
    "omikuji-bonsai": lambda features, folder: baselines.grow_trees(
        features, folder, cluster_balanced=False, cluster_k=100, max_depth=3
    ),
    "napkinxc-plt": grow_probabilistic_tree,
    "pecos-xr-linear": rank_by_clusters,
    "neighbours": find_neighbours,
}
PLANT = {"plant": STAGES, "plant-without-network": STAGES[-2:]}
ANNIF = "annif-ensemble"
SYSTEMS = (*PLANT, *TOOLS, ANNIF)
PACKAGES = {"napkinxc-plt": "napkinxc", "pecos-xr-linear": "pecos"}
NAMES = {
    "plant": "`plant`, four commands",
    "plant-without-network": "`plant finetune --no-network`, `predict`",
    "omikuji-parabel": "Omikuji, Parabel-like",
    "omikuji-bonsai": "Omikuji, Bonsai-like",
    "napkinxc-plt": "napkinXC, PLT",
    "pecos-xr-linear": "PECOS XR-Linear",
    "neighbours": "nearest neighbours",
    ANNIF: "Annif, ensemble of TF-IDF, MLLM and Omikuji",
}


def find_missing(name: str) -> str | None:
    """What a system needs and is not installed."""
    if name == ANNIF:
        return None if annif.is_installed() else f"the command {annif.COMMAND}"
    return None if importlib.util.find_spec(PACKAGES.get(name, "plant_cli")) else PACKAGES[name]


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


def run_annif(corpus: Path, split: str, work: Path) -> dict[str, Any]:
    """Every command as a user starts it; files are written for it beforehand."""
    opened = baselines.open_corpus(corpus, work)
    asked, project = opened.split(split), work / "annif"
    project.mkdir()
    scored, spent = annif.train_and_ask(opened, asked, project)
    baselines.write(work / "predictions.parquet", scored, asked.doc_ids, opened.labels.ids)
    return {**spent, "disk_mb": size_mb(project / "data")}


def run_plant(
    name: str, corpus: Path, split: str, work: Path, sets: Sequence[str]
) -> dict[str, Any]:
    """Every stage as a user starts it; a model's size is that of the folder `finetune` without
    checkpoints.
    """
    run, stages = work / "run", {}
    given = [
        part
        for pair in (f"data.path={corpus.absolute()}", f"predict.split={split}", *sets)
        for part in ("--set", pair)
    ]
    given += [] if "mig" in PLANT[name] else ["--set", "finetune.network=false"]
    for stage in PLANT[name]:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "plant_cli", stage, "--run", str(run), "--quiet", *given],
            stdout=subprocess.DEVNULL,
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
    planted = run / "pretrain-attn" / "stage.json"
    (work / "predictions.parquet").write_bytes(
        (run / "predict" / "predictions.parquet").read_bytes()
    )
    return {
        **{key: sum(found[key] for found in stages.values()) for key in ("seconds", "cpu_seconds")},
        "peak_gb": max(found["peak_gb"] for found in stages.values()),
        "disk_mb": size_mb(run / "finetune", without="checkpoints"),
        "run_disk_mb": size_mb(run),
        "reading_seconds": json.loads(planted.read_text("utf-8"))["summary"]["cache_seconds"]
        if planted.exists()
        else None,
        "stages": stages,
    }


def size_mb(folder: Path, without: str | None = None) -> float:
    """Of all files below a folder."""
    files = (
        path
        for path in folder.rglob("*")
        if path.is_file() and without not in path.relative_to(folder).parts
    )
    return sum(path.stat().st_size for path in files) / 1e6


def measure_system(
    name: str, options: argparse.Namespace, corpus: Path, work: Path
) -> dict[str, Any]:
    """Figures of a system, the quality of its predictions included; why there are none, if it
    failed.
    """
    work.mkdir(parents=True)
    if name in PLANT:
        found = run_plant(name, corpus, options.split, work, options.set)
    elif name == ANNIF:
        found = run_annif(corpus, options.split, work)
    else:
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.whole",
            "--corpus",
            str(corpus),
            "--split",
            options.split,
            "--work",
            str(work),
        ]
        done = subprocess.run(
            [*command, "--part", name], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return {"failed": f"{name} failed ({done.returncode}):\n{done.stderr[-2000:]}"}
        found = json.loads(done.stdout.splitlines()[-1])
    gold = read_gold(baselines.open_corpus(corpus, work / "gold"), options.split)
    return {
        **found,
        **baselines.measure(work / "predictions.parquet", gold, (*baselines.BINS, *BINS)),
    }


def show(corpus: str, results: Mapping[str, Mapping[str, Any]], split: str) -> None:
    """The table."""
    header = f"{'seconds':>10}{'cpu s':>10}{'peak GB':>10}{'MB on disk':>12}" + "".join(
        f"{n:>11}" for n in SHOWN
    )
    print(f"{corpus}, quality on {split}\n{'':22}{header}")
    for name, found in results.items():
        if "failed" in found:
            print(found["failed"])
            continue
        figures = f"{found['seconds']:10.1f}{found['cpu_seconds']:10.1f}{found['peak_gb']:10.2f}{found['disk_mb']:12.1f}"
        print(
            f"{name:22}{figures}"
            + "".join(f"{found.get(metric, np.nan):11.1f}" for metric in SHOWN)
        )
        for stage, spent in found.get("stages", {}).items():
            print(
                "  "
                f"{stage:20}{spent['seconds']:10.1f}{spent['cpu_seconds']:10.1f}{spent['peak_gb']:10.2f}"
            )
        if found.get("reading_seconds") is not None:
            print(f"  {'(encoder reads)':20}{found['reading_seconds']:10.1f}")


def make_table(found: Mapping[str, Any]) -> dict[str, Any]:
    """The figures as `docs/results` has them."""
    rows = []
    for corpus, systems in found["corpora"].items():
        measured = {name: row for name, row in systems.items() if "failed" not in row}
        for number, (name, row) in enumerate(measured.items()):
            costs = [f"{row[cost]:.{0 if row[cost] >= 10 else 1}f}" for cost in COSTS]
            quality = [f"{row[metric]:.1f}" if metric in row else "" for metric in SHOWN]
            rows.append(
                [
                    "" if number else corpus,
                    NAMES.get(name, f"{name} ({found['one_vs_rest']})"),
                    *costs,
                    *quality,
                ]
            )
    return {
        "title": "Without a network, beside tools that a user would pick",
        "date": found["date"],
        "convention": "Wall-clock and processor seconds from file to ranked labels, beside other work; "
        f"quality on {found['split']}.",
        "seeds": 1,
        "columns": [
            "corpus",
            "system",
            "seconds",
            "processor seconds",
            "peak GB",
            "MB on disk",
            *SHOWN,
        ],
        "rows": rows,
        "note": "",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.whole", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        nargs="+",
        required=True,
        help="folders of train, validation and test, or files with a split",
    )
    parser.add_argument(
        "--split",
        choices=["validation", "test"],
        default="validation",
        help="whose labels are ranked",
    )
    parser.add_argument("--system", choices=SYSTEMS, nargs="+", default=list(SYSTEMS))
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="options of plant (default: as it comes)",
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="write the figures to this file; what it has is not measured again",
    )
    parser.add_argument("--table", type=Path, help="write a table as docs/results has them")
    parser.add_argument(
        "--part", choices=list(TOOLS), help="run this tool here and print its figures"
    )
    parser.add_argument("--work", type=Path, help="where --part leaves its predictions")
    options = parser.parse_args(arguments)
    if options.part:
        print(json.dumps(run_tool(options.part, options.corpus[0], options.split, options.work)))
        return
    linear = "LibMultiLabel" if importlib.util.find_spec("libmultilabel") else "scikit-learn"
    found: dict[str, Any] = {
        "split": options.split,
        "set": options.set,
        "one_vs_rest": linear,
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"{platform.system()}",
        "date": time.strftime("%Y-%m-%d"),
        "corpora": json.loads(options.json.read_text())["corpora"]
        if options.json and options.json.exists()
        else {},
    }
    for corpus in options.corpus:
        label = f"{corpus.parent.name}, {corpus.stem}" if corpus.is_file() else corpus.name
        systems = found["corpora"].setdefault(label, {})
        for name in (name for name in options.system if "seconds" not in systems.get(name, {})):
            if missing := find_missing(name):
                print(f"{name}: {missing} is not installed")
                continue
            with tempfile.TemporaryDirectory() as scratch:
                systems[name] = measure_system(name, options, corpus, Path(scratch) / "work")
            if options.json:
                options.json.write_text(json.dumps(found, indent=2) + "\n")
        show(label, systems, options.split)
    print(f"one-vs-rest is that of {linear}")
    if options.table:
        options.table.write_text(
            json.dumps(make_table(found), indent=2, ensure_ascii=False) + "\n", "utf-8"
        )


if __name__ == "__main__":
    main()
