"""The best labels, collected batch after batch."""

from __future__ import annotations

import numpy as np

from plant_cli.inference.top import TopCollector


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
