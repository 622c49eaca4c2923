"""A corpus of five documents, a run with played systems, and random predictions beside gold."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import plant_metrics
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import MetricInput, Split
from plant_cli.data.files import hash_strings
from plant_cli.evaluation.aligned import build_input, read_predictions
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.gold import read_gold
from plant_cli.scoring.decisions import write_thresholds


@dataclass(frozen=True)
class Labels:
    ids: tuple[str, ...] = ("a", "b", "c", "d")
    titles: tuple[str | None, ...] = ("Alpha", None, "Gamma", "Delta")
    train_counts: tuple[int, ...] = (1, 5, 6, 700)

    @property
    def hash(self):
        return hash_strings(self.ids)

    def __len__(self):
        return len(self.ids)


def make_split(name, rows, ids=("a", "b", "c", "d"), outside=("x", "y")):
    def matrix(columns):
        dense = [[int(label in labels) for label in columns] for labels in rows.values()]
        return csr_array(np.array(dense, dtype=np.int64).reshape(len(rows), len(columns)))

    texts = ["text"] * len(rows)
    return Split(
        name=name,
        doc_ids=list(rows),
        texts=texts,
        gold=matrix(ids),
        unseen=matrix(outside),
        unseen_labels=outside,
    )


@dataclass(frozen=True)
class TinyCorpus:
    """Five test documents; the last but one has only a label unseen in train, the last has none."""

    rows: dict = field(
        default_factory=lambda: {
            "1": {"a", "c"},
            "2": {"b"},
            "3": {"c", "x"},
            "4": {"y"},
            "5": set(),
        }
    )
    labels: Labels = Labels()
    data_hash: str = "data"

    @property
    def sizes(self):
        return {"train": 10, "test": len(self.rows)}

    def split(self, name):
        return make_split(
            name, self.rows if name == "test" else {f"t{i}": {"d"} for i in range(10)}
        )

    def gold_labels(self, name):
        return self.split(name)


@dataclass(frozen=True)
class PlayedRun:
    """A run folder that holds the thresholds and predictions of systems."""

    path: Path

    def add_system(self, tag, predictions, threshold=0.5):
        """Predictions {doc_id: {label: score}} of a system of this run: its folders of
        `predict` and `finetune`.
        """
        predict, finetune = (
            self.path / (f"{stage}-{tag}" if tag else stage) for stage in ("predict", "finetune")
        )
        predict.mkdir(parents=True)
        write_predictions(predict / "predictions.parquet", predictions)
        write_thresholds(finetune, threshold, "micro-F1", Labels().hash)
        return predict, finetune


def write_predictions(path, predictions):
    frame = pl.DataFrame(
        {
            "doc_id": list(predictions),
            "labels": [list(p) for p in predictions.values()],
            "scores": [list(p.values()) for p in predictions.values()],
        },
        schema={"doc_id": pl.String, "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)},
    )
    frame.write_parquet(path)
    return path


GOOD = {
    "1": {"a": 0.9, "c": 0.8, "d": 0.1},
    "2": {"b": 0.7},
    "3": {"c": 0.9, "b": 0.2},
    "4": {"d": 0.3},
    "5": {"a": 0.6},
}
BAD = {
    "1": {"d": 0.9, "a": 0.8},
    "2": {"a": 0.7},
    "3": {"d": 0.9, "c": 0.2},
    "4": {"d": 0.3},
    "5": {},
}


@pytest.fixture
def corpus():
    return TinyCorpus()


@pytest.fixture
def gold(corpus):
    return read_gold(corpus, "test")


@pytest.fixture
def run(tmp_path):
    return PlayedRun(tmp_path / "run")


@pytest.fixture
def save(tmp_path):
    """Write predictions {doc_id: {label: score}} to a file."""
    return lambda predictions, name="predictions.parquet": write_predictions(
        tmp_path / name, predictions
    )


@pytest.fixture
def align(save, gold):
    """Predictions {doc_id: {label: score}} aligned to gold."""
    return lambda predictions, gold=gold, reporter=None: read_predictions(
        save(predictions), gold, reporter
    )


@pytest.fixture
def lay(align, gold):
    """The same as metrics read them."""
    return lambda given, threshold=0.5, convention="plant": build_input(
        align(given), gold, threshold, CONVENTIONS[convention]
    )


@pytest.fixture
def good():
    return {doc_id: dict(labels) for doc_id, labels in GOOD.items()}


@pytest.fixture
def bad():
    return {doc_id: dict(labels) for doc_id, labels in BAD.items()}


@pytest.fixture(scope="session")
def families():
    return [(spec, spec.options()) for spec in plant_metrics.plant_register_metrics()]


@pytest.fixture
def make_random():
    """Random predictions beside random gold: `make_random(seed)`."""

    def make(seed, documents=15, labels=10, k=6):
        rng = np.random.default_rng(seed)
        return MetricInput(
            top=np.argsort(rng.random((documents, labels)), axis=1)[:, :k],
            scores=-np.sort(-rng.random((documents, k)), axis=1),
            gold=csr_array((rng.random((documents, labels)) < 0.3).astype(np.int64)),
            train_counts=rng.integers(0, 12, labels),
            train_documents=60,
            threshold=0.4,
        )

    return make
