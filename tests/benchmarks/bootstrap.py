"""All metrics with 1,000 resamples: ours beside redrawing the documents, scikit-learn, and the bound, in one run.

`python -m tests.benchmarks.bootstrap --scale small|target --json FILE`. Scores lie in a memory-mapped file. The others are timed on
3 resamples and multiplied up, scikit-learn's AUC on every 16th label of them. `seconds` is every metric with both AUC, `micro_auc_seconds`
micro-AUC alone; scikit-learn (`peer`) computes micro-F1, macro-F1 and macro-AUC, and `same_seconds` is ours for these three. The bound is
the product of the per-label counters with the weights, with nothing computed from it. Every time has its `cpu_seconds`, of all cores
together, which other work on the machine disturbs less. Peak memory is that of our part, inputs and mapped pages included: it is read
before the others begin.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import plant_metrics
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics import f1_score, roc_auc_score

from plant_cli.api import MetricInput
from plant_cli.evaluation.bootstrap import Sums, draw_weights
from plant_cli.evaluation.counters import Floats, ScoreTable, count_assignments
from plant_cli.evaluation.measures import evaluate

FAMILIES = [(spec, spec.options()) for spec in plant_metrics.plant_register_metrics()]
REPLICATES = 1000
TIMED = 3
SAMPLED = 16
MEMORY = 10**9
SAME = ("micro-F1", "macro-F1", "macro-AUC")


@dataclass(frozen=True)
class Scale:
    """Documents, labels, predictions a document, and gold labels a document at most."""

    documents: int
    labels: int
    predictions: int
    gold: int


SCALES = {"small": Scale(1_000, 500, 50, 5), "target": Scale(20_000, 8_000, 200, 15)}


def draw(scale: Scale, generator: np.random.Generator, folder: Path) -> MetricInput:
    """Zipf-distributed gold, predictions that begin with half of it, and scores under which macro-AUC is about 0.92."""
    shares = 1.0 / np.arange(1, scale.labels + 1)
    drawn = generator.choice(scale.labels, (scale.documents, scale.gold), p=shares / shares.sum())
    rows = np.repeat(np.arange(scale.documents), scale.gold)
    gold = csr_array((np.ones(rows.size, dtype=np.int64), (rows, drawn.ravel())), shape=(scale.documents, scale.labels))
    gold.sum_duplicates()
    gold.data[:] = 1
    top = np.empty((scale.documents, scale.predictions), dtype=np.int64)
    for row in range(scale.documents):
        first = np.unique(drawn[row])[::2]
        rest = np.setdiff1d(generator.choice(scale.labels, scale.predictions, replace=False), first, assume_unique=True)
        top[row] = np.concatenate([first, rest])[: scale.predictions]
    scores = -np.sort(-generator.random(top.shape), axis=1)
    counts = np.asarray(gold.sum(axis=0), dtype=np.int64) * 3 + 1
    assigned = 1.0 - scale.gold / scale.predictions
    return MetricInput(
        top=top,
        scores=scores,
        gold=gold,
        train_counts=counts,
        train_documents=3 * scale.documents,
        threshold=assigned,
        all_scores=ScoreTable(values=draw_scores(gold, generator, folder / "scores.bin"), rows=np.arange(scale.documents), memory=MEMORY),
    )


def draw_scores(gold: csr_array, generator: np.random.Generator, path: Path, block: int = 1000) -> npt.NDArray[np.float32]:
    """Normal scores, two higher for gold, memory-mapped."""
    scores = np.memmap(path, dtype=np.float32, mode="w+", shape=gold.shape)
    for start in range(0, gold.shape[0], block):
        rows = slice(start, min(start + block, gold.shape[0]))
        scores[rows] = generator.standard_normal((rows.stop - start, gold.shape[1]), dtype=np.float32)
        scores[rows] += 2 * gold[rows].toarray()
    scores.flush()
    return scores


def redraw(data: MetricInput, generator: np.random.Generator) -> MetricInput:
    """The data with documents drawn with replacement."""
    rows = generator.integers(0, len(data.top), len(data.top))
    assert isinstance(data.all_scores, ScoreTable)
    return replace(
        data,
        top=data.top[rows],
        scores=data.scores[rows],
        gold=csr_array(data.gold[rows]),
        all_scores=replace(data.all_scores, rows=rows),
    )


def f1_by_peer(data: MetricInput, weights: Floats) -> dict[str, float]:
    """micro-F1 and macro-F1 of one resample by scikit-learn, documents weighted."""
    labels = data.gold.shape[1]
    assigned, gold = csr_matrix(count_assignments(data)[:, labels : 2 * labels]), csr_matrix(data.gold)
    return {
        f"{average}-F1": float(f1_score(gold, assigned, average=average, zero_division=0, sample_weight=weights))
        for average in ("micro", "macro")
    }


def auc_by_peer(data: MetricInput, weights: Floats, every: int = 1) -> float:
    """macro-AUC of one resample over every n-th label by scikit-learn, documents weighted."""
    assert data.all_scores is not None
    by_label, drawn = data.gold.tocsc(), weights.sum()
    areas = []
    for label in range(0, data.gold.shape[1], every):
        right = np.zeros(len(weights), dtype=bool)
        right[by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]] = True
        if 0 < weights[right].sum() < drawn:
            scores = data.all_scores.read(slice(None), slice(label, label + 1))
            areas.append(roc_auc_score(right, scores[:, 0], sample_weight=weights))
    return float(np.mean(areas))


def measure_bound(data: MetricInput) -> None:
    """The weighted counters of all resamples."""
    sums, generator = Sums([count_assignments(data)]), np.random.default_rng(0)
    for block in sums.block_sizes(REPLICATES):
        sums.weigh(draw_weights(sums.documents, block, generator))


Times = dict[str, float]


def clock(name: str, work: Callable[[], object], times: float = 1.0) -> Times:
    """Wall-clock and processor seconds of the work, multiplied up, under their keys."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    found = {f"{name}seconds": times * (time.perf_counter() - wall), f"{name}cpu_seconds": times * (time.process_time() - processor)}
    print(found, file=sys.stderr, flush=True)
    return found


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        result = measure(SCALES[arguments.scale], np.random.default_rng(0), Path(folder))
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(scale: Scale, generator: np.random.Generator, folder: Path) -> dict[str, float | str]:
    """Seconds, memory and the machine."""
    data = draw(scale, generator, folder)
    sums = list(evaluate(replace(data, all_scores=None), FAMILIES, generator=generator).scores)

    def ours(*names: str) -> Callable[[], object]:
        return lambda: evaluate(data, FAMILIES, wanted=names, replicates=REPLICATES, generator=generator)

    found = {**clock("", ours(*sums, "macro-AUC", "micro-AUC")), **clock("micro_auc_", ours("micro-AUC"))}
    found["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows, drawn, scale_up = range(TIMED), draw_weights(len(data.top), TIMED, generator), REPLICATES / TIMED
    found |= clock("same_", ours(*SAME)) | clock("bound_", lambda: measure_bound(data))
    f1 = clock("peer_", lambda: [f1_by_peer(data, weights) for weights in drawn], scale_up)
    auc = clock("peer_", lambda: [auc_by_peer(data, weights, SAMPLED) for weights in drawn], scale_up * SAMPLED)
    found |= {key: f1[key] + auc[key] for key in f1}
    wanted = [*sums, "macro-AUC"]
    found |= clock(
        "reference_", lambda: [evaluate(redraw(data, generator), FAMILIES, wanted=wanted, generator=generator) for _ in rows], scale_up
    )
    return {**found, "machine": f"{platform.machine()}, {platform.processor() or platform.system()}"}


if __name__ == "__main__":
    main()
