"""Cosines with relevance, and the same with each document left out and everything computed anew."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest
from scipy.sparse import csr_array
from scoring.conftest import Drawn

from plant_cli.api.signals import Counts
from plant_cli.relevance.normalise import mutual_information
from plant_cli.scoring.lexical import (
    cut_labels,
    document_frequencies,
    inverse_frequency,
    leave_out_words,
    make_vectors,
    measure_relevance,
    score_words,
    unit_rows,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def positive_information(both: Ints, word: Ints, label: Ints, documents: int) -> Floats:
    """Mutual information of words that are more frequent with the label than without."""
    gain = mutual_information(Counts(n_docs=documents, docs_with_word=word, docs_with_label=label, docs_with_both=both))
    return np.where(both * documents > word * label, gain, 0.0)


def share(both: Ints, word: Ints, label: Ints, documents: int) -> Floats:
    """A measure that no cancellation can flatter: how many of the word's and the label's documents have both."""
    return both / np.maximum(1, word + label - both) + both / documents


MEASURES = [positive_information, share]


def plain_left_out(drawn: Drawn, document: int, measure, min_df: int) -> list[float]:
    """Cosines of one document with relevance and idf computed in loops from the others alone."""
    counts, gold = drawn.counts.toarray(), drawn.gold.toarray() > 0
    others = [d for d in range(len(counts)) if d != document]
    df = [sum(counts[d, w] > 0 for d in others) for w in range(counts.shape[1])]
    known = [w for w, n in enumerate(df) if n >= max(1, min_df)]
    vector = [(1 + math.log(tf)) * math.log((len(others) + 1) / (df[w] + 1)) if (tf := counts[document, w]) else 0.0 for w in known]
    cosines = []
    for label in range(gold.shape[1]):
        has = [d for d in others if gold[d, label]]
        both = np.array([sum(counts[d, w] > 0 for d in has) for w in known])
        row = np.where(both > 0, measure(both, np.array([df[w] for w in known]), np.full(len(known), len(has)), len(others)), 0.0)
        lengths = math.hypot(*vector) * math.hypot(*row)
        cosines.append(float(np.dot(vector, row)) / lengths if lengths else 0.0)
    return cosines


@pytest.mark.parametrize("min_df", [1, 6, 7, 11])
@pytest.mark.parametrize("measure", MEASURES)
def test_leaving_out_is_computing_anew_without_the_document(drawn: Drawn, measure, min_df: int) -> None:
    found = leave_out_words(drawn.counts, drawn.gold, measure, k=99, min_df=min_df).matrix.toarray()
    plain = [plain_left_out(drawn, document, measure, min_df) for document in range(len(found))]
    np.testing.assert_allclose(found, plain, atol=2e-6)


def test_a_label_that_only_the_document_has_says_nothing_of_it(drawn: Drawn) -> None:
    assert leave_out_words(drawn.counts, drawn.gold, positive_information, k=99).matrix.toarray()[3, 0] == 0.0
    vectors = make_vectors(drawn.counts, inverse_frequency(30, document_frequencies(drawn.counts)))
    whole = score_words(vectors, measure_relevance(drawn.counts, drawn.gold, positive_information), k=99)
    assert whole.matrix.toarray()[3, 0] > 0.5


def test_only_the_documents_asked_for_are_scored(drawn: Drawn) -> None:
    rows = np.array([7, 3])
    whole = leave_out_words(drawn.counts, drawn.gold, share, k=99).matrix.toarray()
    np.testing.assert_allclose(leave_out_words(drawn.counts, drawn.gold, share, rows, k=99).matrix.toarray(), whole[rows], atol=1e-7)


@pytest.mark.parametrize("measure", MEASURES)
def test_relevance_is_that_of_every_word_that_meets_the_label(drawn: Drawn, measure) -> None:
    found = measure_relevance(drawn.counts, drawn.gold, measure).toarray()
    counts, gold = drawn.counts.toarray() > 0, drawn.gold.toarray() > 0
    for label in range(gold.shape[1]):
        both = (counts & gold[:, [label]]).sum(axis=0)
        plain = measure(both, counts.sum(axis=0), np.full(len(both), gold[:, label].sum()), len(counts))
        expected = np.where(both > 0, plain, 0)
        np.testing.assert_allclose(found[label], expected / (np.linalg.norm(expected) or 1), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("pairs", [1, 12, 40])
def test_labels_some_at_a_time_are_all_labels_at_once(drawn: Drawn, pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = drawn.counts, drawn.gold, positive_information
    whole, few = measure_relevance(*given).toarray(), measure_relevance(*given, 3).toarray()
    left_out, best = leave_out_words(*given, k=99).matrix.toarray(), leave_out_words(*given, k=4)
    monkeypatch.setattr("plant_cli.scoring.lexical.PAIRS", pairs)
    assert len(cut_labels(drawn.counts, drawn.gold)) > 1
    np.testing.assert_array_equal(measure_relevance(*given).toarray(), whole)
    np.testing.assert_array_equal(measure_relevance(*given, 3).toarray(), few)
    np.testing.assert_allclose(leave_out_words(*given, k=99).matrix.toarray(), left_out, atol=1e-7)
    again = leave_out_words(*given, k=4)
    np.testing.assert_allclose(again.matrix.toarray(), best.matrix.toarray(), atol=1e-7)
    np.testing.assert_allclose(again.floor, best.floor, atol=1e-7)


def test_memory_does_not_grow_with_documents_times_the_words_of_frequent_labels() -> None:
    rng = np.random.default_rng(0)
    documents, words, labels = 400, 4000, 8
    counts = csr_array((rng.random((documents, words)) < 0.02).astype(np.int64))
    gold = csr_array((rng.random((documents, labels)) < 0.5).astype(np.int64))
    leave_out_words(counts[:50], gold[:50], positive_information)  # what is imported and cached at first
    tracemalloc.start()
    leave_out_words(counts, gold, positive_information)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 150e6  # 1,600 pairs of a document and its label, each with 4,000 words: 12 bytes each are 77 MB, and several such arrays


def test_slices_of_labels_meet_no_more_words_than_they_may(drawn: Drawn) -> None:
    slices = cut_labels(drawn.counts, drawn.gold, 40)
    assert [label for part in slices for label in range(part.start, part.stop)] == list(range(drawn.gold.shape[1]))
    met = (drawn.gold.T @ (drawn.counts > 0)).toarray() > 0
    assert all(met[part].sum() <= 40 or part.stop == part.start + 1 for part in slices)
    assert cut_labels(drawn.counts, csr_array((30, 0))) == []


def test_scores_are_cosines_whatever_the_scale_of_a_label(drawn: Drawn) -> None:
    vectors = unit_rows(drawn.counts)
    relevance = measure_relevance(drawn.counts, drawn.gold, positive_information)
    scores = score_words(vectors, relevance, k=99).matrix.toarray()
    rows = relevance.toarray()
    for d, vector in enumerate(vectors.toarray()):
        for label, row in enumerate(rows):
            length = math.hypot(*row)
            assert scores[d, label] == pytest.approx(float(vector @ row) / length if length else 0.0, abs=1e-6)
    scaled = csr_array(np.diag(np.arange(1.0, 10)) @ rows)
    np.testing.assert_allclose(score_words(vectors, scaled, k=99).matrix.toarray(), scores, atol=1e-6)


def test_another_order_of_labels_moves_their_scores_with_them(drawn: Drawn) -> None:
    order = np.random.default_rng(0).permutation(drawn.gold.shape[1])
    found = leave_out_words(drawn.counts, drawn.gold, positive_information, k=99).matrix.toarray()
    moved = leave_out_words(drawn.counts, csr_array(drawn.gold[:, order]), positive_information, k=99).matrix.toarray()
    np.testing.assert_allclose(moved, found[:, order], atol=1e-7)
