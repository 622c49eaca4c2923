"""The best labels, collected batch after batch."""

from __future__ import annotations

import numpy as np
import pytest

from plant_cli.scoring.top import TopCollector, rank_labels


def test_the_best_come_first_and_ties_follow_the_label_index() -> None:
    kept: list[int] = []
    collected = TopCollector(3, 2, lambda rows, logits: kept.extend(rows.tolist()))
    collected.add(np.array([2, 0]), np.array([[0.0, 1.0, 1.0], [3.0, -1.0, 4.0]], dtype=np.float32))
    collected.add(np.array([1]), np.array([[-1.0, -1.0, -1.0]], dtype=np.float32))
    found = collected.done()
    assert found.labels.tolist() == [[2, 0], [0, 1], [1, 2]]
    np.testing.assert_allclose(found.scores[2], 1 / (1 + np.exp(-1.0)))
    assert found.assigned_share == 5 / 9
    assert kept == [2, 0, 1]


@pytest.mark.parametrize("levels", [1, 2, 5, 1000])
@pytest.mark.parametrize("k", [1, 3, 29, 30])
def test_the_k_best_are_those_of_a_stable_sort_however_many_are_equal(k: int, levels: int) -> None:
    logits = np.random.default_rng(levels).integers(-levels, levels, (40, 30)).astype(np.float32)
    assert np.array_equal(rank_labels(logits, k), np.argsort(-logits, axis=1, kind="stable")[:, :k])


def test_labels_beyond_the_k_best_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_sizes: list[int] = []
    argsort = np.argsort
    monkeypatch.setattr(
        np, "argsort", lambda values, *args, **options: sorted_sizes.append(values.shape[-1]) or argsort(values, *args, **options)
    )
    TopCollector(2, 5).add(np.arange(2), np.random.default_rng(0).random((2, 1000), dtype=np.float32))
    assert max(sorted_sizes) <= 5
