"""Tf-idf by a plain loop, lengths of 1, and views that add up."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array, diags_array
from scoring.conftest import Drawn

from plant_cli.scoring.lexical import document_frequencies, inverse_frequency, join_views, make_vectors, unit_rows, weigh_counts


def test_vectors_are_those_of_a_plain_loop(drawn: Drawn) -> None:
    counts = drawn.counts.toarray()
    documents, words = counts.shape
    df = [sum(counts[d, w] > 0 for d in range(documents)) for w in range(words)]
    idf = [math.log((documents + 1) / (n + 1)) for n in df]
    np.testing.assert_array_equal(document_frequencies(drawn.counts), df)
    found = make_vectors(drawn.counts, inverse_frequency(documents, np.array(df))).toarray()
    for d in range(documents):
        row = [(1 + math.log(counts[d, w])) * idf[w] if counts[d, w] else 0.0 for w in range(words)]
        length = math.hypot(*row) or 1.0
        np.testing.assert_allclose(found[d], [value / length for value in row], atol=1e-7)


def test_without_weights_only_counts_are_damped_in_their_own_type() -> None:
    counts = csr_array(np.array([[3.0, 0, 1]], dtype=np.float32))
    np.testing.assert_array_equal(weigh_counts(counts).data, 1 + np.log(np.array([3, 1], dtype=np.float32)))


def test_rows_have_length_one_however_long_they_were_and_empty_rows_stay_empty(drawn: Drawn) -> None:
    unit = unit_rows(drawn.counts)
    np.testing.assert_allclose(np.linalg.norm(unit.toarray(), axis=1), drawn.counts.sum(axis=1) > 0, atol=1e-6)
    np.testing.assert_allclose(unit_rows(csr_array(drawn.counts * 7.5)).toarray(), unit.toarray(), atol=1e-7)


def test_products_of_joined_views_are_weighted_means_of_their_products(drawn: Drawn) -> None:
    views = [unit_rows(drawn.counts), unit_rows(csr_array(drawn.counts[:, ::-1] ** 2))]
    products = [(view @ view.T).toarray() for view in views]
    joined = join_views(views, [3, 1])
    np.testing.assert_allclose((joined @ joined.T).toarray(), (3 * products[0] + products[1]) / 4, atol=1e-6)
    alike = join_views(views)
    np.testing.assert_allclose((alike @ alike.T).toarray(), (products[0] + products[1]) / 2, atol=1e-6)


def test_the_two_scores_that_stood_apart_are_unchanged_to_the_bit(drawn: Drawn) -> None:
    """Lexical scores of the network and the shortlist `words` each had these formulas to themselves."""
    relevance = csr_array(np.random.default_rng(0).random((9, 25)) * (drawn.counts[:9].toarray() > 0)).astype(np.float32)
    df = document_frequencies(drawn.counts)
    idf = inverse_frequency(30, df)
    np.testing.assert_array_equal(idf, np.log((30 + 1) / (df + 1)))

    network = drawn.counts.copy()
    network.data = ((1 + np.log(network.data)) * idf.astype(np.float32)[network.indices]).astype(np.float32)
    lengths = np.sqrt(network.multiply(network).sum(axis=1))
    network = csr_array(diags_array(1.0 / np.where(lengths > 0, lengths, 1.0), dtype=np.float64) @ network, dtype=np.float32)
    np.testing.assert_array_equal(make_vectors(drawn.counts, idf.astype(np.float32)).toarray(), network.toarray())

    lengths = np.sqrt(relevance.power(2).sum(axis=1))
    shortlist = csr_array(diags_array(1 / np.where(lengths > 0, lengths, 1)) @ relevance @ diags_array(idf), dtype=np.float32)
    found = csr_array(unit_rows(relevance) @ diags_array(idf), dtype=np.float32)
    np.testing.assert_array_equal(found.toarray(), shortlist.toarray())
