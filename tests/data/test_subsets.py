"""Parts of a corpus."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from plant_cli.api import DataError, DataSection, Dataset, UsageError
from plant_cli.data.splits import select_labels, split_again, take_subset

COUNTS = pl.DataFrame({"label": ["a", "b", "c", "d"], "count": [9, 1, 5, 1]})
TRAIN = [("a1", "Fever, and cough", ["x", "y"]), ("a2", "fever and cough!", ["x"]), ("b1", "broken arm", ["x", "z"]), ("c1", "age", ["w"])]


def frame(rows: list[tuple[str, str, list[str]]]) -> pl.LazyFrame:
    columns = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}
    return pl.LazyFrame(rows, schema=columns, orient="row").with_columns(patient=pl.col("doc_id").str.slice(0, 1))


def dataset() -> Dataset:
    spans = {"doc_id": ["a1", "b1"], "label": ["y", "x"], "start": [0, 0], "end": [5, 3], "text": ["Fever", "bro"]}
    return Dataset(splits={"train": frame(TRAIN), "test": frame([("d1", "Broken Arm", ["x", "y"])])}, evidence=pl.LazyFrame(spans))


def take(**options: Any) -> tuple[dict[str, list[Any]], list[str]]:
    found, remarks = take_subset(dataset(), DataSection(**options))
    return {name: part.select("doc_id", "labels").collect().rows() for name, part in found.splits.items()}, remarks


def test_without_options_the_dataset_is_left_as_it_is() -> None:
    given = dataset()
    assert take_subset(given, DataSection()) == (given, [])


CHOSEN = {"top:2": "ac", "rare:2": "bd", "rare:3": "bcd", "1-5": "bcd", "5-": "ac", "2-4": "", "top:9": "abcd"}


@pytest.mark.parametrize(("wanted", "labels"), CHOSEN.items())
def test_labels_are_chosen_by_their_training_documents(wanted: str, labels: str) -> None:
    assert sorted(select_labels(COUNTS, wanted)) == list(labels)


def test_a_wrong_choice_of_labels() -> None:
    with pytest.raises(UsageError, match="'best:5' names no labels"):
        take(keep_labels="best:5")
    with pytest.raises(DataError, match="no training document is left"):
        take(keep_labels="100-")


def test_kept_labels_as_targets_or_with_all_others() -> None:
    assert take(keep_labels="top:1")[0] == {"train": [("a1", ["x"]), ("a2", ["x"]), ("b1", ["x"])], "test": [("d1", ["x"])]}
    rows, said = take(keep_labels="rare:1")
    assert (rows, said[-1]) == ({"train": [("c1", ["w"])]}, "no document of test is left")
    assert take(keep_labels="rare:1", keep_unlabelled=True)[0]["test"] == [("d1", [])]
    whole, remarks = take(keep_labels="top:1", label_scope="documents")
    assert whole["train"][0] == ("a1", ["x", "y"])
    assert remarks == ["1 of 4 labels of train are kept (top:1); documents left out: train 1, test 0"]


def test_labels_are_chosen_by_train_alone() -> None:
    given = dataset()
    more = frame([(f"d{i}", f"text {i}", ["w"]) for i in range(50)])
    found, _ = take_subset(Dataset(splits={**given.splits, "test": more}), DataSection(keep_labels="top:1"))
    assert found.splits["train"].collect()["labels"].explode().unique().to_list() == ["x"]


def test_duplicates_and_leaks() -> None:
    rows, remarks = take(duplicates="drop", leaks="drop")
    assert [doc_id for doc_id, _ in rows["train"]] == ["a1", "c1"]
    assert len(remarks) == 2


def test_texts_of_signs_alone_are_different_texts() -> None:
    given = {"train": [("a", "?!", ["x"]), ("b", "+", ["x"]), ("c", " ?!", ["x"]), ("d", "?!", ["x"])], "test": [("t", "+", ["x"])]}
    section = DataSection(duplicates="drop", leaks="drop")
    found, _ = take_subset(Dataset(splits={name: frame(rows) for name, rows in given.items()}), section)  # type: ignore[misc]
    assert found.splits["train"].collect()["doc_id"].to_list() == ["a", "c"]


def test_evidence_follows_the_documents_and_labels() -> None:
    found, _ = take_subset(dataset(), DataSection(keep_labels="top:1"))
    assert found.evidence is not None
    assert found.evidence.collect()["doc_id"].to_list() == ["b1"]


def test_evidence_whose_labels_have_blanks_around_them_follows_too() -> None:
    given = dataset()
    assert given.evidence is not None
    loose = replace(given, evidence=given.evidence.with_columns(pl.format(" {} ", "label").alias("label")))
    found, _ = take_subset(loose, DataSection(keep_labels="top:1"))
    assert found.evidence is not None
    assert found.evidence.collect().select("doc_id", "label").rows() == [("b1", "x")]


def test_a_share_of_train_leaves_test_alone() -> None:
    rows, remarks = take(train_share=0.5)
    assert (len(rows["train"]), len(rows["test"])) == (2, 1)
    assert take(train_share=0.5)[0] == rows
    assert remarks == ["2 of 4 training documents are used (uniform sample)"]


def test_splitting_again_with_groups() -> None:
    rows, _ = take(resplit=True, test_share=0.4, validation_share=0.2, group_column="patient")
    assert sorted(doc_id for part in rows.values() for doc_id, _ in part) == ["a1", "a2", "b1", "c1", "d1"]
    assert any({"a1", "a2"} <= {doc_id for doc_id, _ in part} for part in rows.values())
    with pytest.raises(UsageError, match="leave no document"):
        take(resplit=True, test_share=0.9, validation_share=0.2)
    with pytest.raises(DataError, match="no column 'pacient'"):
        take(group_column="pacient")


def test_held_out_validation_takes_whole_groups() -> None:
    rows = [(f"{patient}{i}", f"text {patient}{i}", ["x"]) for patient in "abcdefghij" for i in range(4)]
    given = Dataset(splits={"train": frame(rows), "test": frame([("a9", "another text", ["x"])])})
    found, remarks = take_subset(given, DataSection(group_column="patient"))
    validation = set(found.splits["validation"].collect()["doc_id"].str.slice(0, 1))
    assert validation
    assert not validation & set(found.splits["train"].collect()["doc_id"].str.slice(0, 1))
    assert remarks[0] == "1 groups of patient occur in more than one split"


def test_split_again_pools_all_documents() -> None:
    parts = split_again(dataset(), DataSection(group_column="patient"), {"test": 0.4}, 0)
    assert sum(part.height for part in parts.values()) == 5
    assert all(part.columns == ["doc_id", "text", "labels"] for part in parts.values())


def test_a_single_group_is_not_held_out() -> None:
    whole = frame([(f"d{i}", f"text {i}", ["x"]) for i in range(100)]).with_columns(patient=pl.lit("p"))
    found, remarks = take_subset(Dataset(splits={"train": whole}), DataSection(group_column="patient"))
    assert list(found.splits) == ["train"]
    assert remarks == ["no validation split: no group can be held out without all of train"]
