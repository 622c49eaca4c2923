"""Alignment of anybody's predictions to gold, and every way in which a file can be wrong."""

import json

import numpy as np
import polars as pl
import pytest

from plant_cli.api import DataError
from plant_cli.evaluation.conventions import CONVENTIONS
from plant_cli.evaluation.predictions import build_input, read_predictions


def test_labels_are_ranked_by_score_then_by_index(gold, save, good):
    good["1"] = {"d": 0.5, "b": 0.5, "c": 0.9}
    read = read_predictions(save(good), gold)
    assert read.top[0].tolist() == [2, 1, 3]
    assert read.scores[0].tolist() == [0.9, 0.5, 0.5]
    assert read.top[1].tolist() == [1, -1, -1]
    assert read.scores[1].tolist() == [0.7, -np.inf, -np.inf]


def test_neither_order_of_documents_nor_of_labels_matters(gold, save, good):
    turned = {doc_id: dict(reversed(labels.items())) for doc_id, labels in reversed(good.items())}
    one, other = read_predictions(save(good, "1.parquet"), gold), read_predictions(save(turned, "2.parquet"), gold)
    assert np.array_equal(one.top, other.top)
    assert np.array_equal(one.scores, other.scores)


def test_json_lines_are_read_too(gold, tmp_path, save, good):
    path = tmp_path / "other.jsonl"
    lines = [json.dumps({"doc_id": d, "labels": list(p), "scores": list(p.values())}) for d, p in good.items()]
    path.write_text("\n".join(lines) + "\n")
    assert np.array_equal(read_predictions(path, gold).top, read_predictions(save(good), gold).top)


def test_an_unknown_label_keeps_its_rank_and_one_unseen_in_train_can_be_right(gold, save, good):
    good["3"] = {"nowhere": 0.9, "x": 0.8}
    read = read_predictions(save(good), gold)
    assert read.top[2].tolist() == [-2, 4, -1]
    assert read.unknown == 1


def test_documents_without_gold_leave_unless_the_convention_keeps_them(gold, save, good):
    read = read_predictions(save(good), gold)
    assert len(build_input(read, gold, 0.5, CONVENTIONS["plant"]).top) == 4
    assert len(build_input(read, gold, 0.5, CONVENTIONS["xmlrepo"]).top) == 5


def test_thresholds_per_label_never_assign_labels_unseen_in_train(gold, save, good):
    data = build_input(read_predictions(save(good), gold), gold, np.array([0.1, 0.2, 0.3, 0.4]), CONVENTIONS["plant"])
    assert data.threshold.tolist() == [0.1, 0.2, 0.3, 0.4, np.inf, np.inf]


def refused(path, gold):
    with pytest.raises(DataError) as caught:
        read_predictions(path, gold)
    assert caught.value.exit_code == 4
    return caught.value


def test_missing_documents_are_named(gold, save, good):
    del good["2"], good["4"]
    error = refused(save(good), gold)
    assert "2 documents of the test split without predictions: 2, 4" in error.what
    assert "5 documents" in error.expected


def test_unknown_and_repeated_documents_are_named(gold, save, good, tmp_path):
    assert "does not have: 99" in refused(save({**good, "99": {}}), gold).what
    frame = pl.read_parquet(save(good))
    pl.concat([frame, frame.head(1)]).write_parquet(tmp_path / "twice.parquet")
    assert "predicted more than once: 1" in refused(tmp_path / "twice.parquet", gold).what


@pytest.mark.parametrize("score", [float("nan"), None])
def test_a_score_that_is_no_number_names_document_and_label(gold, save, good, score):
    good["3"]["b"] = score
    error = refused(save(good), gold)
    assert "label b" in error.what
    assert "document 3" in error.where


def test_a_repeated_label_and_uneven_lists_name_the_document(gold, tmp_path, save, good):
    frame = pl.read_parquet(save(good)).with_columns(labels=pl.lit(["c", "c"]), scores=pl.lit([0.1, 0.2]))
    frame.write_parquet(tmp_path / "repeated.parquet")
    assert "label c is predicted twice" in refused(tmp_path / "repeated.parquet", gold).what
    frame.with_columns(scores=pl.lit([0.1])).write_parquet(tmp_path / "uneven.parquet")
    assert "document 1" in refused(tmp_path / "uneven.parquet", gold).where


def test_a_misnamed_column_and_a_wrong_type(gold, tmp_path, save, good):
    frame = pl.read_parquet(save(good))
    frame.rename({"scores": "score"}).write_parquet(tmp_path / "named.parquet")
    assert "did you mean 'score'?" in refused(tmp_path / "named.parquet", gold).expected
    frame.with_columns(labels=pl.lit(3)).write_parquet(tmp_path / "typed.parquet")
    assert "wrong types" in refused(tmp_path / "typed.parquet", gold).what


def test_no_predictions_at_all_for_any_document_is_allowed(gold, save, good):
    read = read_predictions(save({doc_id: {} for doc_id in good}), gold)
    assert read.top.tolist() == [[-1]] * 5
