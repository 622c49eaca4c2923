"""The best passage of each document, against plain loops."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from plant_scorers.lexical import unit_rows
from plant_scorers.passages import LabelNames
from scipy.sparse import csr_array

from plant_cli.scoring.sparse_scores import cut_rows

Ints = npt.NDArray[np.int64]


def draw_vectors(rows: int, seed: int, terms: int = 12) -> csr_array:
    """Sparse vectors of length 1."""
    chance = np.random.default_rng(seed)
    return unit_rows(
        csr_array(chance.random((rows, terms)) * (chance.random((rows, terms)) < 4.8 / terms))
    )


def compare_all(
    passages: csr_array, document_of: Ints, names: LabelNames, documents: int
) -> npt.NDArray[np.float32]:
    """The highest cosine of each document's passages with the names of each label [B, L]."""
    cosines = passages.toarray() @ names.vectors.toarray().T
    return np.array(
        [
            [
                cosines[np.ix_(document_of == document, names.label_of == label)].max(initial=0.0)
                for label in range(names.labels)
            ]
            for document in range(documents)
        ]
    )


def test_a_label_has_the_score_of_its_best_name_and_one_without_names_has_none() -> None:
    documents = draw_vectors(5, 0)
    names = LabelNames(vectors=draw_vectors(6, 1), label_of=np.array([0, 0, 1, 3, 3, 3]), labels=4)
    found = names.score(documents, np.arange(5), 5, k=99).matrix.toarray()
    np.testing.assert_allclose(found, compare_all(documents, np.arange(5), names, 5), atol=1e-7)
    assert not found[:, 2].any()


@pytest.mark.parametrize("pairs", [1, 20, 10_000])
def test_a_document_has_the_score_of_its_best_passage_in_blocks_of_any_size(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "plant_scorers.sparse_products.cut_rows",
        lambda rows, width, most: cut_rows(rows, width, pairs),
    )
    passages, document_of = (
        draw_vectors(7, 2),
        np.array([0, 0, 0, 2, 2, 3, 3]),
    )  # the second document has none
    names = LabelNames(vectors=draw_vectors(5, 3), label_of=np.array([0, 0, 1, 1, 2]), labels=3)
    found = names.score(passages, document_of, 4, k=99).matrix.toarray()
    np.testing.assert_allclose(found, compare_all(passages, document_of, names, 4), atol=1e-7)


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_few_labels_are_compared_with_passages_and_they_are_the_best(
    seed: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    passages, document_of = draw_vectors(60, seed, 200), np.repeat(np.arange(12), 5)
    names = LabelNames(
        vectors=draw_vectors(300, 9 + seed, 200), label_of=np.arange(300) // 2, labels=150
    )
    compared, compare = [], LabelNames._compare

    def count(self: LabelNames, weights: Any, places: Ints) -> Any:
        compared.append(len(places))
        return compare(self, weights, places)

    monkeypatch.setattr(LabelNames, "_compare", count)
    found = names.score(passages, document_of, 12, k)
    plain = compare_all(passages, document_of, names, 12)
    for row, scores in enumerate(plain):
        listed = found.matrix[[row]]
        assert set(listed.indices) == set(np.argsort(-scores, kind="stable")[:k])
        np.testing.assert_allclose(listed.data, scores[listed.indices], atol=1e-6)
        assert found.floors[row, 0] == pytest.approx(np.sort(scores)[-k], abs=1e-6)
    assert sum(compared) < 12 * 150 / 2


def test_few_names_of_many_labels_take_no_array_of_documents_and_labels() -> None:
    labels, documents = 50_000, 2000
    passages = draw_vectors(documents, 2)
    names = LabelNames(vectors=draw_vectors(5, 3), label_of=np.arange(5), labels=labels)
    tracemalloc.start()
    names.score(passages, np.arange(documents), documents)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 8 * labels * documents / 10
