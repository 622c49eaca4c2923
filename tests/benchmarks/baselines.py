"""What outside tools reach on a corpus, by our metric code.

`python -m tests.benchmarks.baselines --corpus DIR [--predictions DIR] [--json FILE]` trains, on
train only, nearest neighbours and linear one-vs-rest on TF-IDF (scikit-learn), Omikuji as it comes
(Parabel-like) and Bonsai-like, and title match, and fuses them by weights from validation. It
prints one row for each. With `--predictions` their files are kept for `plant significance`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import omikuji
import plant_metrics
import polars as pl
from plant_formats import plant_register_datasets
from scipy.sparse import csr_array, vstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from plant_cli.api import Corpus, DataSection, SilentReporter, Split
from plant_cli.data.files import replacing
from plant_cli.data.prepare import prepare
from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.counters import choose, compute_families, compute_value
from plant_cli.evaluation.gold import Gold, read_gold
from plant_cli.evaluation.measures import Bounds, measure_bins
from tests.benchmarks.fusions import (
    FUSIONS,
    KEPT,
    Scored,
    fit_fusion,
    fuse,
    list_best,
    match_titles,
    squash,
)

COLUMNS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "PSP@5", "R@10", "R@50")
BINS = (
    ("1", 1, 1),
    ("2-4", 2, 4),
    ("1-4", 1, 4),
    ("5-10", 5, 10),
    ("11-50", 11, 50),
    (">50", 51, np.inf),
)
NEIGHBOURS = 30


@dataclass(frozen=True)
class Features:
    """TF-IDF of train and of what is to be labelled (sublinear, unigrams, L2), fitted on train,
    and the gold labels of train.
    """

    train: csr_array
    test: csr_array
    gold: csr_array


def extract(train: Split, *asked: Split) -> Features:
    """The features of train, and of all documents of the other splits, one split after the
    other.
    """
    vectorizer = TfidfVectorizer(sublinear_tf=True).fit(train.texts)
    first, *others = (csr_array(vectorizer.transform(split.texts)) for split in (train, *asked))
    return Features(first, csr_array(vstack(others, format="csr")), train.gold)


def vote_of_neighbours(features: Features) -> Scored:
    """Labels of the nearest training documents by cosine, each with the sum of its documents'
    similarities.
    """
    similar = (features.test @ features.train.T).toarray()
    far = np.argpartition(-similar, NEIGHBOURS, axis=1)[:, NEIGHBOURS:]
    np.put_along_axis(similar, far, 0.0, axis=1)
    return list_best(csr_array(csr_array(similar) @ features.gold))


def separate_labels(features: Features) -> Scored:
    """One support vector machine for each label (squared hinge, LIBLINEAR, as it comes but for
    the seed of its order); signed distances.
    """
    scores = (
        OneVsRestClassifier(LinearSVC(random_state=0))
        .fit(features.train, features.gold)
        .decision_function(features.test)
    )
    best = np.argsort(-scores, axis=1, kind="stable")[:, :KEPT]
    return [
        [(int(label), float(row[label])) for label in chosen]
        for row, chosen in zip(scores, best, strict=True)
    ]


def grow_trees(features: Features, folder: Path | None = None, **changes: object) -> Scored:
    """Omikuji with its default hyper-parameters but for `changes`; the model is saved in
    `folder`, if one is given.
    """
    hyper = omikuji.Model.default_hyper_param()
    for name, value in changes.items():
        setattr(hyper, name, value)
    rows = np.flatnonzero(
        (np.diff(features.train.indptr) > 0) & (np.diff(features.gold.indptr) > 0)
    )  # it reads no others
    train, gold = csr_array(features.train[rows]), csr_array(features.gold[rows])
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as stream:
        stream.write(f"{len(rows)} {train.shape[1]} {gold.shape[1]}\n")
        for labels, pairs in zip(
            np.split(gold.indices, gold.indptr[1:-1]), _pairs(train), strict=True
        ):
            stream.write(
                ",".join(map(str, labels)) + " " + " ".join(f"{i}:{v:.9g}" for i, v in pairs) + "\n"
            )
        stream.flush()
        with silenced():
            model = omikuji.Model.train_on_data(stream.name, hyper)
            if folder is not None:
                model.save(str(folder))
    return [
        [(label, score) for label, score in model.predict(pairs, top_k=KEPT)]
        for pairs in _pairs(features.test)
    ]


@contextmanager
def silenced() -> Iterator[None]:
    """Drop what is written to stderr: Omikuji's progress bars come from beyond Python and have
    no switch.
    """
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _pairs(matrix: csr_array) -> list[list[tuple[int, float]]]:
    ends = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    return [
        list(zip(matrix.indices[a:b].tolist(), matrix.data[a:b].tolist(), strict=True))
        for a, b in ends
    ]


TOOLS: dict[str, Callable[[Features], Scored]] = {
    "knn": vote_of_neighbours,
    "one-vs-rest": separate_labels,
    "omikuji-parabel": grow_trees,
    "omikuji-bonsai": lambda features: grow_trees(
        features, cluster_balanced=False, cluster_k=100, max_depth=3
    ),
}


def write(path: Path, scored: Scored, doc_ids: Sequence[str], labels: Sequence[str]) -> None:
    """A predictions file as `plant eval --predictions` reads it."""
    frame = pl.DataFrame(
        {
            "doc_id": list(doc_ids),
            "labels": [[labels[label] for label, _ in row] for row in scored],
            "scores": [[score for _, score in row] for row in scored],
        },
        schema={"doc_id": pl.String, "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)},
    )
    with replacing(path) as temporary:
        frame.write_parquet(temporary)


def measure(path: Path, gold: Gold, bins: Bounds = BINS) -> dict[str, float]:
    """The columns, in points, and the recall of labels in bins of training documents."""
    data = build_input(read_predictions(path, gold), gold, 0.5, CONVENTIONS["plant"])
    values = choose(
        compute_families(
            [(spec, spec.options()) for spec in plant_metrics.plant_register_metrics()], data
        ),
        COLUMNS,
        {},
    )
    values += [b.metrics[0] for b in measure_bins(data, bins)]
    return {value.name: 100 * compute_value(value) for value in values}


def open_corpus(folder: Path, scratch: Path) -> Corpus:
    """The corpus of a folder of train, validation and test files."""
    section = DataSection(path=str(folder))
    files = next(spec for spec in plant_register_datasets() if spec.name == section.dataset.name)
    return prepare(
        files.load(section, files.options()), section, scratch / "corpus", SilentReporter()
    )


def run_tools(corpus: Corpus) -> Iterator[tuple[str, Scored, dict[str, Any]]]:
    """Name, lists for the documents of test, and remarks of each tool and each fusion; weights
    are chosen by validation alone.
    """
    train, validation, test = (corpus.split(name) for name in ("train", "validation", "test"))
    features = extract(train, validation, test)
    texts = [*validation.texts, *test.texts]
    tools: dict[str, Callable[[Features], Scored]] = {
        **TOOLS,
        "title": lambda _: match_titles(train.texts, corpus.labels.titles, texts),
    }
    known: dict[str, Scored] = {}
    asked: dict[str, Scored] = {}
    for tool, run in tools.items():
        started = time.perf_counter()
        scored = run(features)
        known[tool], asked[tool] = scored[: len(validation)], scored[len(validation) :]
        yield tool, asked[tool], {"seconds": round(time.perf_counter() - started, 1)}
    for lists in (known, asked):
        lists["one-vs-rest"] = squash(lists["one-vs-rest"])
    for name, fused in FUSIONS.items():
        fusion = fit_fusion(fused, known, validation.gold)
        yield name, fuse(fusion, asked), asdict(fusion)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, predict, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--predictions", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        kept = options.predictions or Path(scratch)
        corpus = open_corpus(options.corpus, Path(scratch))
        gold = read_gold(corpus, "test")
        for name, scored, remarks in run_tools(corpus):
            path = kept / f"{name}.parquet"
            write(path, scored, gold.doc_ids, corpus.labels.ids)
            measured = measure(path, gold)
            results[name] = {**measured, **remarks}
            shown = [
                *(f"{metric} {value:.1f}" for metric, value in measured.items()),
                *(f"{key} {what}" for key, what in remarks.items()),
            ]
            print(name, *shown, sep=" | ", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
