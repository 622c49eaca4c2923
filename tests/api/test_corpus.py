"""Value types of a corpus."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import Dataset, Split
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


def test_a_split_has_as_many_documents_as_ids() -> None:
    split = Split(name="train", doc_ids=["a", "b"], texts=["x", "y"], gold=csr_array((2, 3)), unseen=csr_array((2, 0)))
    assert len(split) == 2
    assert (split.unseen_labels, split.evidence) == ((), None)


def test_documents_that_are_taken_keep_what_is_known_of_them() -> None:
    split = Split(
        name="test",
        doc_ids=["a", "b", "c"],
        texts=["x", "y", "z"],
        gold=csr_array(np.eye(3, dtype=np.int64)),
        unseen=csr_array(np.array([[0], [1], [0]])),
        unseen_labels=["new"],
        evidence=Evidence(rows=np.array([0, 0, 2]), labels=["p", "q", "r"], spans=np.array([[0, 1], [1, 2], [2, 3]])),
        excluded=Excluded(rows=np.array([1, 2]), labels=["s", "t"]),
    )
    taken = split.take(np.array([2, 0]))
    assert (taken.name, taken.doc_ids, taken.texts, taken.unseen_labels) == ("test", ["c", "a"], ["z", "x"], ["new"])
    assert taken.gold.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert taken.unseen.toarray().tolist() == [[0], [0]]
    assert taken.evidence is not None
    assert taken.excluded is not None
    assert (taken.evidence.rows.tolist(), taken.evidence.labels) == ([0, 1, 1], ["r", "p", "q"])
    assert taken.evidence.spans.tolist() == [[2, 3], [0, 1], [1, 2]]
    assert (taken.excluded.rows.tolist(), taken.excluded.labels) == ([0], ["t"])
    none = split.take(np.array([], dtype=np.int64))
    assert (len(none), none.gold.shape, none.excluded and none.excluded.rows.dtype) == (0, (0, 3), np.int64)
