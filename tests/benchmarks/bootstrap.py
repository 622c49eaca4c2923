"""All metrics with 1,000 resamples: ours beside redrawing the documents, scikit-learn's F1 alone, and the bound, in one run.

`python -m tests.benchmarks.bootstrap --scale small|target --json FILE`. The others are timed on 3 resamples and multiplied up.
The bound is the product of the per-label counters with the weights, with nothing computed from it. Peak memory is that of our
part, inputs included: it is read before the others begin.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import plant_metrics.plugin
from scipy.sparse import csr_array, csr_matrix
from sklearn.metrics import f1_score

from plant_cli.api import MetricInput
from plant_cli.evaluation.bootstrap import Sums, draw_weights
from plant_cli.evaluation.score import evaluate
from plant_cli.kit.metrics import count_assignments

SPECS = plant_metrics.plugin.plant_register_metrics()
REPLICATES = 1000
TIMED = 3


@dataclass(frozen=True)
class Scale:
    """Documents, labels, predictions a document, and gold labels a document at most."""

    documents: int
    labels: int
    predictions: int
    gold: int


SCALES = {"small": Scale(1_000, 500, 50, 5), "target": Scale(20_000, 8_000, 200, 15)}


def draw(scale: Scale, generator: np.random.Generator) -> MetricInput:
    """Zipf-distributed gold, and predictions that begin with half of it."""
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
        unseen=np.zeros(scale.documents, dtype=np.int64),
        train_counts=counts,
        train_documents=3 * scale.documents,
        threshold=assigned,
    )


def redraw(data: MetricInput, generator: np.random.Generator) -> MetricInput:
    """The data with documents drawn with replacement."""
    rows = generator.integers(0, len(data.top), len(data.top))
    return replace(data, top=data.top[rows], scores=data.scores[rows], gold=csr_array(data.gold[rows]), unseen=data.unseen[rows])


def score_by_peer(data: MetricInput) -> None:
    """micro-F1 and macro-F1 by scikit-learn."""
    assigned = csr_matrix(count_assignments(data)[:, data.gold.shape[1] : 2 * data.gold.shape[1]])
    gold = csr_matrix(data.gold)
    for average in ("micro", "macro"):
        f1_score(gold, assigned, average=average, zero_division=0)


def measure_bound(data: MetricInput) -> None:
    """The weighted counters of all resamples."""
    sums, generator = Sums([count_assignments(data)]), np.random.default_rng(0)
    for block in sums.block_sizes(REPLICATES):
        sums.weigh(draw_weights(sums.documents, block, generator))


def clock(work: Callable[[], object]) -> float:
    """Seconds that the work takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    generator = np.random.default_rng(0)
    data = draw(SCALES[arguments.scale], generator)
    seconds = clock(lambda: evaluate(data, SPECS, replicates=REPLICATES, generator=generator))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    plain = clock(lambda: [evaluate(redraw(data, generator), SPECS, generator=generator) for _ in range(TIMED)])
    peer = clock(lambda: [score_by_peer(redraw(data, generator)) for _ in range(TIMED)])
    result = {
        "seconds": seconds,
        "reference_seconds": plain * REPLICATES / TIMED,
        "peer_seconds": peer * REPLICATES / TIMED,
        "bound_seconds": clock(lambda: measure_bound(data)),
        "peak_gb": peak,
        "machine": f"{platform.machine()}, {platform.processor() or platform.system()}",
    }
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
