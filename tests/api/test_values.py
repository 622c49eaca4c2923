"""Values of the contract: datasets, splits, tokens, readings, and documents of scorers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from scipy.sparse import csr_array

from plant_cli.api import Dataset, Documents, Reading, Split, TokenBatch
from plant_cli.api.corpus import Evidence, Excluded


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"splits": {"train": pl.LazyFrame(), "valid": pl.LazyFrame()}},
            "a dataset has a split 'valid': splits are train, validation, test",
        ),
        ({"splits": {}, "pieces": {"dev": None}}, "a dataset has a split 'dev'"),
        ({"splits": {}, "remarks": "one"}, "the remarks of a dataset are one text, 'one'"),
        ({"splits": {}, "files": "a.csv"}, "the files of a dataset are one text, 'a.csv'"),
    ],
)
def test_what_would_be_misread_in_silence_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        Dataset(**given)


def test_documents_that_are_taken_keep_what_is_known_of_them() -> None:
    split = Split(
        name="test",
        doc_ids=["a", "b", "c"],
        texts=["x", "y", "z"],
        gold=csr_array(np.eye(3, dtype=np.int64)),
        unseen=csr_array(np.array([[0], [1], [0]])),
        unseen_labels=["new"],
        evidence=Evidence(
            rows=np.array([0, 0, 2]),
            labels=["p", "q", "r"],
            spans=np.array([[0, 1], [1, 2], [2, 3]]),
        ),
        excluded=Excluded(rows=np.array([1, 2]), labels=["s", "t"]),
    )
    taken = split.take(np.array([2, 0]))
    assert (taken.name, taken.doc_ids, taken.texts, taken.unseen_labels) == (
        "test",
        ["c", "a"],
        ["z", "x"],
        ["new"],
    )
    assert taken.gold.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert taken.unseen.toarray().tolist() == [[0], [0]]
    assert taken.evidence is not None
    assert taken.excluded is not None
    assert (taken.evidence.rows.tolist(), taken.evidence.labels) == ([0, 1, 1], ["r", "p", "q"])
    assert taken.evidence.spans.tolist() == [[2, 3], [0, 1], [1, 2]]
    assert (taken.excluded.rows.tolist(), taken.excluded.labels) == ([0], ["t"])
    none = split.take(np.array([], dtype=np.int64))
    assert (len(none), none.gold.shape, none.excluded and none.excluded.rows.dtype) == (
        0,
        (0, 3),
        np.int64,
    )


def test_chosen_documents_keep_their_tokens() -> None:
    ids = [
        np.array([1, 2], dtype=np.int32),
        np.array([3], dtype=np.int32),
        np.array([], dtype=np.int32),
    ]
    spans = [np.zeros((len(row), 2), dtype=np.int32) for row in ids]
    batch = TokenBatch(ids=ids, spans=spans, dropped=[0, 5, 0])
    chosen = batch.select([1, 0])
    assert (len(batch), len(chosen)) == (3, 2)
    assert [row.tolist() for row in chosen.ids] == [[3], [1, 2]]
    assert chosen.dropped == [5, 0]


def test_a_reading_has_no_words_unless_they_are_given() -> None:
    reading = Reading.of(
        torch.zeros(2, 3, 4), torch.tensor([[True, True, False], [True, False, False]])
    )
    assert len(reading) == 2
    assert reading.words.tolist() == [[-1] * 3] * 2


def test_documents_and_tokens_of_a_reading_are_chosen_together() -> None:
    hidden, words = torch.arange(24.0).view(2, 3, 4), torch.arange(6).view(2, 3)
    reading = Reading.of(hidden, torch.ones(2, 3, dtype=torch.bool), words)
    part = reading.select(torch.tensor([1]), slice(0, 2))
    assert torch.equal(part.hidden, hidden[1:, :2])
    assert part.words.tolist() == [[3, 4]]
    assert part.mask.shape == (1, 2)


DOCUMENTS = Documents(
    vocabulary=("a", "b", "c"),
    numbers=np.array([0, 1, 0, 2], dtype=np.int32),
    ends=np.array([0, 3, 3, 4]),
)


def test_counts() -> None:
    assert DOCUMENTS.counts.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert DOCUMENTS.numbers.tolist() == [0, 1, 0, 2]
    assert DOCUMENTS.ends.tolist() == [0, 3, 3, 4]


def test_they_may_have_their_texts() -> None:
    written = replace(DOCUMENTS, texts=("A b a", "", "C"))
    assert written.take(np.array([2, 0])).texts == ["C", "A b a"]
    assert written.take(slice(1, 3)).texts == ["", "C"]
    assert DOCUMENTS.take(np.array([2, 0])).texts is None


def test_some_of_them() -> None:
    found = DOCUMENTS.take(np.array([2, 0]))
    assert found.counts.toarray().tolist() == [[0, 0, 1], [2, 1, 0]]
    assert len(found) == 2
