"""The nearest of very many training documents: exact where all lists of documents fit, and
close to it where they do not.
"""

from __future__ import annotations

import numpy as np
import pytest
from drawn_counts import Drawn
from plant_scorers.lexical import unit_rows
from plant_scorers.nearest import NearestDocuments, share_labels
from plant_scorers.ridge import score_neighbours
from scipy.sparse import csr_array


def draw_texts(documents: int, words: int = 300) -> csr_array:
    """Vectors of documents whose words are as frequent as those of a language (Zipf)."""
    chance = np.random.default_rng(0)
    frequent = 1 / np.arange(1, words + 1)
    rows = [
        chance.choice(words, size=9, replace=False, p=frequent / frequent.sum())
        for _ in range(documents)
    ]
    idf = np.log(1 / frequent + 1)
    counts = csr_array(
        (idf[np.concatenate(rows)], np.concatenate(rows), np.arange(0, 9 * documents + 1, 9)),
        shape=(documents, words),
    )
    counts.sort_indices()
    return unit_rows(counts)


@pytest.mark.parametrize(("neighbours", "power"), [(1, 2.0), (7, 2.0), (30, 0.5), (1000, 1.0)])
def test_labels_are_those_of_all_documents_compared_where_all_lists_fit(
    drawn: Drawn, neighbours: int, power: float
) -> None:
    vectors = unit_rows(drawn.counts)
    found = share_labels(NearestDocuments(vectors).find(vectors, neighbours), drawn.gold, power)
    wanted = score_neighbours((vectors @ vectors.T).toarray(), drawn.gold, neighbours, power)
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), atol=1e-6)


def test_a_document_left_out_is_none_of_its_own_neighbours() -> None:
    vectors = draw_texts(200)
    rows = np.array([3, 50, 199])
    found = NearestDocuments(vectors).find(vectors[rows], 5, rows).toarray()
    everything = (vectors[rows] @ vectors.T).toarray()
    everything[np.arange(3), rows] = 0
    np.testing.assert_allclose(
        np.sort(found, axis=1)[:, -5:], np.sort(everything, axis=1)[:, -5:], atol=1e-6
    )


def test_few_postings_find_most_of_the_nearest_and_their_exact_cosines() -> None:
    vectors = draw_texts(3000)
    exact = (vectors[:100] @ vectors.T).toarray()
    found = NearestDocuments(vectors, postings=300, candidates=100).find(vectors[:100], 10)
    assert np.diff(found.indptr).tolist() == [10] * 100
    np.testing.assert_allclose(
        found.data, exact[np.repeat(np.arange(100), 10), found.indices], atol=1e-6
    )
    shares = np.add.reduceat(found.data, found.indptr[:-1]) / np.sort(exact, axis=1)[:, -10:].sum(
        axis=1
    )
    assert shares.mean() > 0.9


def test_a_word_of_every_document_costs_no_more_than_its_list() -> None:
    vectors = csr_array(np.linspace(0.1, 1, 50, dtype=np.float32)[:, None])
    found = NearestDocuments(vectors, postings=5, candidates=3).find(
        csr_array(np.ones((1, 1), dtype=np.float32)), 2
    )
    assert found.indices.tolist() == [48, 49]  # those in which it weighs most


def test_what_shares_no_term_has_no_neighbour() -> None:
    vectors = csr_array(np.array([[1, 0, 0], [0, 1, 0]], dtype=np.float32))
    found = NearestDocuments(vectors).find(
        csr_array(np.array([[0, 0, 1], [0, 0, 0]], dtype=np.float32)), 2
    )
    assert found.shape == (2, 2)
    assert not found.nnz
    assert not share_labels(found, csr_array(np.ones((2, 4), dtype=np.float32)), 2.0).nnz
