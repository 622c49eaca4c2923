"""Predictions by name and by label index, and when the indices hold."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from plant_cli.api import Split
from plant_cli.scoring.predictions import INDICES, PREDICTIONS, read_indexed, write_predictions

LABELS = SimpleNamespace(ids=("a", "b", "c"), hash="order of labels")
TOP, SCORES = np.array([[2, 0], [1, 2]]), np.array([[0.9, 0.1], [0.8, 0.3]])


@pytest.fixture
def path(tmp_path):
    none = csr_array((2, 3), dtype=np.int64)
    split = Split(name="test", doc_ids=["x", "y"], texts=["", ""], gold=none, unseen=none)
    write_predictions(tmp_path / PREDICTIONS, TOP, SCORES, split, LABELS)
    return tmp_path / PREDICTIONS


def test_names_are_for_people_and_indices_for_us(path):
    frame = pl.read_parquet(path)
    assert frame.columns == ["doc_id", "labels", "scores", INDICES]
    assert frame["labels"].to_list() == [["c", "a"], ["b", "c"]]
    assert frame[INDICES].to_list() == TOP.tolist()
    assert frame["scores"].to_list() == SCORES.tolist()
    metadata = pl.read_parquet_metadata(path)
    assert (metadata["split"], metadata["label_hash"]) == ("test", "order of labels")


def test_decisions_stand_beside_the_labels(path):
    none = csr_array((2, 3), dtype=np.int64)
    split = Split(name="test", doc_ids=["x", "y"], texts=["", ""], gold=none, unseen=none)
    write_predictions(path, TOP, SCORES, split, LABELS, [["assign", "reject"], ["review", "reject"]])
    assert pl.read_parquet(path)["decisions"].to_list() == [["assign", "reject"], ["review", "reject"]]
    assert read_indexed(path, "order of labels").columns == ["doc_id", INDICES, "scores"]


def test_indices_are_read_under_their_own_label_order_only(path):
    frame = read_indexed(path, "order of labels")
    assert frame.columns == ["doc_id", INDICES, "scores"]
    assert frame[INDICES].to_list() == TOP.tolist()
    assert read_indexed(path, "another order") is None


def test_what_is_not_ours_has_no_indices(path, tmp_path):
    named = tmp_path / "named.parquet"
    pl.read_parquet(path).drop(INDICES).write_parquet(named, metadata={"label_hash": "order of labels"})
    (tmp_path / "x.csv").write_text("doc_id,labels,scores\n")
    for other in (named, tmp_path / "x.csv", tmp_path / "none.parquet"):
        assert read_indexed(other, "order of labels") is None
