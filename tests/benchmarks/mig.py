"""Exact mutual information of every label and word: ours beside a plain reference and the bound, in
one run.

`python -m tests.benchmarks.mig --scale small|M3|131K --json FILE`. Words and labels are Zipf
distributed. Every contender runs in a process of its own, on the same matrices, so that its peak
memory is its own (the matrices included). The bound is the counting alone: the sparse product of
labels and words, in the same blocks on the same threads, with nothing kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

if TYPE_CHECKING:
    from plant_cli.relevance.cooccurrence import Terms

K = 1000
MEMORY = 2_000_000_000


@dataclass(frozen=True)
class Scale:
    """Size of a corpus: the draws are before repeats fall together."""

    documents: int
    words: int
    labels: int
    words_drawn: int
    labels_drawn: int


SCALES = {
    "small": Scale(2_000, 5_000, 400, 250, 8),
    "M3": Scale(52_722, 50_000, 8_929, 1_150, 17),
    "131K": Scale(100_000, 100_000, 131_073, 150, 6),
}


def draw(rows: int, columns: int, mean: int, generator: np.random.Generator) -> csr_array:
    """A 0/1 matrix whose column frequencies follow Zipf's law, columns by falling frequency."""
    shares = 1.0 / (np.arange(columns) + 2.7)
    lengths = np.maximum(1, generator.poisson(mean, rows))
    drawn = np.searchsorted(
        np.cumsum(shares / shares.sum()), generator.random(int(lengths.sum()))
    ).clip(max=columns - 1)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    matrix = csr_array(
        (np.ones(len(drawn), dtype=np.int32), drawn.astype(np.int32), ends.astype(np.int32)),
        shape=(rows, columns),
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1
    matrix = csr_array(
        matrix[:, np.argsort(-np.bincount(matrix.indices, minlength=columns), kind="stable")]
    )
    matrix.sort_indices()
    return matrix


def terms_of(words: csr_array) -> Terms:
    """What the reading of the documents gives; the reference has it before its clock starts,
    too.
    """
    from plant_cli.relevance.cooccurrence import Terms

    names = tuple(f"w{i:06d}" for i in range(words.shape[1]))
    return Terms(
        words=names,
        occurrences=words,
        docs_with_word=np.bincount(words.indices, minlength=words.shape[1]),
    )


def run_ours(
    words: csr_array, gold: csr_array, jobs: int, sign: Any = "positive"
) -> dict[str, float]:
    from plant_cli.relevance.cooccurrence import MemoryCounts
    from plant_cli.relevance.engine import Selection, Signal, keep_words
    from plant_cli.relevance.mutual_information import mutual_information

    terms, signal = terms_of(words), Signal(score=mutual_information, quasi_convex=True)
    start = time.perf_counter()
    blocks = keep_words(
        MemoryCounts(terms, gold), signal, Selection(k=K, sign=sign, memory=MEMORY, jobs=jobs)
    )
    kept = sum(len(block.words) for block in blocks)
    return {"seconds": time.perf_counter() - start, "kept": kept}


def run_bound(words: csr_array, gold: csr_array, jobs: int) -> dict[str, float]:
    by_label = csr_array(gold.T.astype(np.int32))
    cuts = np.unique(np.linspace(0, gold.shape[1], gold.shape[1] // 8).astype(int)).tolist()
    start = time.perf_counter()
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        pairs = sum(
            pool.map(lambda ends: (by_label[ends[0] : ends[1]] @ words).nnz, pairwise(cuts))
        )
    return {"seconds": time.perf_counter() - start, "pairs": pairs}


def run_reference(words: csr_array, gold: csr_array, jobs: int) -> dict[str, float]:
    """Dense blocks of labels, four logarithms a pair, a partition per block; at most 256 labels
    are timed and the rest extrapolated.
    """
    documents, n_w = (
        words.shape[0],
        np.bincount(words.indices, minlength=words.shape[1]).astype(np.float64),
    )
    timed = np.random.default_rng(0).permutation(gold.shape[1])[:256]
    by_label = csr_array(gold.T.astype(np.int32))
    start = time.perf_counter()
    for first in range(0, len(timed), 32):
        block = csr_array(by_label[timed[first : first + 32]])
        both = (block @ words).toarray().astype(np.float64)
        n_l = np.diff(block.indptr)[:, None].astype(np.float64)
        gain = np.zeros_like(both)
        for pair, row, column in [
            (both, n_l, n_w),
            (n_l - both, n_l, documents - n_w),
            (n_w - both, documents - n_l, n_w),
            (documents - n_l - n_w + both, documents - n_l, documents - n_w),
        ]:
            with np.errstate(divide="ignore", invalid="ignore"):
                gain += np.where(
                    pair > 0, pair / documents * np.log(pair * documents / (row * column)), 0.0
                )
        np.argpartition(-np.where(both * documents > n_l * n_w, gain, 0.0), K, axis=1)
    return {
        "seconds": (time.perf_counter() - start) * gold.shape[1] / len(timed),
        "timed_labels": len(timed),
    }


PARTS: dict[str, Callable[..., dict[str, float]]] = {
    "bound": run_bound,
    "ours": run_ours,
    "ours-any": lambda words, gold, jobs: run_ours(words, gold, jobs, "any"),
    "reference": run_reference,
}


def draw_corpus(scale: Scale, folder: Path) -> None:
    """Draw the two matrices and write them for the contenders."""
    generator = np.random.default_rng(0)
    words = draw(scale.documents, scale.words, scale.words_drawn, generator)
    gold = draw(scale.documents, scale.labels, scale.labels_drawn, generator)
    save_npz(folder / "words.npz", words, compressed=False)
    save_npz(folder / "gold.npz", gold, compressed=False)
    print(
        f"{scale.documents} documents, {words.nnz / scale.documents:.0f} words and "
        f"{gold.nnz / scale.documents:.1f} labels each"
    )


def run_part(name: str, folder: Path, jobs: int) -> None:
    """Run one contender here and print its figures as JSON."""
    matrices = (csr_array(load_npz(folder / f"{kind}.npz")) for kind in ("words", "gold"))
    before = time.process_time()
    figures = PARTS[name](*matrices, jobs)
    cpu = time.process_time() - before
    print(
        json.dumps(
            {
                **figures,
                "cpu_seconds": cpu,
                "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
            }
        )
    )


def compare(scale: str, jobs: int) -> dict[str, dict[str, float]]:
    """Every contender, one after the other, each in its own process; this one stays small, for
    a child inherits the peak.
    """
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "tests.benchmarks.mig",
            "--scale",
            scale,
            "--folder",
            folder,
            "--jobs",
            str(jobs),
            "--part",
        ]
        subprocess.run([*command, "draw"], check=True)
        for part in PARTS:
            done = subprocess.run([*command, part], check=True, stdout=subprocess.PIPE, text=True)
            figures[part] = json.loads(done.stdout)
            print(
                "{:10} {seconds:12.2f} s {cpu_seconds:8.2f} s of CPU {peak_gb:6.2f} GB".format(
                    part, **figures[part]
                ),
                flush=True,
            )
    return figures


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", choices=[*PARTS, "draw"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part == "draw":
        draw_corpus(SCALES[arguments.scale], arguments.folder)
        return
    if arguments.part:
        run_part(arguments.part, arguments.folder, arguments.jobs)
        return
    figures = compare(arguments.scale, arguments.jobs)
    machine = (
        f"{platform.processor() or platform.machine()}, {arguments.jobs} threads, numpy "
        f"{np.__version__}"
    )
    report = {"scale": arguments.scale, "machine": machine, **figures}
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
