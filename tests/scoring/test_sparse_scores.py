"""Lists of labels against sorting: top k, look-ups, floors, blocks, ties; the best labels
without an array of all scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from drawn_counts import Drawn, draw
from hypothesis import given
from hypothesis import strategies as st
from plant_scorers.sparse_products import (
    BYTES_OF_A_PAIR,
    TermLists,
    multiply_best,
    score_blocks,
)
from scipy.sparse import csr_array

from plant_cli.api import Interrupted
from plant_cli.data.blocks import limit_memory, top_k
from plant_cli.runs.processes import default_threads
from plant_cli.scoring.sparse_scores import (
    SparseScores,
    cut_rows,
    find_pairs,
    keep_best,
    order_shares,
)
from plant_cli.scoring.top_labels import TopLabels, distinct_probabilities


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 6), st.randoms())
def test_the_best_are_those_of_a_stable_sort_in_whatever_order_they_come(
    values: list[int], k: int, random
) -> None:
    plain = sorted(range(len(values)), key=lambda label: (-values[label], label))[:k]
    order = list(range(len(values)))
    random.shuffle(order)
    chosen = top_k(np.array([values[label] for label in order]), k, np.array(order, dtype=np.int64))
    assert [order[at] for at in chosen] == sorted(plain)


def test_lists_of_an_array_and_of_a_sparse_matrix_are_the_same_where_scores_are_positive() -> None:
    values = np.random.default_rng(0).random((6, 11)).astype(np.float32)
    dense, sparse = keep_best(values, 4), keep_best(csr_array(values), 4)
    np.testing.assert_array_equal(dense.matrix.toarray(), sparse.matrix.toarray())
    np.testing.assert_array_equal(dense.floors, sparse.floors)
    np.testing.assert_array_equal(
        dense.top(3)[0], np.argsort(-values, axis=1, kind="stable")[:, :3]
    )  # the fourth is no better than others


def test_a_sparse_matrix_lists_what_it_stores() -> None:
    scores = keep_best(
        csr_array(np.array([[0.5, 0, 0, 0.25], [0, 0, 0, 0], [0, -1, 2, 0]], dtype=np.float32)), 3
    )
    assert [scores.matrix[[row]].indices.tolist() for row in range(3)] == [[0, 3], [], [1, 2]]
    np.testing.assert_array_equal(scores.floors, [[0], [0], [-1]])


def test_products_of_zero_and_below_are_not_listed() -> None:
    vectors = [
        csr_array(np.array(rows, dtype=np.float32))
        for rows in ([[1.0, 1], [0, 1]], [[1.0, -1], [2, 0], [0, -3]])
    ]
    np.testing.assert_array_equal(
        multiply_best(vectors[0], TermLists(csr_array(vectors[1].T))).matrix.toarray(),
        [[0, 2, 0], [0, 0, 0]],
    )


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_products_of_zero_and_below_are_listed_if_they_are_asked_for(k: int) -> None:
    chance = np.random.default_rng(0)
    documents = csr_array(chance.integers(0, 2, (40, 6)).astype(np.float32))
    by_term = csr_array(
        (chance.integers(-2, 3, (6, 9)) * (chance.random((6, 9)) < 0.3)).astype(np.float32)
    )  # many products are 0
    whole = keep_best((documents @ by_term).toarray(), k)
    found = multiply_best(documents, TermLists(by_term), k, signed=True)
    np.testing.assert_array_equal(found.matrix.indices, whole.matrix.indices)
    np.testing.assert_array_equal(found.matrix.indptr, whole.matrix.indptr)
    np.testing.assert_array_equal(found.matrix.data, whole.matrix.data)
    np.testing.assert_array_equal(found.floors, whole.floors)


@pytest.mark.parametrize("order", [None, np.arange(60), np.roll(np.arange(60)[::-1], 20)])
def test_lists_are_added_up_in_the_order_of_the_terms_and_not_copied_where_they_lie_so(
    order: npt.NDArray[np.int64] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(0)
    by_term = csr_array(
        (chance.normal(size=(60, 9)) * (chance.random((60, 9)) < 0.3)).astype(np.float32)
    )
    lists = TermLists(by_term, order)
    falling = np.sort(chance.permutation(60)[:40])[::-1]
    asked = falling if order is None else order[np.isin(order, falling)]
    weights = chance.random(40).astype(np.float32)

    def add_up(terms: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        sums = np.zeros(9, dtype=np.float32)
        for term, weight in zip(terms, weights, strict=True):
            sums += by_term[[term]].toarray()[0] * weight
        return sums

    other = chance.permutation(asked)
    np.testing.assert_array_equal(lists.add_up(other, weights), add_up(other))
    monkeypatch.setattr(csr_array, "__getitem__", None, raising=False)  # it would copy them
    found = lists.add_up(asked, weights)
    monkeypatch.undo()
    np.testing.assert_array_equal(found, add_up(asked))
    assert not lists.add_up(asked[:0], weights[:0]).any()


def test_what_is_not_listed_has_the_floor() -> None:
    scores = keep_best(np.array([[3.0, 1, 2], [-1, -2, -3]], dtype=np.float32), 2)
    rows, labels = np.divmod(np.arange(6), 3)
    np.testing.assert_array_equal(scores.look_up(rows, labels), [3, 2, 2, -1, -2, -2])
    np.testing.assert_array_equal(scores.dense(np.array([1, 0])), [[-1, -2, -2], [3, 2, 2]])
    empty = keep_best(csr_array((2, 3), dtype=np.float32))
    np.testing.assert_array_equal(empty.look_up(rows, labels), np.zeros(6))


def test_a_list_that_is_full_is_cut_at_its_least() -> None:
    scores = SparseScores.of(csr_array(np.array([[3.0, 1.0, 2.0, 0.0], [3.0, 0.0, 2.0, 0.0]])), k=3)
    assert scores.floors.tolist() == [[1], [0]]


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
    rows, labels = np.divmod(
        np.arange(drawn.gold.shape[0] * drawn.gold.shape[1]), drawn.gold.shape[1]
    )
    found = find_pairs(drawn.gold, rows, labels)
    np.testing.assert_array_equal(found >= 0, drawn.gold.toarray().ravel() > 0)
    np.testing.assert_array_equal(found[found >= 0], np.arange(drawn.gold.nnz))


def test_products_are_the_same_in_blocks_of_any_size(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = csr_array(draw(1, documents=7).counts.T)
    whole = multiply_best(drawn.counts, TermLists(other), 3)
    np.testing.assert_array_equal(
        whole.matrix.toarray(), keep_best(csr_array(drawn.counts @ other), 3).matrix.toarray()
    )
    monkeypatch.setattr(
        "plant_cli.scoring.sparse_scores.cut_rows",
        lambda rows, width, most: cut_rows(rows, width, 10),
    )
    np.testing.assert_array_equal(
        multiply_best(drawn.counts, TermLists(other), 3).matrix.toarray(), whole.matrix.toarray()
    )


def test_under_a_memory_limit_blocks_are_smaller_and_scores_the_same(drawn: Drawn) -> None:
    sizes: list[int] = []

    def score(block: slice) -> Any:
        sizes.append(block.stop - block.start)
        return drawn.counts[block].toarray().astype(np.float32)

    whole = score_blocks(30, drawn.counts.shape[1], score, 3).matrix.toarray()
    limit_memory(2 * BYTES_OF_A_PAIR * default_threads() * 4 * drawn.counts.shape[1])
    try:
        np.testing.assert_array_equal(
            score_blocks(30, drawn.counts.shape[1], score, 3).matrix.toarray(), whole
        )
    finally:
        limit_memory(None)
    assert sizes == [30, *[4] * 7, 2]


def test_no_documents_have_no_scores() -> None:
    none = score_blocks(0, 5, lambda block: np.zeros((0, 5), dtype=np.float32))
    assert none.matrix.shape == (0, 5)
    assert none.top(2)[0].shape == (0, 2)


def test_blocks_cover_all_rows_once_and_hold_few_pairs() -> None:
    blocks = list(cut_rows(10, 3, 7))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(10))
    assert all((block.stop - block.start) * 3 <= 7 for block in blocks)
    assert [block.stop - block.start for block in cut_rows(2, 100, 7)] == [1, 1]


def draw_grouped(seed: int, density: float, documents: int = 70, labels: int = 300) -> SparseScores:
    """Few labels of a document are listed, the others have one of twelve floors; there are few
    different scores, so many are equal.
    """
    chance = np.random.default_rng(seed)
    listed = chance.random((documents, labels)) < density
    values = csr_array(
        (chance.integers(-4, 5, listed.sum()).astype(np.float32), np.nonzero(listed)),
        shape=(documents, labels),
    )
    values.sort_indices()
    floors = chance.integers(-6, 3, (documents, 12)).astype(np.float32)
    return SparseScores(matrix=values, floors=floors, groups=chance.integers(0, 12, labels))


@pytest.mark.parametrize("k", [1, 5, 100, 1000])
@pytest.mark.parametrize("density", [0.0, 0.005, 0.1, 0.6, 1.0])
def test_the_best_labels_are_those_of_a_stable_sort_of_all_scores(density: float, k: int) -> None:
    for seed in range(5):
        scores = draw_grouped(seed, density)
        dense = scores.dense(np.arange(70))
        labels, values, above = scores.top(k)
        np.testing.assert_array_equal(labels, np.argsort(-dense, axis=1, kind="stable")[:, :k])
        np.testing.assert_array_equal(values, np.take_along_axis(dense, labels, axis=1))
        assert above == (dense >= 0).sum()
        rows, columns = np.divmod(np.arange(dense.size), dense.shape[1])
        np.testing.assert_array_equal(scores.look_up(rows, columns), dense.ravel())


def test_no_array_of_all_labels_is_made() -> None:
    """An array of all pairs would have 24 GB, and parts of it take minutes."""
    labels, documents = 2_000_000, 3_000
    cells = (
        np.zeros(documents, dtype=np.float32),
        np.arange(documents) * 7,
        np.arange(documents + 1),
    )
    floors = np.tile(np.array([[-2.0, -1.0]], dtype=np.float32), (documents, 1))
    found = TopLabels.of(
        SparseScores(
            matrix=csr_array(cells, shape=(documents, labels)),
            floors=floors,
            groups=np.arange(labels) % 2,
        ),
        3,
    )
    assert found.labels[[0, 1, 2_999]].tolist() == [[0, 1, 3], [7, 1, 3], [20_993, 1, 3]]
    assert found.assigned_share == 1 / labels


def test_it_stops_when_it_is_asked_to() -> None:
    with pytest.raises(Interrupted):
        TopLabels.of(draw_grouped(0, 0.1), 3, lambda: True)


def test_different_logits_have_different_probabilities_and_equal_ones_the_same() -> None:
    logits = np.array(
        [
            [90.0, 60.0, 60.0, 50.0, 37.0, 3.0, 0.0, -2.0, -2.0],
            [2.0, 1.0, 0.5, 0.0, 0.0, -1.0, -1.5, -40.0, -90.0],
        ]
    )
    found = distinct_probabilities(logits)
    assert np.array_equal(np.diff(found, axis=1) < 0, np.diff(logits, axis=1) < 0)
    assert np.allclose(found, 1 / (1 + np.exp(-logits)), rtol=1e-12, atol=1e-15)
    assert found[0, 1] < 1.0
