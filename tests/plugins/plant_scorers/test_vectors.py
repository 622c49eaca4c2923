"""Vectors by words and n-grams."""

from __future__ import annotations

import numpy as np
import pytest
from plant_scorers.vectors import Vectoriser

from plant_cli.testing.scorers import TEXTS, TRAIN, read_sample


@pytest.mark.parametrize("pieces", [False, True])
def test_vectors_have_length_one_and_are_the_same_later(pieces: bool) -> None:
    vectoriser, train = Vectoriser.fit(read_sample(TRAIN), pieces=pieces)
    np.testing.assert_allclose(np.sqrt((train.toarray() ** 2).sum(axis=1)), 1, atol=1e-5)
    np.testing.assert_allclose(vectoriser.transform(read_sample(TRAIN)).toarray(), train.toarray(), atol=1e-6)
    again = Vectoriser.load(vectoriser.tensors())
    np.testing.assert_array_equal(again.transform(read_sample(TEXTS)).toarray(), vectoriser.transform(read_sample(TEXTS)).toarray())


def test_terms_are_named_as_a_person_reads_them() -> None:
    vectoriser, _ = Vectoriser.fit(read_sample(["ab fever"]), pieces=True)
    names = [vectoriser.name(term) for term in range(len(vectoriser.idf))]
    assert names[:2] == ["ab", "fever"]
    assert {"fev…", "…ver", "…eve…"} <= set(names[2:])
