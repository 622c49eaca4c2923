"""Similarities, nearest neighbours and ridge regression, in double precision and with every
document left out in turn.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from drawn_counts import Drawn, draw
from plant_scorers import ridge
from plant_scorers.lexical import unit_rows
from plant_scorers.ridge import (
    Similarity,
    leave_out_neighbours,
    merge_twins,
    regress_on_own_terms,
    score_neighbours,
)
from scipy.sparse import csr_array


@pytest.mark.parametrize("frequent", [0.5, 2, 4, 1000])
@pytest.mark.parametrize("most", [30, 200, 1 << 20])
@pytest.mark.parametrize("documents", [6, 9])
def test_whatever_is_multiplied_densely_the_products_are_the_same(
    drawn: Drawn, frequent: float, most: int, documents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_scorers.ridge.DENSE_FROM", frequent)
    monkeypatch.setattr("plant_scorers.ridge.DENSE", most)
    train, others = unit_rows(drawn.counts), unit_rows(draw(1, documents=documents).counts)
    np.testing.assert_allclose(
        Similarity(train).multiply(others), others.toarray() @ train.toarray().T, atol=1e-6
    )


@pytest.mark.parametrize("documents", [2, 9])
def test_no_documents_and_no_terms_have_empty_products(documents: int) -> None:
    none = csr_array((documents, 4), dtype=np.float32)
    assert Similarity(csr_array((0, 4), dtype=np.float32)).multiply(none).shape == (documents, 0)
    assert not Similarity(csr_array((3, 0), dtype=np.float32)).multiply(none[:, :0]).any()


def plain(
    similarity: list[float],
    gold: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    neighbours: int,
    power: float,
) -> list[float]:
    """Shares of labels among the nearest, one document at a time."""
    near = sorted(range(len(similarity)), key=lambda d: (-similarity[d], d))[:neighbours]
    weights = {d: max(similarity[d], 0.0) ** power for d in near}
    total = sum(weights.values()) or 1.0
    return [
        sum(weights[d] for d in near if gold[d, label]) / total for label in range(gold.shape[1])
    ]


@pytest.mark.parametrize(("neighbours", "power"), [(1, 1.0), (4, 2.0), (99, 0.5)])
def test_shares_are_those_of_a_plain_loop(drawn: Drawn, neighbours: int, power: float) -> None:
    similarity = np.random.default_rng(0).normal(size=(6, 30))
    found = score_neighbours(similarity, drawn.gold, neighbours, power).toarray()
    np.testing.assert_allclose(
        found,
        [plain(row.tolist(), drawn.gold.toarray(), neighbours, power) for row in similarity],
        atol=1e-6,
    )


def test_leaving_out_is_searching_among_the_others(drawn: Drawn) -> None:
    train, gold = unit_rows(drawn.counts), drawn.gold.toarray()
    kernel = Similarity(train).multiply(train)
    rows = np.array([3, 7, 20])
    similarity = kernel[rows]
    found = leave_out_neighbours(similarity, rows, drawn.gold, 5, 2.0).toarray()
    for row, scores in zip(rows, found, strict=True):
        others = np.delete(np.arange(30), row)
        np.testing.assert_allclose(
            scores, plain(kernel[row, others].tolist(), gold[others], 5, 2.0), atol=1e-6
        )
    np.testing.assert_array_equal(
        similarity, kernel[rows]
    )  # the given similarities stay as they are


def test_a_document_like_no_other_has_no_labels(drawn: Drawn) -> None:
    assert score_neighbours(np.zeros((1, 30)), drawn.gold, 5, 2.0).nnz == 0
    assert score_neighbours(np.zeros((0, 30)), drawn.gold, 5, 2.0).shape == (0, 9)


Floats = npt.NDArray[np.float64]


def vectors(drawn: Drawn) -> tuple[csr_array, Floats, Floats]:
    """Vectors, the same in double precision, and gold labels."""
    train = unit_rows(drawn.counts)
    return train, train.toarray().astype(np.float64), drawn.gold.toarray().astype(np.float64)


def test_labels_of_the_same_documents_are_solved_once(drawn: Drawn) -> None:
    distinct, label_of = merge_twins(drawn.gold)
    assert distinct.shape[1] == len(np.unique(drawn.gold.toarray(), axis=1).T)
    np.testing.assert_array_equal(distinct.toarray()[:, label_of], drawn.gold.toarray())
    none, nothing = merge_twins(csr_array(np.zeros((3, 0))))
    assert (none.shape, len(nothing)) == ((3, 0), 0)


def solve(exact: Floats, right: Floats, chosen: npt.NDArray[np.int64], strength: float) -> Floats:
    """Weights of some terms for one label by the normal equations, in double precision."""
    own = exact[:, chosen]
    mass = (own[right > 0] ** 2).sum() / max(1, right.sum())
    return np.linalg.solve(own.T @ own + strength * mass * np.eye(len(chosen)), own.T @ right)


def choose_own(exact: Floats, right: Floats, most: int) -> npt.NDArray[np.int64]:
    """The terms of largest sum in a label's documents."""
    sums = exact.T @ right
    order = np.argsort(-sums, kind="stable")[:most]
    return np.sort(order[sums[order] > 0])


