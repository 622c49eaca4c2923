"""The benchmark compares like with like: scikit-learn gives the same numbers for every resample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from plant_cli.evaluation.bootstrap import draw_weights, resample, weigh
from plant_cli.evaluation.counters import choose, compute_families
from tests.benchmarks.bootstrap import FAMILIES, SAME, Scale, auc_by_peer, draw, f1_by_peer, measure


def test_the_peer_computes_what_we_compute(tmp_path: Path) -> None:
    data = draw(Scale(60, 20, 8, 3), np.random.default_rng(0), tmp_path)
    micro, macro, area = choose(compute_families(FAMILIES, data), SAME, {})
    drawn = [*resample([micro, macro], 4, np.random.default_rng(1)), weigh(area, 4, np.random.default_rng(1))[1]]
    for number, weights in enumerate(draw_weights(60, 4, np.random.default_rng(1))):
        expected = {**f1_by_peer(data, weights), "macro-AUC": auc_by_peer(data, weights)}
        for name, values in zip(SAME, drawn, strict=True):
            assert values[number] == pytest.approx(expected[name], abs=1e-12), name


def test_the_benchmark_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.benchmarks.bootstrap.REPLICATES", 5)
    result = measure(Scale(60, 20, 8, 3), np.random.default_rng(0), tmp_path)
    assert {"seconds", "reference_seconds", "peer_seconds", "bound_seconds", "peak_gb", "machine"} <= result.keys()
