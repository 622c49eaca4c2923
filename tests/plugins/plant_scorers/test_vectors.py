"""Vectors by words and n-grams."""

from __future__ import annotations

import numpy as np
import pytest
from plant_scorers.vectors import Train, Vectoriser

from plant_cli.testing.scorers import TEXTS, TRAIN, read_sample


@pytest.mark.parametrize("pieces", [False, True])
def test_vectors_have_length_one_and_are_the_same_later(pieces: bool) -> None:
    vectoriser, train = Vectoriser.fit(read_sample(TRAIN), pieces=pieces)
    np.testing.assert_allclose(np.sqrt((train.toarray() ** 2).sum(axis=1)), 1, atol=1e-5)
    np.testing.assert_allclose(vectoriser.transform(read_sample(TRAIN)).toarray(), train.toarray(), atol=1e-6)
    again = Vectoriser.load(vectoriser.tensors())
    np.testing.assert_array_equal(again.transform(read_sample(TEXTS)).toarray(), vectoriser.transform(read_sample(TEXTS)).toarray())


@pytest.mark.parametrize("pieces", [False, True])
def test_terms_that_are_forgotten_leave_vectors_of_length_one(pieces: bool) -> None:
    vectoriser, train = Vectoriser.fit(read_sample(TRAIN), pieces=pieces)
    unknown = np.arange(len(vectoriser.idf)) % 3 == 0
    found = vectoriser.forget(train, unknown).toarray()
    assert not found[:, unknown].any()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    words = slice(0, len(vectoriser.words))
    rest = train.toarray()[:, words] * ~unknown[words]
    parts = np.linalg.norm(found[:, words], axis=1, keepdims=True) * rest / np.linalg.norm(rest, axis=1, keepdims=True)
    np.testing.assert_allclose(found[:, words], parts, atol=1e-6)
    np.testing.assert_array_equal(vectoriser.forget(train, unknown & False).toarray() > 0, train.toarray() > 0)


def test_vectors_are_made_once_for_all_that_ask_for_them() -> None:
    documents, texts = read_sample(TRAIN), read_sample(TEXTS)
    first, again = (Train.fit(documents, pieces=True) for _ in range(2))
    assert first is again
    assert first.vectoriser.transform(texts) is first.vectoriser.transform(texts)
    other = Train.fit(documents, pieces=False)
    assert other is not first
    loaded = Train.load(first.tensors())
    assert Train.load(first.tensors()) is loaded
    assert Train.load(other.tensors()) is not loaded
    np.testing.assert_array_equal(loaded.similarity.train.toarray(), first.similarity.train.toarray())


def test_terms_are_named_as_a_person_reads_them() -> None:
    vectoriser, _ = Vectoriser.fit(read_sample(["ab fever"]), pieces=True)
    names = [vectoriser.name(term) for term in range(len(vectoriser.idf))]
    assert names[:2] == ["ab", "fever"]
    assert {"fev…", "…ver", "…eve…"} <= set(names[2:])
