"""Predictions beside gold, made by hand or at random, and the values of all families on them."""

import numpy as np
import plant_metrics
import pytest
from scipy.sparse import csr_array

from plant_cli.api import MetricInput
from plant_cli.evaluation.counters import compute_families, compute_value

FAMILIES = [(spec, spec.options()) for spec in plant_metrics.plant_register_metrics()]


def _make_input(ranked, gold, labels, **changes):
    width = max(len(r) for r in ranked)
    top = np.array([r + [-1] * (width - len(r)) for r in ranked])
    matrix = np.zeros((len(gold), labels), dtype=np.int64)
    for row, members in enumerate(gold):
        matrix[row, list(members)] = 1
    scores = np.where(
        [[rank >= len(r) for rank in range(width)] for r in ranked],
        -np.inf,
        1.0 - np.arange(width) / (2 * width),
    )
    given = {
        "top": top,
        "scores": scores,
        "gold": csr_array(matrix),
        "train_counts": np.arange(1, labels + 1),
        "train_documents": 50,
        "threshold": 0.0,
    }
    return MetricInput(**{**given, **changes})


def _draw_input(seed, documents=20, labels=12, k=7):
    rng = np.random.default_rng(seed)
    gold = (rng.random((documents, labels)) < 0.25).astype(np.int64)
    top = np.argsort(rng.random((documents, labels)), axis=1)[:, :k]
    scores = -np.sort(-rng.random((documents, k)), axis=1)
    return MetricInput(
        top=top,
        scores=scores,
        gold=csr_array(gold),
        train_counts=np.append(rng.integers(1, 30, labels - 2), [0, 0]),
        train_documents=100,
        threshold=0.4,
    )


@pytest.fixture
def find_spec():
    """The family of a name."""
    return {spec.name: spec for spec, _ in FAMILIES}.__getitem__


@pytest.fixture
def make_input():
    """`make_input(ranked, gold, labels, **changes)`: lists of predictions and sets of gold;
    everything predicted is assigned.
    """
    return _make_input


@pytest.fixture
def random_input():
    """`random_input(seed)`: 20 documents, 12 labels of which the last two have no training
    document, 7 predictions.
    """
    return _draw_input


@pytest.fixture
def compute_all():
    """Every metric by name."""
    return lambda data: {value.name: value for value in compute_families(FAMILIES, data)}


@pytest.fixture
def values_of(compute_all):
    """The value of every metric by name."""
    return lambda data: {name: compute_value(metric) for name, metric in compute_all(data).items()}
