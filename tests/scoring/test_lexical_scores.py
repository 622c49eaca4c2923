"""Top lists against sorting, look-ups, blocks, ties, nDCG by a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scoring.conftest import Drawn, draw

from plant_cli.scoring.scores import (
    Scores,
    choose_best,
    cut_folds,
    cut_rows,
    find_pairs,
    keep_best,
    multiply_best,
    order_shares,
    score_blocks,
)


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 6), st.randoms())
def test_the_best_are_those_of_a_stable_sort_in_whatever_order_they_come(values: list[int], k: int, random) -> None:
    plain = sorted(range(len(values)), key=lambda label: (-values[label], label))[:k]
    order = list(range(len(values)))
    random.shuffle(order)
    chosen = choose_best(np.array([values[label] for label in order]), np.array(order, dtype=np.int64), k)
    assert [order[at] for at in chosen] == sorted(plain)


def test_lists_of_an_array_and_of_a_sparse_matrix_are_the_same_where_scores_are_positive() -> None:
    values = np.random.default_rng(0).random((6, 11)).astype(np.float32)
    dense, sparse = keep_best(values, 4), keep_best(csr_array(values), 4)
    np.testing.assert_array_equal(dense.matrix.toarray(), sparse.matrix.toarray())
    np.testing.assert_array_equal(dense.floor, sparse.floor)
    np.testing.assert_array_equal(dense.rank(4), np.argsort(-values, axis=1, kind="stable")[:, :4])


def test_a_sparse_matrix_lists_what_it_stores_and_ranks_end_with_minus_one() -> None:
    scores = keep_best(csr_array(np.array([[0.5, 0, 0, 0.25], [0, 0, 0, 0], [0, -1, 2, 0]], dtype=np.float32)), 3)
    np.testing.assert_array_equal(scores.rank(3), [[0, 3, -1], [-1, -1, -1], [2, 1, -1]])
    np.testing.assert_array_equal(scores.floor, [0, 0, -1])


def test_products_of_zero_and_below_are_not_listed() -> None:
    vectors = [csr_array(np.array(rows, dtype=np.float32)) for rows in ([[1.0, 1], [0, 1]], [[1.0, -1], [2, 0], [0, -3]])]
    np.testing.assert_array_equal(multiply_best(*vectors).rank(3), [[1, -1, -1], [-1, -1, -1]])


def test_what_is_not_listed_has_the_floor() -> None:
    scores = keep_best(np.array([[3.0, 1, 2], [-1, -2, -3]], dtype=np.float32), 2)
    rows, labels = np.divmod(np.arange(6), 3)
    np.testing.assert_array_equal(scores.look_up(rows, labels), [3, 2, 2, -1, -2, -2])
    empty = keep_best(csr_array((2, 3), dtype=np.float32))
    np.testing.assert_array_equal(empty.look_up(rows, labels), np.zeros(6))


def test_a_list_that_is_full_is_cut_at_its_least() -> None:
    scores = Scores.of(csr_array(np.array([[3.0, 1.0, 2.0, 0.0], [3.0, 0.0, 2.0, 0.0]])), k=3)
    assert scores.floor.tolist() == [1, 0]


def test_the_share_of_pairs_in_the_right_order_equals_a_plain_loop() -> None:
    chance = np.random.default_rng(0)
    values = chance.integers(0, 4, (6, 9)).astype(np.float32)  # many ties
    gold = (chance.random((6, 9)) < 0.4).astype(np.int64)
    gold[1], gold[2] = 0, 1  # nothing to put in order
    scores = keep_best(csr_array(values), 5)
    shown = np.where(scores.matrix.toarray() > 0, scores.matrix.toarray(), -1)
    plain = []
    for own, said in zip(gold.astype(bool), shown, strict=True):
        pairs = [(float(x > y) + float(x == y) / 2) for x in said[own] for y in said[~own]]
        plain += [np.mean(pairs)] if pairs else []
    found = order_shares(scores, csr_array(gold))
    assert 2 < len(found) == len(plain) < 6
    np.testing.assert_allclose(found, plain)


def test_pairs_are_found_where_they_are_stored(drawn: Drawn) -> None:
    rows, labels = np.divmod(np.arange(drawn.gold.shape[0] * drawn.gold.shape[1]), drawn.gold.shape[1])
    found = find_pairs(drawn.gold, rows, labels)
    np.testing.assert_array_equal(found >= 0, drawn.gold.toarray().ravel() > 0)
    np.testing.assert_array_equal(found[found >= 0], np.arange(drawn.gold.nnz))


def test_products_are_the_same_in_blocks_of_any_size(drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    other = csr_array(draw(1, documents=7).counts)
    whole = multiply_best(drawn.counts, other, 3)
    np.testing.assert_array_equal(whole.matrix.toarray(), keep_best(csr_array(drawn.counts @ other.T), 3).matrix.toarray())
    monkeypatch.setattr("plant_cli.scoring.scores.cut_rows", lambda rows, width: cut_rows(rows, width, 10))
    np.testing.assert_array_equal(multiply_best(drawn.counts, other, 3).matrix.toarray(), whole.matrix.toarray())


def test_no_documents_have_no_scores() -> None:
    none = score_blocks(0, 5, lambda block: np.zeros((0, 5), dtype=np.float32))
    assert none.matrix.shape == (0, 5)
    assert none.rank(2).shape == (0, 2)


def test_blocks_cover_all_rows_once_and_hold_few_pairs() -> None:
    blocks = list(cut_rows(10, 3, 7))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(10))
    assert all((block.stop - block.start) * 3 <= 7 for block in blocks)
    assert [block.stop - block.start for block in cut_rows(2, 100, 7)] == [1, 1]


def test_folds_are_drawn_from_all_of_train_and_leave_out_a_fifth_at_most() -> None:
    folds = cut_folds(100, 100)
    assert sorted(np.concatenate(folds).tolist()) == list(range(100))
    assert max(map(len, folds)) <= 20
    assert all(np.diff(fold).max() > 1 for fold in folds)  # no slices: neighbours in a file are often alike
