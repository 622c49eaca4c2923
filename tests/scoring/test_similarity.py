"""Products in a dense and a sparse part are those of plain matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scoring.conftest import Drawn, draw

from plant_cli.scoring.lexical import unit_rows
from plant_cli.scoring.scores import Similarity, find_twins


@pytest.mark.parametrize("frequent", [0.5, 2, 4, 1000])
@pytest.mark.parametrize("most", [30, 200, 1 << 20])
def test_whatever_is_multiplied_densely_the_products_are_the_same(
    drawn: Drawn, frequent: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plant_cli.scoring.scores.FREQUENT", frequent)
    monkeypatch.setattr("plant_cli.scoring.scores.DENSE", most)
    train, documents = unit_rows(drawn.counts), unit_rows(draw(1, documents=6).counts)
    similarity = Similarity(train)
    np.testing.assert_allclose(similarity.multiply(documents), documents.toarray() @ train.toarray().T, atol=1e-6)
    weights = np.random.default_rng(0).random((30, 3)).astype(np.float32)
    np.testing.assert_allclose(similarity.weigh(weights)[similarity.column_of], train.toarray().T @ weights, rtol=1e-5)
    np.testing.assert_allclose(similarity.square(), train.toarray() @ train.toarray().T, atol=1e-6)


def test_equal_columns_are_multiplied_once(drawn: Drawn) -> None:
    train = csr_array(unit_rows(drawn.counts)[:, [0, 3, 0, 1, 3, 0, 2]])
    firsts, column_of = find_twins(train)
    assert firsts.tolist() == [0, 1, 3, 6]
    assert column_of.tolist() == [0, 1, 0, 2, 1, 0, 3]
    similarity = Similarity(train)
    assert similarity.columns == 4
    plain = train.toarray()
    documents = csr_array(np.random.default_rng(0).random((5, 7)).astype(np.float32))
    np.testing.assert_allclose(similarity.multiply(documents), documents.toarray() @ plain.T, rtol=1e-5)
    np.testing.assert_allclose(similarity.square(), plain @ plain.T, atol=1e-6)


def test_the_kernel_is_symmetric_with_ones_for_documents_of_length_one(drawn: Drawn) -> None:
    kernel = Similarity(unit_rows(drawn.counts)).square()
    np.testing.assert_allclose(kernel, kernel.T, atol=1e-7)
    np.testing.assert_allclose(kernel.diagonal(), drawn.counts.sum(axis=1) > 0, atol=1e-6)


def test_no_documents_and_no_terms_have_empty_products() -> None:
    assert Similarity(csr_array((0, 4), dtype=np.float32)).multiply(csr_array((2, 4), dtype=np.float32)).shape == (2, 0)
    assert not Similarity(csr_array((3, 0), dtype=np.float32)).square().any()
