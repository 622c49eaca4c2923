"""Similarities, nearest neighbours and ridge regression, in double precision and with every document left out in turn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array
from scoring.conftest import Drawn, draw

from plant_cli.scoring import ridge
from plant_cli.scoring.lexical import unit_rows
from plant_cli.scoring.ridge import (
    Similarity,
    find_twins,
    invert_kernel,
    leave_out_neighbours,
    leave_out_ridge,
    merge_twins,
    regress_on_own_terms,
    score_neighbours,
    solve_labels,
    weigh_terms,
)
from plant_cli.scoring.sparse_scores import multiply_best


@pytest.mark.parametrize("frequent", [0.5, 2, 4, 1000])
@pytest.mark.parametrize("most", [30, 200, 1 << 20])
def test_whatever_is_multiplied_densely_the_products_are_the_same(
    drawn: Drawn, frequent: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_cli.scoring.ridge.DENSE_FROM", frequent)
    monkeypatch.setattr("plant_cli.scoring.ridge.DENSE", most)
    train, documents = unit_rows(drawn.counts), unit_rows(draw(1, documents=6).counts)
    similarity = Similarity(train)
    np.testing.assert_allclose(similarity.multiply(documents), documents.toarray() @ train.toarray().T, atol=1e-6)
    weights = np.random.default_rng(0).random((30, 3)).astype(np.float32)
    np.testing.assert_allclose(similarity.weigh(weights)[similarity.column_of], train.toarray().T @ weights, rtol=1e-5)
    np.testing.assert_allclose(similarity.square(), train.toarray() @ train.toarray().T, atol=1e-6)


def test_equal_columns_are_multiplied_once(drawn: Drawn) -> None:
    train = csr_array(unit_rows(drawn.counts)[:, [0, 3, 0, 1, 3, 0, 2]])
    firsts, column_of = find_twins(train)
    assert firsts.tolist() == [0, 1, 3, 6]
    assert column_of.tolist() == [0, 1, 0, 2, 1, 0, 3]
    similarity = Similarity(train)
    assert similarity.columns == 4
    plain = train.toarray()
    documents = csr_array(np.random.default_rng(0).random((5, 7)).astype(np.float32))
    np.testing.assert_allclose(similarity.multiply(documents), documents.toarray() @ plain.T, rtol=1e-5)
    np.testing.assert_allclose(similarity.square(), plain @ plain.T, atol=1e-6)


def test_no_documents_and_no_terms_have_empty_products() -> None:
    assert Similarity(csr_array((0, 4), dtype=np.float32)).multiply(csr_array((2, 4), dtype=np.float32)).shape == (2, 0)
    assert not Similarity(csr_array((3, 0), dtype=np.float32)).square().any()


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


Floats = npt.NDArray[np.float64]


def plain_scores(train: Floats, gold: Floats, documents: Floats, strength: float) -> Floats:
    """One label after another: weights by the normal equations of the terms, in double precision."""
    system = train.T @ train + strength * np.eye(train.shape[1])
    return np.stack([documents @ np.linalg.solve(system, train.T @ label) for label in gold.T], axis=1)


def vectors(drawn: Drawn) -> tuple[csr_array, Floats, Floats]:
    """Vectors, the same in double precision, and gold labels."""
    train = unit_rows(drawn.counts)
    return train, train.toarray().astype(np.float64), drawn.gold.toarray().astype(np.float64)


@pytest.mark.parametrize("strength", [0.05, 0.3, 3.0])
def test_scores_are_those_of_the_normal_equations(drawn: Drawn, strength: float) -> None:
    train, exact, gold = vectors(drawn)
    others = unit_rows(draw(1, documents=6).counts)
    coefficients, label_of = solve_labels(invert_kernel(Similarity(train).square(), strength), drawn.gold)
    found = (Similarity(train).multiply(others) @ coefficients)[:, label_of]
    np.testing.assert_allclose(found, plain_scores(exact, gold, others.toarray(), strength), atol=1e-4)


@pytest.mark.parametrize("strength", [0.05, 0.3, 3.0])
def test_leaving_out_is_solving_anew_without_the_document(drawn: Drawn, strength: float) -> None:
    train, exact, gold = vectors(drawn)
    inverse = invert_kernel(Similarity(train).square(), strength)
    rows = np.array([0, 3, 5, 29])
    for row, found in zip(rows, leave_out_ridge(inverse[rows], rows, drawn.gold), strict=True):
        others = np.delete(np.arange(30), row)
        np.testing.assert_allclose(found, plain_scores(exact[others], gold[others], exact[[row]], strength)[0], atol=1e-4)


def test_the_inverse_is_whole_in_blocks_of_any_size(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Similarity(unit_rows(drawn.counts)).square()
    before = kernel.copy()
    for side in (7, 30, 1024):
        monkeypatch.setattr(ridge, "ROWS_PER_BLOCK", side)
        np.testing.assert_allclose(invert_kernel(kernel) @ (kernel + 0.3 * np.eye(30)), np.eye(30), atol=1e-5)
    np.testing.assert_array_equal(kernel, before)


def test_a_matrix_that_is_no_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        invert_kernel(np.array([[0, 9], [9, 0]], dtype=np.float32))


@pytest.mark.parametrize("labels_at_a_time", [1, 3, 100])
def test_weights_of_terms_score_as_the_kernel_does(drawn: Drawn, labels_at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "cut_rows", lambda rows, width: [slice(i, i + labels_at_a_time) for i in range(0, rows, labels_at_a_time)])
    train, exact, gold = vectors(drawn)
    similarity = Similarity(train)
    inverse = np.linalg.inv(exact @ exact.T + 0.3 * np.eye(30)).astype(np.float32)
    weights = weigh_terms(similarity, inverse, drawn.gold, kept=99)
    plain = plain_scores(exact, gold, exact, 0.3)
    np.testing.assert_allclose((train @ weights.T).toarray(), plain, atol=1e-4)
    np.testing.assert_allclose(multiply_best(train, weights, 99).matrix.toarray(), np.maximum(plain, 0), atol=1e-4)


def test_the_largest_weights_of_each_label_are_kept_with_their_signs(drawn: Drawn) -> None:
    train = unit_rows(drawn.counts)
    inverse = invert_kernel(Similarity(train).square())
    whole = weigh_terms(Similarity(train), inverse, drawn.gold, kept=99).toarray()
    pruned = weigh_terms(Similarity(train), inverse, drawn.gold, kept=4).toarray()
    for row, full in zip(pruned, whole, strict=True):
        assert set(np.flatnonzero(row)) == set(np.argsort(-np.abs(full), kind="stable")[:4][np.abs(np.sort(-np.abs(full))[:4]) > 0])
        np.testing.assert_array_equal(row[row != 0], full[row != 0])


def test_of_equally_large_weights_the_first_term_is_kept() -> None:
    train = Similarity(csr_array(np.eye(2, dtype=np.float32)))
    assert weigh_terms(train, invert_kernel(train.square(), 1.0), csr_array(np.ones((2, 1))), kept=1).indices.tolist() == [0]


@pytest.mark.parametrize("without", [[4], [0, 3, 5, 29]])
def test_weights_without_documents_are_those_of_a_regression_on_the_others(drawn: Drawn, without: list[int]) -> None:
    train, exact, gold = vectors(drawn)
    found = weigh_terms(Similarity(train), invert_kernel(Similarity(train).square()), drawn.gold, kept=99, without=np.array(without))
    others = np.delete(np.arange(30), without)
    plain = plain_scores(exact[others], gold[others], np.eye(exact.shape[1]), 0.3).T
    np.testing.assert_allclose(found.toarray(), plain, atol=1e-4)


@pytest.mark.parametrize("sampled", [1, 2, 8])
def test_the_largest_weights_are_found_among_terms_with_equal_columns(drawn: Drawn, sampled: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "COLUMNS_PER_SAMPLE", sampled)
    places = np.concatenate([np.arange(25), [7, 7, 3, 20, 20, 20]])
    train = csr_array(unit_rows(drawn.counts)[:, places])
    inverse = invert_kernel(Similarity(train).square())
    whole = weigh_terms(Similarity(train), inverse, drawn.gold, kept=99).toarray()
    pruned = weigh_terms(Similarity(train), inverse, drawn.gold, kept=3).toarray()
    for row, full in zip(pruned, whole, strict=True):
        assert set(np.flatnonzero(row)) == set(np.argsort(-np.abs(full), kind="stable")[: min(3, np.count_nonzero(full))])
        np.testing.assert_array_equal(row[row != 0], full[row != 0])


def test_labels_of_the_same_documents_are_solved_once(drawn: Drawn) -> None:
    distinct, label_of = merge_twins(drawn.gold)
    assert distinct.shape[1] == len(np.unique(drawn.gold.toarray(), axis=1).T)
    np.testing.assert_array_equal(distinct.toarray()[:, label_of], drawn.gold.toarray())
    none, nothing = merge_twins(csr_array(np.zeros((3, 0))))
    assert (none.shape, len(nothing)) == ((3, 0), 0)


@pytest.mark.parametrize("systems", [1, 1 << 26])
@pytest.mark.parametrize("most", [3, 99])
def test_each_label_is_solved_on_the_terms_that_weigh_most_in_its_own_documents(
    drawn: Drawn, most: int, systems: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ridge, "SYSTEM_ENTRIES", systems)
    train, exact, gold = vectors(drawn)
    terms, done = most - gold.sum(axis=0).astype(np.int64) % 2, list[int]()
    found = regress_on_own_terms(train, drawn.gold, 0.5, terms, done.append).toarray()
    for label, right in enumerate(gold.T):
        sums = exact.T @ right
        order = np.argsort(-sums, kind="stable")[: terms[label]]
        chosen = np.sort(order[sums[order] > 0])
        assert np.flatnonzero(found[label]).tolist() == chosen.tolist()
        own = exact[:, chosen]
        mass = (own[right > 0] ** 2).sum() / max(1, right.sum())
        solved = np.linalg.solve(own.T @ own + 0.5 * mass * np.eye(len(chosen)), sums[chosen])
        np.testing.assert_allclose(found[label, chosen], solved, atol=1e-4)
    assert sum(done) == len({column.tobytes() for column in gold.T if column.any()})


def test_labels_of_no_document_have_no_terms() -> None:
    train = csr_array(np.eye(3, dtype=np.float32))
    assert regress_on_own_terms(train, csr_array(np.zeros((3, 2))), 1.0, np.ones(2, dtype=np.int64)).nnz == 0
