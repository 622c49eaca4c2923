"""Systems that are joined: their scores side by side, their metrics over swapped outputs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.evaluation.counters import ScoreTable, compute_families, compute_value
from plant_cli.evaluation.measurement import (
    JoinedScores,
    Measurement,
    join_inputs,
    join_metrics,
    keep_shared,
)


@pytest.fixture
def both(make_random):
    """Two systems on the same documents with every score; the second writes scores on another
    scale.
    """
    rng = np.random.default_rng(0)
    data = replace(make_random(0), train_counts=np.arange(1, 11))
    tables = [rng.normal(size=(15, 10)), 7 * rng.normal(size=(15, 10)) - 30]
    return [
        replace(
            data,
            all_scores=ScoreTable(values=t.astype(np.float32), rows=np.arange(15), memory=10**6),
        )
        for t in tables
    ]


@pytest.fixture
def systems(both, families):
    return [
        (name, [Measurement(metrics=compute_families(families, data), data=data)])
        for name, data in zip("ab", both, strict=True)
    ]


def test_weights_choose_whose_output_a_document_has(both, systems, families):
    """Each system alone has its own AUC; a swap has that of the outputs laid together by hand."""
    joined = join_metrics(systems, families)
    for name in ("macro-AUC", "micro-AUC"):
        metric = joined["b", name]
        ones, zeros = np.ones(15), np.zeros(15)
        own = [
            next(compute_value(m) for m in found[0].metrics if m.name == name)
            for _, found in systems
        ]
        assert metric.compute(np.array([[*ones, *zeros], [*zeros, *ones]])) == pytest.approx(
            own, abs=1e-6
        )
        swapped = np.arange(15) % 2 == 0
        scaled = [
            (t - t.mean()) / t.std()
            for t in (data.all_scores.values.astype(float) for data in both)
        ]
        mixed = np.where(swapped[:, None], scaled[1], scaled[0]).astype(np.float32)
        by_hand = replace(
            both[0], all_scores=ScoreTable(values=mixed, rows=np.arange(15), memory=10**6)
        )
        expected = next(
            compute_value(m) for m in compute_families(families, by_hand) if m.name == name
        )
        assert metric.compute(np.array([[*~swapped, *swapped]]).astype(float)) == pytest.approx(
            [expected], abs=1e-6
        )


def test_scores_are_read_in_any_block(both):
    whole = JoinedScores((both[0].all_scores, both[1].all_scores))
    everything = whole.read(slice(None), slice(None))
    assert everything.shape == whole.shape == (30, 10)
    assert np.abs(everything[15:].mean()) < 1e-6
    for start, stop in ((0, 3), (12, 18), (15, 30), (20, 21)):
        assert np.array_equal(
            whole.read(slice(start, stop), slice(2, 5)), everything[start:stop, 2:5]
        )


def test_lists_of_different_length_are_joined(both):
    longer = replace(
        both[1],
        top=np.pad(both[1].top, ((0, 0), (0, 2))),
        scores=np.pad(both[1].scores, ((0, 0), (0, 2))),
    )
    found = join_inputs(both[0], longer)
    assert found.top.shape == found.scores.shape == (30, 8)
    assert (found.top[:15, 6:] == -1).all()
    assert isinstance(found.gold, csr_array)
    assert found.gold.shape == (30, 10)


def test_only_metrics_of_all_systems_are_kept(systems, families):
    alone = replace(systems[1][1][0].data, all_scores=None)
    lists = ("b", [Measurement(metrics=compute_families(families, alone), data=alone)])
    kept = keep_shared([systems[0], lists])
    names = [[m.name for m in found[0].metrics] for _, found in kept]
    assert names[0] == names[1]
    assert "micro-AUC" not in names[0]
    assert join_metrics(kept, families) == {}


def test_of_several_seeds_the_mean(systems, families):
    repeated = [(name, found * 2) for name, found in systems]
    weights = np.ones((1, 30))
    for key, metric in join_metrics(repeated, families).items():
        assert metric.compute(weights) == pytest.approx(
            join_metrics(systems, families)[key].compute(weights)
        )
