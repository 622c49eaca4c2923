"""Splits and subsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant_cli.api import DataError, DataSection, Dataset, UsageError
from plant_cli.data.labels import count_labels
from plant_cli.data.splits import (
    Method,
    _choose,
    find_units,
    select_labels,
    split_again,
    split_documents,
    take_subset,
)


def documents(texts: list[str]) -> pl.DataFrame:
    ids = [str(i) for i in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts, "labels": [["a"]] * len(texts)})


def test_the_shares_are_met() -> None:
    parts = split_documents(documents([f"text {i}" for i in range(1000)]), {"test": 0.15, "validation": 0.05}, seed=0)
    assert {name: part.height for name, part in parts.items()} == {"train": 800, "validation": 50, "test": 150}


def test_shares_are_rounded() -> None:
    assert split_documents(documents([f"text {i}" for i in range(100)]), {"test": 0.29}, seed=0)["test"].height == 29


@pytest.mark.parametrize("method", ["uniform", "stratified"])
def test_the_seed_decides(method: Method) -> None:
    source = long_tail(100)
    found = [split_documents(source, {"test": 0.2, "validation": 0}, seed=seed, method=method) for seed in (0, 0, 1)]
    tests = [parts["test"]["doc_id"].to_list() for parts in found]
    assert tests[0] == tests[1] != tests[2]


def test_no_share_no_split() -> None:
    assert list(split_documents(documents(["a", "b"]), {"test": 0, "validation": 0}, seed=0)) == ["train"]


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), st.floats(0, 0.4), st.floats(0, 0.4), st.integers(0, 5)
)  # fmt: skip
def test_every_document_is_in_one_split_and_equal_texts_in_the_same(texts: list[str], validation: float, test: float, seed: int) -> None:
    parts = split_documents(documents(texts), {"test": test, "validation": validation}, seed=seed)
    assert sorted(doc_id for part in parts.values() for doc_id in part["doc_id"]) == sorted(str(i) for i in range(len(texts)))
    kinds = [set(part["text"]) for part in parts.values()]
    assert sum(len(kind) for kind in kinds) == len(set(texts))


@pytest.mark.parametrize("size", [0, 1])
def test_tiny_corpora_are_no_reason_to_fail(size: int) -> None:
    assert sum(part.height for part in split_documents(documents(["x"] * size), {"test": 0.1, "validation": 0.1}, seed=0).values()) == size


def long_tail(size: int) -> pl.DataFrame:
    """Documents with labels of which label n has about size / n."""
    rng = np.random.default_rng(0)
    labels = [[f"l{n}" for n in range(1, 60) if rng.random() < 1 / n] for _ in range(size)]
    return documents([f"text {i}" for i in range(size)]).with_columns(labels=pl.Series(labels, dtype=pl.List(pl.String)))


def worst(parts: dict[Any, pl.DataFrame], source: pl.DataFrame, share: float) -> float:
    """The mean distance of the share of a label's documents that are in test from the share that was asked for."""
    counts = [count_labels(frame).rename({"count": name}) for name, frame in (("all", source), ("test", parts["test"]))]
    joined = counts[0].join(counts[1], on="label", how="left").fill_null(0)
    return float((joined["test"] / joined["all"] - share).abs().mean())  # type: ignore[arg-type]


def test_stratification_shares_out_every_label_in_proportion() -> None:
    source = long_tail(1000)
    parts = {method: split_documents(source, {"test": 0.2}, seed=0, method=method) for method in ("uniform", "stratified")}
    assert worst(parts["stratified"], source, 0.2) < 0.5 * worst(parts["uniform"], source, 0.2)
    assert abs(parts["stratified"]["test"].height - 200) <= 10
    again = split_documents(source, {"test": 0.2}, seed=0, method="stratified")
    assert again["test"].equals(parts["stratified"]["test"])


