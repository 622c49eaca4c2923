"""Means of the scores of several networks: those of a plain loop in double precision, for every label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plant_cli.api import SplitName
from plant_cli.network.reading import Cut
from plant_cli.scoring.top import Mean, Member, average_members, best_labels, join_mean

DRAW = np.random.default_rng(0)
MEMBERS = [8 * DRAW.standard_normal((5, 7)).astype(np.float32) for _ in range(3)]


class Kept:
    """Scores in memory."""

    def __init__(self) -> None:
        self.values = np.full((5, 7), np.nan, dtype=np.float32)

    def write(self, rows: Any, logits: Any) -> None:
        self.values[rows] = logits

    def read(self, rows: Any) -> Any:
        return self.values[rows]


def member(number: int) -> Member:
    """It scores the documents in an order of its own."""

    def score(name: SplitName, add: Any) -> Cut:
        order = np.random.default_rng(number).permutation(5)
        for rows in (order[:2], order[2:]):
            add(rows, MEMBERS[number][rows] if name == "test" else -MEMBERS[number][rows])
        return Cut(tokens=(0.1, 0.3, 0.2)[number])

    return Member(name=str(number), load=lambda: score)


def expected(mean: Mean) -> Any:
    exact = [logits.astype(np.float64) for logits in MEMBERS]
    if mean == "logits":
        return sum(exact) / 3
    probability = sum(1 / (1 + np.exp(-x)) for x in exact) / 3
    return np.log(probability / (1 - probability))


@pytest.mark.parametrize("mean", ["probabilities", "logits"])
def test_the_mean_is_that_of_a_plain_loop_whatever_the_order_of_documents(mean: Mean) -> None:
    kept, other = Kept(), Kept()
    cuts = average_members([member(number) for number in range(3)], {"test": kept, "validation": other}, mean)
    assert cuts == {"test": Cut(tokens=0.3), "validation": Cut(tokens=0.3)}  # the most that a member did not read
    np.testing.assert_allclose(other.values, -expected(mean), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kept.values, expected(mean), rtol=1e-5, atol=1e-5)
    top = best_labels(kept, 5, 7, 3)
    order = np.argsort(-expected(mean), axis=1)[:, :3]
    assert top.labels.tolist() == order.tolist()
    np.testing.assert_allclose(top.scores, 1 / (1 + np.exp(-np.take_along_axis(expected(mean), order, 1))), rtol=1e-5)
    assert top.assigned_share == (kept.values >= 0).mean()


def test_certain_networks_keep_their_order() -> None:
    certain = np.array([[50.0, 60.0, -60.0, -90.0]], dtype=np.float32)
    np.testing.assert_allclose(join_mean(certain, certain, 1, "probabilities"), certain, rtol=1e-6)
    both = join_mean(certain, -certain, 1, "probabilities")
    np.testing.assert_allclose(both, np.zeros((1, 4)), atol=1e-6)


def test_different_logits_never_have_the_same_score() -> None:
    kept = Kept()
    kept.values[:] = np.array([45, 38, 38, 46, 0, -1, -2], dtype=np.float32)
    top = best_labels(kept, 5, 7, 4)
    assert top.labels[0].tolist() == [3, 0, 1, 2]
    assert top.scores[0, 0] > top.scores[0, 1] > top.scores[0, 2] == top.scores[0, 3]
