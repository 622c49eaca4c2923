"""Words, n-grams, passages and titles as vectors, and the relevance of words: against plain
loops.
"""

from __future__ import annotations

import math
import tracemalloc
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from drawn_counts import Drawn
from hypothesis import given
from hypothesis import strategies as st
from plant_scorers.lexical import (
    WEIGHT_OF_NUMBERS,
    GramColumns,
    count_known,
    count_pieces,
    cut_by_words,
    cut_documents,
    cut_leads,
    cut_vocabulary,
    cut_word,
    document_frequencies,
    inverse_frequency,
    join_views,
    leave_out_words,
    make_vectors,
    measure_relevance,
    unit_rows,
    weigh_counts,
    weigh_numbers,
)
from scipy.sparse import csr_array

from plant_cli.api import Documents
from plant_cli.api.signals import Counts
from plant_cli.data.tensors import pack_matrix, pack_strings, unpack_matrix, unpack_strings
from plant_cli.data.words import number_words
from plant_cli.relevance.mutual_information import mutual_information

TEXTS = ["a fever and a cough", "", "leg", "one two three four five six seven"]
WORDS = [text.split() for text in TEXTS]


def spelt(documents: Documents) -> list[list[str]]:
    parts = np.split(documents.numbers, documents.ends[1:-1])
    return [[documents.vocabulary[number] for number in part] for part in parts]


def test_words_and_their_counts() -> None:
    documents = number_words(WORDS)
    assert len(documents) == 4
    assert spelt(documents) == WORDS
    counts = documents.counts.toarray()
    for row, words in enumerate(WORDS):
        expected = Counter(words)
        assert [counts[row, place] for place in range(len(documents.vocabulary))] == [
            expected[word] for word in documents.vocabulary
        ]
    assert spelt(documents) == WORDS, "counting leaves the words in their order"