@pytest.mark.parametrize("labels", [1, 3])
def test_stratified_shares_are_met_where_each_label_has_one_document(labels: int) -> None:
    """A label of one document wants the largest split most: that must not take them all."""
    names = pl.Series([[f"l{i}-{n}" for n in range(labels)] for i in range(100)])
    source = documents([f"text {i}" for i in range(100)]).with_columns(labels=names)
    parts = split_documents(source, {"test": 0.2, "validation": 0.1}, seed=0, method="stratified")
    assert {name: part.height for name, part in parts.items()} == {"train": 70, "validation": 10, "test": 20}
    rows = sorted(map(int, parts["test"]["doc_id"]))
    assert rows[-1] - rows[0] > 50, "the names of labels decide where their documents go"


def grouped(sizes: list[int]) -> tuple[pl.DataFrame, pl.Series]:
    """Documents with a label of their own, and the group of each, in groups of these sizes."""
    count = sum(sizes)
    source = documents([f"text {i}" for i in range(count)]).with_columns(labels=pl.Series([[f"l{i}"] for i in range(count)]))
    return source, pl.Series([f"g{n}" for n, size in enumerate(sizes) for _ in range(size)])


@pytest.mark.parametrize(("sizes", "share", "height"), [([20] + [1] * 20, 0.5, 20), ([1] * 60 + [20] * 12, 0.2, 60)])
def test_groups_count_by_their_documents(sizes: list[int], share: float, height: int) -> None:
    source, groups = grouped(sizes)
    for labels in (source["labels"], pl.Series([["a"]] * source.height)):
        parts = split_documents(source.with_columns(labels=labels), {"test": share}, seed=0, method="stratified", groups=groups)
        assert abs(parts["test"].height - height) <= 10


@pytest.mark.parametrize(
    ("desired", "room", "size", "lot", "chosen"),
    [
        ([1.0, 1.0, 0.5], [2.0, 3.0, 9.0], 1, 0.0, 1),  # of two that want it most, the one with most room
        ([3.0, 1.0, 0.5], [0.0, 3.0, 9.0], 1, 0.0, 1),  # the first is full
        ([3.0, 1.0, 0.5], [1.0, 1.0, 0.0], 4, 0.0, 0),  # all are: the one that is least
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.59, 0),
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.61, 1),
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.71, 2),
        ([-1.0, 0.0, -2.0], [1.0, 0.0, 3.0], 1, 0.3, 2),  # none wants it: by room
    ],
)
def test_the_split_of_a_unit(desired: list[float], room: list[float], size: int, lot: float, chosen: int) -> None:
    assert _choose(np.array(desired), np.array(room), size, lot) == chosen


@pytest.mark.parametrize("method", ["uniform", "stratified"])
def test_groups_stay_together(method: Method) -> None:
    source = long_tail(300)
    groups = pl.Series([None if i % 10 == 0 else f"p{i % 70}" for i in range(300)])
    parts = split_documents(source, {"test": 0.3, "validation": 0.1}, seed=1, method=method, groups=groups)
    place = {doc_id: name for name, part in parts.items() for doc_id in part["doc_id"]}
    assert len(place) == 300
    for group in set(groups) - {None}:
        assert len({place[str(i)] for i in range(300) if groups[i] == group}) == 1


def test_equal_texts_join_groups() -> None:
    source = documents(["a", "b", "a", "c", "d"])
    units = find_units(source, pl.Series(["x", "x", "y", "z", None])).tolist()
    assert units[0] == units[1] == units[2]
    assert len(set(units)) == 3


def test_documents_without_labels_are_stratified_too() -> None:
    source = documents([f"text {i}" for i in range(100)]).with_columns(labels=pl.lit([], dtype=pl.List(pl.String)))
    parts = split_documents(source, {"test": 0.25}, seed=0, method="stratified")
    assert {name: part.height for name, part in parts.items()} == {"train": 75, "test": 25}


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
