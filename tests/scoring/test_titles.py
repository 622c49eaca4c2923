"""Matches with names: the maximum over names and passages, labels without documents or names."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.scoring.lexical import count_grams, fold_highest, number_grams, score_passages, unit_rows
from plant_cli.scoring.scores import cut_rows


def drawn(rows: int, seed: int) -> csr_array:
    """Sparse vectors of length 1."""
    chance = np.random.default_rng(seed)
    return unit_rows(csr_array(chance.random((rows, 12)) * (chance.random((rows, 12)) < 0.4)))


def test_a_label_has_the_score_of_its_best_name_and_one_without_names_has_none() -> None:
    documents, names, label_of = drawn(5, 0), drawn(6, 1), np.array([3, 0, 3, 1, 3, 0])
    found = score_passages(documents, np.arange(5), names, label_of, (5, 4), k=99).matrix.toarray()
    cosines = documents.toarray() @ names.toarray().T
    plain = [[max([row[name] for name in range(6) if label_of[name] == label], default=0.0) for label in range(4)] for row in cosines]
    np.testing.assert_allclose(found, plain, atol=1e-7)
    assert not found[:, 2].any()


@pytest.mark.parametrize("pairs", [1, 20, 10_000])
def test_a_document_has_the_score_of_its_best_passage_in_blocks_of_any_size(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plant_cli.scoring.lexical.cut_rows", lambda rows, width: cut_rows(rows, width, pairs))
    passages, document_of = drawn(7, 2), np.array([0, 0, 0, 2, 2, 3, 3])  # the second document has none
    names, label_of = drawn(5, 3), np.array([0, 1, 1, 2, 0])
    found = score_passages(passages, document_of, names, label_of, (4, 3), k=99).matrix.toarray()
    cosines = passages.toarray() @ names.toarray().T
    plain = [[cosines[np.ix_(document_of == d, label_of == label)].max(initial=0.0) for label in range(3)] for d in range(4)]
    np.testing.assert_allclose(found, plain, atol=1e-7)


def test_few_names_of_many_labels_take_no_array_of_documents_and_labels() -> None:
    labels, documents = 50_000, 2000
    passages, names = drawn(documents, 2), drawn(5, 3)
    tracemalloc.start()
    score_passages(passages, np.arange(documents), names, np.arange(5), (documents, labels))
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 8 * labels * documents / 10


def test_the_highest_of_those_that_fall_together_is_kept() -> None:
    values = csr_array(np.array([[1.0, 2, 0], [3, 0, 5]]))
    np.testing.assert_array_equal(fold_highest(values, np.array([0, 0]), np.array([0, 0, 1]), (1, 2)).toarray(), [[3, 5]])


def test_a_label_without_documents_is_found_by_its_name_in_another_form() -> None:
    names, documents = [["coral", "reef"], ["harbour"]], [["reefs"], ["harbours", "coral"]]
    words = ["coral", "reef", "harbour", "reefs", "harbours"]
    by_word = count_grams(words, number_grams(words[:3]))
    counted = [
        csr_array(np.array([[text.count(word) for word in words] for text in texts], dtype=np.float32)) for texts in (names, documents)
    ]
    vectors = [unit_rows(csr_array(counts @ by_word)) for counts in counted]
    np.testing.assert_array_equal(score_passages(vectors[1], np.arange(2), vectors[0], np.arange(2), (2, 2)).rank(1), [[0], [1]])