def test_counting_by_another_vocabulary() -> None:
    places = {"cough": 0, "unknown": 1, "a": 2}
    assert count_known(number_words(WORDS), places).toarray().tolist() == [
        [1, 0, 2],
        [0, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert count_known(number_words([]), places).shape == (0, 3)


@pytest.mark.parametrize("kept", [None, 0, 99])
def test_counting_pieces(kept: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = number_words(WORDS)
    pieces = sorted({piece for words in WORDS[:2] for word in words for piece in cut_word(word)})
    places = {piece: place for place, piece in enumerate(pieces)}
    if kept is not None:
        monkeypatch.setattr("plant_scorers.lexical.WORDS_KEPT", kept)
        places = GramColumns(pieces)
        assert cut_vocabulary(number_words(WORDS[1:]), places).dtype == np.float64
    found = count_pieces(documents.counts, cut_vocabulary(documents, places)).toarray()
    for row, words in enumerate(WORDS):
        expected = Counter(piece for word in words for piece in cut_word(word))
        assert found[row].tolist() == [expected[piece] for piece in pieces]


def test_some_of_the_documents() -> None:
    assert spelt(number_words(WORDS).take(np.array([3, 0, 0]))) == [WORDS[3], WORDS[0], WORDS[0]]
    assert len(number_words(WORDS).take(np.zeros(0, dtype=np.int64))) == 0


def cut_passages(words: Sequence[str], length: int) -> list[Sequence[str]]:
    """Passages of one document, plainly: each begins half a length after the one before it; a
    short document is one.
    """
    step = max(1, length // 2)
    return [
        words[start : start + length]
        for start in range(0, max(1, len(words) - length + step), step)
    ]


def test_passages_are_those_of_words() -> None:
    for length in (1, 2, 3, 4, 7, 99):
        cut, owners = cut_documents(number_words(WORDS), length)
        expected = [
            (row, list(part))
            for row, words in enumerate(WORDS)
            for part in cut_passages(words, length)
        ]
        assert list(zip(owners.tolist(), spelt(cut), strict=True)) == expected


def test_beginnings() -> None:
    assert spelt(cut_leads(number_words(WORDS), 2)) == [words[:2] for words in WORDS]


def test_what_is_packed_is_unpacked() -> None:
    strings = ("a", "", "with\nline", "é")
    assert unpack_strings(pack_strings(strings)) == strings
    assert unpack_strings(pack_strings(())) == ()
    counts = number_words(WORDS).counts
    found = unpack_matrix("counts", pack_matrix("counts", counts))
    assert found.shape == counts.shape
    assert np.array_equal(found.toarray(), counts.toarray().astype(np.float32))


@pytest.mark.parametrize(
    ("part", "value"), [("indices", -1), ("indices", 2**30), ("indptr", 2**30)]
)
def test_a_damaged_matrix_is_refused(part: str, value: int) -> None:
    """Compiled code would read beyond its memory there."""
    packed = pack_matrix("counts", number_words(WORDS).counts)
    packed[f"counts.{part}"][1] = value
    with pytest.raises(ValueError, match="ind"):
        unpack_matrix("counts", packed)


def test_a_word_is_cut_between_its_ends() -> None:
    assert cut_word("art", 3, 4) == [" ar", "art", "rt ", " art", "art "]


def test_a_word_shorter_than_the_shortest_is_one_itself() -> None:
    assert cut_word("é", 4, 5) == [" é "]
    assert cut_word("é", 3, 5) == [" é "]


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Zs"]), min_size=1, max_size=12))
def test_every_piece_is_in_the_word_and_every_position_begins_one(word: str) -> None:
    pieces = cut_word(word)
    assert all(piece in f" {word} " for piece in pieces)
    assert {piece for piece in pieces if len(piece) == 3} == {
        f" {word} "[i : i + 3] for i in range(len(word))
    }


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
    np.testing.assert_array_equal(
        weigh_counts(counts).data, 1 + np.log(np.array([3, 1], dtype=np.float32))
    )


def test_rows_have_length_one_however_long_they_were_and_empty_rows_stay_empty(
    drawn: Drawn,
) -> None:
    unit = unit_rows(drawn.counts)
    np.testing.assert_allclose(
        np.linalg.norm(unit.toarray(), axis=1), drawn.counts.sum(axis=1) > 0, atol=1e-6
    )
    np.testing.assert_allclose(
        unit_rows(csr_array(drawn.counts * 7.5)).toarray(), unit.toarray(), atol=1e-7
    )


def test_products_of_joined_views_are_means_of_their_products(drawn: Drawn) -> None:
    views = [unit_rows(drawn.counts), unit_rows(csr_array(drawn.counts[:, ::-1] ** 2))]
    products = [(view @ view.T).toarray() for view in views]
    alike = join_views(views)
    np.testing.assert_allclose(
        (alike @ alike.T).toarray(), (products[0] + products[1]) / 2, atol=1e-6
    )


Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def positive_information(both: Ints, word: Ints, label: Ints, documents: int) -> Floats:
    """Mutual information of words that are more frequent with the label than without."""
    gain = mutual_information(
        Counts(n_docs=documents, docs_with_word=word, docs_with_label=label, docs_with_both=both)
    )
    return np.where(both * documents > word * label, gain, 0.0)


def share(both: Ints, word: Ints, label: Ints, documents: int) -> Floats:
    """A measure that no cancellation can flatter: how many of the word's and the label's
    documents have both.
    """
    return both / np.maximum(1, word + label - both) + both / documents


MEASURES = [positive_information, share]


def plain_left_out(
    drawn: Drawn, document: int, measure, min_df: int, weights: Floats
) -> list[float]:
    """Cosines of one document with relevance and idf computed in loops from the others alone."""
    counts, gold = drawn.counts.toarray(), drawn.gold.toarray() > 0
    others = [d for d in range(len(counts)) if d != document]
    df = [sum(counts[d, w] > 0 for d in others) for w in range(counts.shape[1])]
    known = [w for w, n in enumerate(df) if n >= max(1, min_df)]
    idf = {w: weights[w] * math.log((len(others) + 1) / (df[w] + 1)) for w in known}
    vector = [(1 + math.log(tf)) * idf[w] if (tf := counts[document, w]) else 0.0 for w in known]
    cosines = []
    for label in range(gold.shape[1]):
        has = [d for d in others if gold[d, label]]
        both = np.array([sum(counts[d, w] > 0 for d in has) for w in known])
        row = np.where(
            both > 0,
            measure(
                both, np.array([df[w] for w in known]), np.full(len(known), len(has)), len(others)
            ),
            0.0,
        )
        lengths = math.hypot(*vector) * math.hypot(*row)
        cosines.append(float(np.dot(vector, row)) / lengths if lengths else 0.0)
    return cosines


@pytest.mark.parametrize("min_df", [1, 6, 7, 11])
@pytest.mark.parametrize("measure", MEASURES)
def test_leaving_out_is_computing_anew_without_the_document(
    drawn: Drawn, measure, min_df: int
) -> None:
    weights = np.ones(drawn.counts.shape[1])
    for chosen in (None, weigh_numbers([f"w{w}" if w % 2 else "w" for w in range(len(weights))])):
        found = leave_out_words(
            drawn.counts, drawn.gold, measure, k=99, min_df=min_df, weights=chosen
        ).matrix.toarray()
        plain = [
            plain_left_out(drawn, document, measure, min_df, weights if chosen is None else chosen)
            for document in range(len(found))
        ]
        np.testing.assert_allclose(found, plain, atol=2e-6)


def test_words_and_pieces_with_digits_count_less() -> None:
    terms = ["type", "type2", "2", " 2 ", "型２", "c++", ".net", "été"]
    assert weigh_numbers(terms).tolist() == [1, *[WEIGHT_OF_NUMBERS] * 4, 1, 1, 1]


def test_a_label_that_only_the_document_has_says_nothing_of_it(drawn: Drawn) -> None:
    assert (
        leave_out_words(drawn.counts, drawn.gold, positive_information, k=99).matrix.toarray()[3, 0]
        == 0.0
    )
    vectors = make_vectors(drawn.counts, inverse_frequency(30, document_frequencies(drawn.counts)))
    whole = vectors @ measure_relevance(drawn.counts, drawn.gold, positive_information).T
    assert whole.toarray()[3, 0] > 0.5


def test_only_the_documents_asked_for_are_scored(drawn: Drawn) -> None:
    rows = np.array([7, 3])
    whole = leave_out_words(drawn.counts, drawn.gold, share, k=99).matrix.toarray()
    np.testing.assert_allclose(
        leave_out_words(drawn.counts, drawn.gold, share, rows, k=99).matrix.toarray(),
        whole[rows],
        atol=1e-7,
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_relevance_is_that_of_every_word_that_meets_the_label(drawn: Drawn, measure) -> None:
    found = measure_relevance(drawn.counts, drawn.gold, measure).toarray()
    counts, gold = drawn.counts.toarray() > 0, drawn.gold.toarray() > 0
    for label in range(gold.shape[1]):
        both = (counts & gold[:, [label]]).sum(axis=0)
        plain = measure(
            both, counts.sum(axis=0), np.full(len(both), gold[:, label].sum()), len(counts)
        )
        expected = np.where(both > 0, plain, 0)
        np.testing.assert_allclose(
            found[label], expected / (np.linalg.norm(expected) or 1), rtol=1e-5, atol=1e-7
        )


@pytest.mark.parametrize("pairs", [1, 12, 40])
def test_labels_some_at_a_time_are_all_labels_at_once(
    drawn: Drawn, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = drawn.counts, drawn.gold, positive_information
    whole, few = measure_relevance(*given).toarray(), measure_relevance(*given, 3).toarray()
    left_out, best = leave_out_words(*given, k=99).matrix.toarray(), leave_out_words(*given, k=4)
    monkeypatch.setattr("plant_scorers.lexical.WORD_LABEL_PAIRS", pairs)
    assert len(cut_by_words(drawn.counts, drawn.gold)) > 1
    np.testing.assert_array_equal(measure_relevance(*given).toarray(), whole)
    np.testing.assert_array_equal(measure_relevance(*given, 3).toarray(), few)
    np.testing.assert_allclose(leave_out_words(*given, k=99).matrix.toarray(), left_out, atol=1e-7)
    again = leave_out_words(*given, k=4)
    np.testing.assert_allclose(again.matrix.toarray(), best.matrix.toarray(), atol=1e-7)
    np.testing.assert_allclose(again.floors, best.floors, atol=1e-7)


def test_memory_does_not_grow_with_documents_times_the_words_of_frequent_labels() -> None:
    rng = np.random.default_rng(0)
    documents, words, labels = 400, 4000, 8
    counts = csr_array((rng.random((documents, words)) < 0.02).astype(np.int64))
    gold = csr_array((rng.random((documents, labels)) < 0.5).astype(np.int64))
    leave_out_words(
        counts[:50], gold[:50], positive_information
    )  # what is imported and cached at first
    tracemalloc.start()
    leave_out_words(counts, gold, positive_information)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (
        held < 150e6
    )  # 1,600 pairs of a document and its label, each with 4,000 words: 12 bytes each are 77 MB, and several such arrays


def test_slices_of_labels_meet_no_more_words_than_they_may(drawn: Drawn) -> None:
    slices = cut_by_words(drawn.counts, drawn.gold, 40)
    assert [label for part in slices for label in range(part.start, part.stop)] == list(
        range(drawn.gold.shape[1])
    )
    met = (drawn.gold.T @ (drawn.counts > 0)).toarray() > 0
    assert all(met[part].sum() <= 40 or part.stop == part.start + 1 for part in slices)
    assert cut_by_words(drawn.counts, csr_array((30, 0))) == []


def test_another_order_of_labels_moves_their_scores_with_them(drawn: Drawn) -> None:
    order = np.random.default_rng(0).permutation(drawn.gold.shape[1])
    found = leave_out_words(drawn.counts, drawn.gold, positive_information, k=99).matrix.toarray()
    moved = leave_out_words(
        drawn.counts, csr_array(drawn.gold[:, order]), positive_information, k=99
    ).matrix.toarray()
    np.testing.assert_allclose(moved, found[:, order], atol=1e-7)
