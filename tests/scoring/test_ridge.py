"""Ridge in double precision with every document left out in turn, its weights, and conjugate gradients."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array
from scoring.conftest import Drawn, draw

from plant_cli.scoring import ridge
from plant_cli.scoring import scores as squares
from plant_cli.scoring.lexical import unit_rows
from plant_cli.scoring.ridge import invert_kernel, leave_out_ridge, merge_twins, solve_labels, solve_ridge, weigh_terms
from plant_cli.scoring.scores import Similarity, multiply_best

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


def test_a_second_kernel_is_added(drawn: Drawn) -> None:
    train, exact, gold = vectors(drawn)
    states = np.random.default_rng(0).normal(size=(30, 4))
    kernel = Similarity(train).square() + np.float32(0.5) * (states @ states.T).astype(np.float32)
    found = leave_out_ridge(invert_kernel(kernel)[[7]], np.array([7]), drawn.gold)
    joined, others = np.hstack([exact, np.sqrt(0.5) * states]), np.delete(np.arange(30), 7)
    np.testing.assert_allclose(found, plain_scores(joined[others], gold[others], joined[[7]], 0.3), atol=1e-4)


def test_the_inverse_is_whole_in_blocks_of_any_size(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Similarity(unit_rows(drawn.counts)).square()
    before = kernel.copy()
    for side in (7, 30, 1024):
        monkeypatch.setattr(squares, "SIDE", side)
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
    monkeypatch.setattr(ridge, "SAMPLED", sampled)
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


def test_conjugate_gradients_solve_the_same_system(drawn: Drawn) -> None:
    train, exact, gold = vectors(drawn)
    right = np.hstack([gold, np.eye(30)[:, [3, 8]]]).astype(np.float32)
    found = solve_ridge(train, right, 0.3, tolerance=1e-6)
    np.testing.assert_allclose(found, np.linalg.solve(exact @ exact.T + 0.3 * np.eye(30), right), atol=1e-4)
    np.testing.assert_allclose(
        leave_out_ridge(found[:, -2:].T, np.array([3, 8]), drawn.gold),
        leave_out_ridge(invert_kernel(Similarity(train).square())[[3, 8]], np.array([3, 8]), drawn.gold),
        atol=1e-3,
    )
    assert not solve_ridge(train, np.zeros((30, 2), dtype=np.float32)).any()
