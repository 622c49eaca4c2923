"""The tokens of a sample stand for all documents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from plant_cli.api import Split
from plant_cli.training import planning as documents
from plant_cli.training.planning import read_documents


@pytest.fixture
def train() -> Split:
    texts = ["a b", "a b c d", "a " * 12, "x" * 50]
    empty = csr_array((4, 1))
    return Split(name="train", doc_ids=["0", "1", "2", "3"], texts=texts, gold=empty, unseen=empty)


def test_the_longest_document_is_that_of_most_characters(train: Split, small_network: Any) -> None:
    found = read_documents(train, small_network().backbone)
    assert (len(found.tokens), len(found.longest.ids[0])) == (4, 1)
    assert found.mean == (2 + 4 + 12 + 1) / 4
    assert len(found.typical.ids[0]) == 4
    assert found.padding(4, 4) == pytest.approx(1 - 19 / (4 * 16))  # padded to a multiple of 16
    assert found.padding(2, 8) == found.padding(2, 2)
    assert "tokens are those of 4 training documents: 5 each, at most 1" in found.describe()


def test_of_many_documents_some_are_drawn(train: Split, small_network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "SAMPLE", 2)
    found = read_documents(train, small_network().backbone)
    rows = np.sort(np.random.default_rng(0).permutation(4)[:2])
    assert [len(ids) for ids in found.tokens.ids] == [(2, 4, 12, 1)[row] for row in rows]
