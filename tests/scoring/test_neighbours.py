"""Nearest documents by a plain loop, and without oneself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scoring.conftest import Drawn

from plant_cli.scoring.lexical import unit_rows
from plant_cli.scoring.ridge import leave_out_neighbours, score_neighbours
from plant_cli.scoring.scores import Similarity


def plain(similarity: list[float], gold: np.ndarray[tuple[int, int], np.dtype[np.float32]], neighbours: int, power: float) -> list[float]:
    """Shares of labels among the nearest, one document at a time."""
    near = sorted(range(len(similarity)), key=lambda d: (-similarity[d], d))[:neighbours]
    weights = {d: max(similarity[d], 0.0) ** power for d in near}
    total = sum(weights.values()) or 1.0
    return [sum(weights[d] for d in near if gold[d, label]) / total for label in range(gold.shape[1])]


@pytest.mark.parametrize(("neighbours", "power"), [(1, 1.0), (4, 2.0), (99, 0.5)])
def test_shares_are_those_of_a_plain_loop(drawn: Drawn, neighbours: int, power: float) -> None:
    similarity = np.random.default_rng(0).normal(size=(6, 30))
    found = score_neighbours(similarity, drawn.gold, neighbours, power).toarray()
    np.testing.assert_allclose(found, [plain(row.tolist(), drawn.gold.toarray(), neighbours, power) for row in similarity], atol=1e-6)


def test_leaving_out_is_searching_among_the_others(drawn: Drawn) -> None:
    kernel, gold = Similarity(unit_rows(drawn.counts)).square(), drawn.gold.toarray()
    rows = np.array([3, 7, 20])
    similarity = kernel[rows]
    found = leave_out_neighbours(similarity, rows, drawn.gold, 5).toarray()
    for row, scores in zip(rows, found, strict=True):
        others = np.delete(np.arange(30), row)
        np.testing.assert_allclose(scores, plain(kernel[row, others].tolist(), gold[others], 5, 2.0), atol=1e-6)
    np.testing.assert_array_equal(similarity, kernel[rows])  # the given similarities stay as they are


def test_a_document_like_no_other_has_no_labels(drawn: Drawn) -> None:
    assert score_neighbours(np.zeros((1, 30)), drawn.gold).nnz == 0
    assert score_neighbours(np.zeros((0, 30)), drawn.gold).shape == (0, 9)


def test_a_scale_of_all_similarities_does_not_matter(drawn: Drawn) -> None:
    similarity = np.random.default_rng(1).random((4, 30))
    np.testing.assert_allclose(
        score_neighbours(similarity * 9, drawn.gold).toarray(), score_neighbours(similarity, drawn.gold).toarray(), atol=1e-6
    )


def test_twins_share_their_scores(drawn: Drawn) -> None:
    found = csr_array(score_neighbours(np.random.default_rng(2).random((4, 30)), drawn.gold)).toarray()
    np.testing.assert_array_equal(found[:, 1], found[:, 2])