@pytest.mark.parametrize(
    ("speed", "dense", "few"),
    [(1e9, 99, 99), (1e9, 99, 0), (5, 99, 0), (1e9, 5, 0), (0, 99, 0)],
    ids=["all written out", "all", "some", "five", "none"],
)
@pytest.mark.parametrize("visit", [0, 2000])
@pytest.mark.parametrize("systems", [1, 1 << 26])
@pytest.mark.parametrize("most", [3, 99])
def test_each_label_is_solved_on_the_terms_that_weigh_most_in_its_own_documents(
    drawn: Drawn,
    most: int,
    systems: int,
    speed: float,
    dense: int,
    few: int,
    visit: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed = {
        "SYSTEM_ENTRIES": systems,
        "DENSE_SPEED": speed,
        "DENSE_PRODUCTS": dense,
        "FEW_TERMS": few,
        "TERMS_PER_VISIT": visit,
    }
    for name, value in changed.items():
        monkeypatch.setattr(ridge, name, value)
    train, exact, gold = vectors(drawn)
    terms, done = most - gold.sum(axis=0).astype(np.int64) % 2, list[float]()
    found = regress_on_own_terms(train, drawn.gold, 0.5, terms, done.append).toarray()
    for label, right in enumerate(gold.T):
        chosen = choose_own(exact, right, terms[label])
        assert np.flatnonzero(found[label]).tolist() == chosen.tolist()
        np.testing.assert_allclose(
            found[label, chosen], solve(exact, right, chosen, 0.5), atol=1e-4
        )
    assert sum(done) == pytest.approx(gold.shape[1])


@pytest.mark.parametrize(
    ("others", "step"), [(30, 1), (10, 3)], ids=["all others", "some of the others"]
)
def test_frequent_labels_get_as_many_terms_again_those_by_which_they_gain_most(
    drawn: Drawn, others: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ridge, "FREQUENT", 6)
    monkeypatch.setattr(ridge, "OTHERS", others)
    train, exact, gold = vectors(drawn)
    found = regress_on_own_terms(train, drawn.gold, 0.5, np.full(gold.shape[1], 4)).toarray()
    assert 0 < (gold.sum(axis=0) >= 6).sum() < gold.shape[1]
    for label, right in enumerate(gold.T):
        chosen = choose_own(exact, right, 4)
        if right.sum() >= 6:
            scores = exact[:, chosen] @ solve(exact, right, chosen, 0.5)
            looked_at = (np.arange(30) % step == 0) & (right == 0) & (scores >= ridge.SCORES_HIGH)
            gain = np.abs(
                exact.T @ np.where(right > 0, 1 - scores, np.where(looked_at, -step * scores, 0))
            )
            gain[chosen] = 0
            chosen = np.sort(np.concatenate([chosen, np.argsort(-gain, kind="stable")[:4]]))
        assert np.flatnonzero(found[label]).tolist() == chosen.tolist()
        np.testing.assert_allclose(
            found[label, chosen], solve(exact, right, chosen, 0.5), atol=1e-4
        )


def test_labels_of_no_document_have_no_terms() -> None:
    train = csr_array(np.eye(3, dtype=np.float32))
    assert (
        regress_on_own_terms(
            train, csr_array(np.zeros((3, 2))), 1.0, np.ones(2, dtype=np.int64)
        ).nnz
        == 0
    )
    assert regress_on_own_terms(
        train, csr_array(np.zeros((3, 0))), 1.0, np.ones(0, dtype=np.int64)
    ).shape == (0, 3)
