"""What scorers reach without a network, each alone and fused, on a corpus's validation split: the test split is never read.

`python -m tests.benchmarks.lexical --corpus DIR [--json FILE]` fits the scorers of `plant_scorers` with their defaults on train alone, as
`plant finetune --no-network` does. Fusion weights are learned from left-out scores of train, and, for comparison, by cross-validation
inside validation.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import plant_metrics
import polars as pl
from scipy.sparse import csr_array, vstack

from plant_cli.api import Choice, MetricInput, ScorerSpec, SilentReporter, Split
from plant_cli.data.labels import LabelTable
from plant_cli.data.word_analysis import WordAnalyser, choose_analyser
from plant_cli.evaluation.counters import choose, compute_families, compute_value
from plant_cli.evaluation.measures import measure_bins
from plant_cli.registry import installed
from plant_cli.scoring.fusion import ScoredPairs, fit_fusion, fuse
from plant_cli.scoring.scorer_fitting import FusionFit, fit_scorers
from plant_cli.scoring.sparse_scores import SparseScores

COLUMNS = ("P@1", "P@5", "PSP@1", "PSP@5", "R@50")
BINS = (("1-5", 1, 5),)
SCORERS = ("words", "titles", "neighbours", "linear")
FOLDS = 5

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Data:
    """Train, texts of validation and their labels, csr [N, L + U]: those that no training document has stand last."""

    train: Split
    labels: LabelTable
    texts: list[str]
    gold: csr_array
    train_counts: Ints


def read(folder: Path) -> Data:
    """Train and validation of a corpus; its test split is not opened."""
    train, validation = (pl.read_parquet(folder / f"{split}.parquet") for split in ("train", "validation"))
    titles = dict(pl.read_parquet(folder / "labels.parquet").select("label", "title").iter_rows())
    seen = sorted({label for labels in train["labels"] for label in labels})
    labels = seen + sorted({label for labels in validation["labels"] for label in labels} - set(seen))
    numbers = {label: at for at, label in enumerate(labels)}

    def encode(frame: pl.DataFrame, width: int) -> csr_array:
        pairs = [(row, numbers[label]) for row, given in enumerate(frame["labels"]) for label in given]
        rows, columns = np.array(pairs).T
        gold = csr_array((np.ones(len(pairs), dtype=np.int64), (rows, columns)), shape=(len(frame), width))
        gold.sort_indices()
        return gold

    gold = encode(train, len(seen))
    counts = np.bincount(gold.indices, minlength=len(labels))
    return Data(
        train=Split(
            name="train",
            doc_ids=[str(row) for row in range(len(train))],
            texts=train["text"].to_list(),
            gold=gold,
            unseen=csr_array((len(train), 0), dtype=np.int64),
        ),
        labels=LabelTable(ids=seen, titles=[titles.get(label) for label in seen], train_counts=counts[: len(seen)].tolist()),
        texts=validation["text"].to_list(),
        gold=encode(validation, len(labels)),
        train_counts=counts,
    )


def fit(data: Data) -> FusionFit:
    """The scorers, fitted on train."""
    chosen = [installed().resolve(ScorerSpec, Choice(name=name)) for name in SCORERS]
    analyser = WordAnalyser(choose_analyser("auto", data.train.texts, SilentReporter()))
    found = fit_scorers(chosen, data.train, data.labels, analyser, SilentReporter(), seed=0)
    assert found is not None
    return found


def fuse_by_validation(pairs: ScoredPairs, data: Data) -> SparseScores:
    """Validation fused with weights from the other four fifths of it."""
    labels, documents = len(data.labels), len(data.texts)
    counts, gold = data.train_counts[:labels], csr_array(data.gold[:, :labels])
    fold = np.random.default_rng(0).permutation(documents) % FOLDS
    parts = []
    for held_out in range(FOLDS):
        kept = fold[pairs.rows] != held_out
        others = replace(pairs, rows=pairs.rows[kept], labels=pairs.labels[kept], values=pairs.values[kept])
        parts.append(fuse(fit_fusion(others, gold, counts, left_out=False), pairs, counts))
    matrix = csr_array(vstack([part.matrix for part in parts], format="csr")[fold * documents + np.arange(documents)])
    floors = np.stack([part.floors for part in parts])[fold, np.arange(documents)]
    return SparseScores(matrix=matrix, floors=floors, groups=parts[0].groups)


def measure(scores: SparseScores, data: Data) -> dict[str, float]:
    """The columns on validation, in points."""
    top, values, _ = scores.top(100)
    given = MetricInput(
        top=top, scores=values.astype(np.float64), gold=data.gold, train_counts=data.train_counts, train_documents=len(data.train)
    )
    families = [(spec, spec.options()) for spec in plant_metrics.plant_register_metrics()]
    found = choose(compute_families(families, given, COLUMNS), COLUMNS, {}) + [
        metric for part in measure_bins(given, BINS) for metric in part.metrics if metric.name.startswith("R@")
    ]
    return {value.name: 100 * compute_value(value) for value in found}


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, score, fuse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.lexical", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder of train, validation and labels as Parquet")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    data = read(options.corpus)
    started, worked = time.perf_counter(), time.process_time()
    fitted = fit(data)
    seconds = {**fitted.seconds, "fit": time.perf_counter() - started, "fit, processor": time.process_time() - worked}
    started = time.perf_counter()
    pairs = fitted.scorers.read(data.texts, SilentReporter(), "validation").pairs
    seconds["score validation"] = time.perf_counter() - started
    counts = data.train_counts[: len(data.labels)]
    rows = {
        name: measure(fuse(fusion, pairs.take(fitted.scorers.views_of(name)), counts), data)
        for name, fusion in fitted.scorers.alone.items()
    }
    rows["fused, weights from train"] = measure(fuse(fitted.scorers.fusion, pairs, counts), data)
    rows["fused, weights from validation"] = measure(fuse_by_validation(pairs, data), data)
    columns = list(rows["words"])
    print(f"{'':40}", *(f"{column:>10}" for column in columns))
    for name, figures in rows.items():
        print(f"{name:40}", *(f"{figures[column]:10.1f}" for column in columns))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(*(f"{name} {value:.1f} s" for name, value in seconds.items()), f"at most {peak:.2f} GB", sep=", ")
    if options.json:
        options.json.write_text(json.dumps({"figures": rows, "seconds": seconds, "peak_gb": peak}, indent=2) + "\n")


if __name__ == "__main__":
    main()
