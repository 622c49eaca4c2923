"""The label index: one order everywhere, gold as sparse 0/1 matrices, labels that train lacks kept apart."""

from __future__ import annotations

import polars as pl
import pytest

from plant_cli.api import DataError
from plant_cli.data.labels import LabelTable, count_labels, encode_labels

FRAME = pl.DataFrame({"doc_id": ["1", "2", "3", "4"], "text": ["x"] * 4, "labels": [["b", "a"], [], ["zebra", "b"], ["a"]]})


def table(*ids: str) -> LabelTable:
    return LabelTable(ids=ids, titles=[None] * len(ids), train_counts=[1] * len(ids))


def test_labels_are_counted_once_a_document_and_sorted() -> None:
    assert count_labels(FRAME).rows() == [("a", 2), ("b", 2), ("zebra", 1)]


def test_gold_has_a_row_for_every_document_and_unknown_labels_stand_apart() -> None:
    known, unseen, names = encode_labels(FRAME, table("a", "b", "c").positions)
    assert known.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert unseen.toarray().tolist() == [[0], [0], [1], [0]]
    assert names == ["zebra"]


def test_the_hash_follows_the_order_and_nothing_else() -> None:
    assert table("a", "b").hash == LabelTable(ids=("a", "b"), titles=["A", "B"], train_counts=[7, 9]).hash
    assert table("a", "b").hash != table("b", "a").hash
    assert table("ab", "c").hash != table("a", "bc").hash


def test_a_label_is_found_by_name_and_a_near_one_is_offered() -> None:
    index = table("J20", "J21", "K35")
    assert [index.position(label) for label in ("J20", "K35")] == [0, 2]
    with pytest.raises(DataError, match="no training document has the label 'J22'") as caught:
        index.position("J22")
    assert "J2" in caught.value.expected
