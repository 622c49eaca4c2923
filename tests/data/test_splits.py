"""Splits, subsets and shares of a corpus; a repaired one, and how it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import builders
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plant_data.repair import repair, repair_evidence, write_corpus
from plant_data.thorough_checks import THOROUGH
from plant_formats.table_corpora import load as load_files
from polars.testing import assert_frame_equal
from round_trips import ANY_LABEL, corpora

from plant_cli.api import DataError, DataSection, Dataset, SplitName, UsageError
from plant_cli.data import files
from plant_cli.data.checks import examine_documents
from plant_cli.data.documents import digest, read_frames
from plant_cli.data.evidence import collect_evidence
from plant_cli.data.labels import count_labels
from plant_cli.data.shares import Shard, find_paths, require_whole
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


@pytest.mark.parametrize(
    ("size", "shares", "sizes"),
    [
        (1000, {"test": 0.15, "validation": 0.05}, {"train": 800, "validation": 50, "test": 150}),
        (100, {"test": 0.29}, {"train": 71, "test": 29}),
        (2, {"test": 0, "validation": 0}, {"train": 2}),
        (1, {"test": 0.1, "validation": 0.1}, {"train": 1}),
        (0, {"test": 0.1, "validation": 0.1}, {}),
    ],
)
def test_the_shares_are_met(
    size: int, shares: dict[SplitName, float], sizes: dict[str, int]
) -> None:
    parts = split_documents(documents([f"text {i}" for i in range(size)]), shares, seed=0)
    assert {name: part.height for name, part in parts.items()} == sizes


@pytest.mark.parametrize("method", ["uniform", "stratified"])
def test_the_seed_decides(method: Method) -> None:
    source = long_tail(100)
    found = [
        split_documents(source, {"test": 0.2, "validation": 0}, seed=seed, method=method)
        for seed in (0, 0, 1)
    ]
    tests = [parts["test"]["doc_id"].to_list() for parts in found]
    assert tests[0] == tests[1] != tests[2]


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=40), st.floats(0, 0.4), st.floats(0, 0.4), st.integers(0, 5)
)  # fmt: skip
def test_every_document_is_in_one_split_and_equal_texts_in_the_same(
    texts: list[str], validation: float, test: float, seed: int
) -> None:
    parts = split_documents(documents(texts), {"test": test, "validation": validation}, seed=seed)
    assert sorted(doc_id for part in parts.values() for doc_id in part["doc_id"]) == sorted(
        str(i) for i in range(len(texts))
    )
    kinds = [set(part["text"]) for part in parts.values()]
    assert sum(len(kind) for kind in kinds) == len(set(texts))


def long_tail(size: int) -> pl.DataFrame:
    """Documents with labels of which label n has about size / n."""
    rng = np.random.default_rng(0)
    labels = [[f"l{n}" for n in range(1, 60) if rng.random() < 1 / n] for _ in range(size)]
    return documents([f"text {i}" for i in range(size)]).with_columns(
        labels=pl.Series(labels, dtype=pl.List(pl.String))
    )


def worst(parts: dict[Any, pl.DataFrame], source: pl.DataFrame, share: float) -> float:
    """The mean distance of the share of a label's documents that are in test from the share
    that was asked for.
    """
    counts = [
        count_labels(frame).rename({"count": name})
        for name, frame in (("all", source), ("test", parts["test"]))
    ]
    joined = counts[0].join(counts[1], on="label", how="left").fill_null(0)
    return float((joined["test"] / joined["all"] - share).abs().mean())  # type: ignore[arg-type]


def test_stratification_shares_out_every_label_in_proportion() -> None:
    source = long_tail(1000)
    parts = {
        method: split_documents(source, {"test": 0.2}, seed=0, method=method)
        for method in ("uniform", "stratified")
    }
    assert worst(parts["stratified"], source, 0.2) < 0.5 * worst(parts["uniform"], source, 0.2)
    assert abs(parts["stratified"]["test"].height - 200) <= 10


@pytest.mark.parametrize("labels", [0, 1, 3])
def test_stratified_shares_are_met_where_each_label_has_one_document(labels: int) -> None:
    """A label of one document wants the largest split most: that must not take them all."""
    names = pl.Series(
        [[f"l{i}-{n}" for n in range(labels)] for i in range(100)], dtype=pl.List(pl.String)
    )
    source = documents([f"text {i}" for i in range(100)]).with_columns(labels=names)
    parts = split_documents(source, {"test": 0.2, "validation": 0.1}, seed=0, method="stratified")
    assert {name: part.height for name, part in parts.items()} == {
        "train": 70,
        "validation": 10,
        "test": 20,
    }
    rows = sorted(map(int, parts["test"]["doc_id"]))
    assert rows[-1] - rows[0] > 50, "the names of labels decide where their documents go"


def grouped(sizes: list[int]) -> tuple[pl.DataFrame, pl.Series]:
    """Documents with a label of their own, and the group of each, in groups of these sizes."""
    count = sum(sizes)
    source = documents([f"text {i}" for i in range(count)]).with_columns(
        labels=pl.Series([[f"l{i}"] for i in range(count)])
    )
    return source, pl.Series([f"g{n}" for n, size in enumerate(sizes) for _ in range(size)])


@pytest.mark.parametrize(
    ("sizes", "share", "height"), [([20] + [1] * 20, 0.5, 20), ([1] * 60 + [20] * 12, 0.2, 60)]
)
def test_groups_count_by_their_documents(sizes: list[int], share: float, height: int) -> None:
    source, groups = grouped(sizes)
    for labels in (source["labels"], pl.Series([["a"]] * source.height)):
        parts = split_documents(
            source.with_columns(labels=labels),
            {"test": share},
            seed=0,
            method="stratified",
            groups=groups,
        )
        assert abs(parts["test"].height - height) <= 10


@pytest.mark.parametrize(
    ("desired", "room", "size", "lot", "chosen"),
    [
        (
            [1.0, 1.0, 0.5],
            [2.0, 3.0, 9.0],
            1,
            0.0,
            1,
        ),  # of two that want it most, the one with most room
        ([3.0, 1.0, 0.5], [0.0, 3.0, 9.0], 1, 0.0, 1),  # the first is full
        ([3.0, 1.0, 0.5], [1.0, 1.0, 0.0], 4, 0.0, 0),  # all are: the one that is least
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.59, 0),
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.61, 1),
        ([0.6, 0.1, 0.3], [9.0, 9.0, 9.0], 1, 0.71, 2),
        ([-1.0, 0.0, -2.0], [1.0, 0.0, 3.0], 1, 0.3, 2),  # none wants it: by room
    ],
)
def test_the_split_of_a_unit(
    desired: list[float], room: list[float], size: int, lot: float, chosen: int
) -> None:
    assert _choose(np.array(desired), np.array(room), size, lot) == chosen


@pytest.mark.parametrize("method", ["uniform", "stratified"])
def test_groups_stay_together(method: Method) -> None:
    source = long_tail(300)
    groups = pl.Series([None if i % 10 == 0 else f"p{i % 70}" for i in range(300)])
    parts = split_documents(
        source, {"test": 0.3, "validation": 0.1}, seed=1, method=method, groups=groups
    )
    place = {doc_id: name for name, part in parts.items() for doc_id in part["doc_id"]}
    assert len(place) == 300
    for group in set(groups) - {None}:
        assert len({place[str(i)] for i in range(300) if groups[i] == group}) == 1


def test_equal_texts_join_groups() -> None:
    source = documents(["a", "b", "a", "c", "d"])
    units = find_units(source, pl.Series(["x", "x", "y", "z", None])).tolist()
    assert units[0] == units[1] == units[2]
    assert len(set(units)) == 3


COUNTS = pl.DataFrame({"label": ["a", "b", "c", "d"], "count": [9, 1, 5, 1]})

TRAIN = [
    ("a1", "Fever, and cough", ["x", "y"]),
    ("a2", "fever and cough!", ["x"]),
    ("b1", "broken arm", ["x", "z"]),
    ("c1", "age", ["w"]),
]


def frame(rows: list[tuple[str, str, list[str]]]) -> pl.LazyFrame:
    columns = {"doc_id": pl.String, "text": pl.String, "labels": pl.List(pl.String)}
    return pl.LazyFrame(rows, schema=columns, orient="row").with_columns(
        patient=pl.col("doc_id").str.slice(0, 1)
    )


def dataset() -> Dataset:
    spans = {
        "doc_id": ["a1", "b1"],
        "label": ["y", "x"],
        "start": [0, 0],
        "end": [5, 3],
        "text": ["Fever", "bro"],
    }
    return Dataset(
        splits={"train": frame(TRAIN), "test": frame([("d1", "Broken Arm", ["x", "y"])])},
        evidence=pl.LazyFrame(spans),
    )


def take(**options: Any) -> tuple[dict[str, list[Any]], list[str]]:
    found, remarks = take_subset(dataset(), DataSection(**options))
    return {
        name: part.select("doc_id", "labels").collect().rows()
        for name, part in found.splits.items()
    }, remarks


CHOSEN = {
    "top:2": "ac",
    "rare:2": "bd",
    "rare:3": "bcd",
    "1-5": "bcd",
    "5-": "ac",
    "2-4": "",
    "top:9": "abcd",
}


@pytest.mark.parametrize(("wanted", "labels"), CHOSEN.items())
def test_labels_are_chosen_by_their_training_documents(wanted: str, labels: str) -> None:
    assert sorted(select_labels(COUNTS, wanted)) == list(labels)


def test_a_wrong_choice_of_labels() -> None:
    with pytest.raises(UsageError, match="'best:5' names no labels"):
        take(keep_labels="best:5")
    with pytest.raises(DataError, match="no training document is left"):
        take(keep_labels="100-")


def test_kept_labels_as_targets_or_with_all_others() -> None:
    assert take(keep_labels="top:1")[0] == {
        "train": [("a1", ["x"]), ("a2", ["x"]), ("b1", ["x"])],
        "test": [("d1", ["x"])],
    }
    rows, said = take(keep_labels="rare:1")
    assert (rows, said[-1]) == ({"train": [("c1", ["w"])]}, "no document of test is left")
    assert take(keep_labels="rare:1", keep_unlabelled=True)[0]["test"] == [("d1", [])]
    whole, remarks = take(keep_labels="top:1", label_scope="documents")
    assert whole["train"][0] == ("a1", ["x", "y"])
    assert remarks == [
        "1 of 4 labels of train are kept (top:1); documents left out: train 1, test 0"
    ]
    learned = take(keep_labels="top:1", label_scope="training")[0]
    assert learned == {
        "train": [("a1", ["x"]), ("a2", ["x"]), ("b1", ["x"])],
        "test": take()[0]["test"],
    }, "test keeps all labels"
    assert take(keep_labels="rare:9")[1] == [
        "4 of 4 labels of train are kept (rare:9), which leaves none out; documents left out: "
        "train 0, test 0"
    ]


def test_labels_are_counted_before_the_first_documents_are_taken() -> None:
    assert (
        take(keep_labels="top:1", documents=2)[0]["train"]
        == take(keep_labels="top:1")[0]["train"][:2]
    )
    assert take(keep_labels="3-", documents=1)[0] == {
        "train": [("a1", ["x"])],
        "test": [("d1", ["x"])],
    }


def test_labels_are_chosen_by_train_alone() -> None:
    given = dataset()
    more = frame([(f"d{i}", f"text {i}", ["w"]) for i in range(50)])
    found, _ = take_subset(
        Dataset(splits={**given.splits, "test": more}), DataSection(keep_labels="top:1")
    )
    assert found.splits["train"].collect()["labels"].explode().unique().to_list() == ["x"]


def test_duplicates_and_leaks() -> None:
    rows, remarks = take(duplicates="drop", leaks="drop")
    assert [doc_id for doc_id, _ in rows["train"]] == ["a1", "c1"]
    assert len(remarks) == 2


SIGNS: dict[SplitName, list[tuple[str, str, list[str]]]] = {
    "train": [
        ("a", "?!", ["x"]),
        ("b", "+", ["x"]),
        ("c", " ?!", ["x"]),
        ("d", "?!", ["z"]),
        ("e", "\U0001f600", ["x"]),
    ],
    "test": [("t", "+", ["x"]), ("u", "-", ["x"])],
}


def test_texts_of_signs_alone_are_different_texts() -> None:
    """As `plant data check` says: documents without a letter share nothing but that."""
    given = Dataset(splits={name: frame(rows) for name, rows in SIGNS.items()})
    found, _ = take_subset(given, DataSection(duplicates="drop", leaks="drop"))
    assert found.splits["train"].collect()["doc_id"].to_list() == ["a", "c", "e"]
    parts, changes = repair({name: builders.frame(*rows) for name, rows in SIGNS.items()})
    assert parts["train"].rows() == [
        ("a", "?!", ["x", "z"]),
        ("c", " ?!", ["x"]),
        ("e", "\U0001f600", ["x"]),
    ]
    assert changes.filter(pl.col("change").str.starts_with("left out"))["doc_id"].to_list() == [
        "d",
        "b",
    ]


@pytest.mark.parametrize("written", ["{}", " {} "])
def test_evidence_follows_the_documents_and_labels(written: str) -> None:
    given = dataset()
    assert take_subset(given, DataSection()) == (given, [])
    loose = replace(given, evidence=given.evidence.with_columns(label=pl.format(written, "label")))
    found, _ = take_subset(loose, DataSection(keep_labels="top:1"))
    assert found.evidence.collect().select("doc_id", "label").rows() == [("b1", "x")]


def test_a_share_of_train_leaves_test_alone() -> None:
    rows, remarks = take(train_share=0.5)
    assert (len(rows["train"]), len(rows["test"])) == (2, 1)
    assert take(train_share=0.5)[0] == rows
    assert remarks == ["2 of 4 training documents are used (uniform sample)"]


def test_the_first_documents_of_each_split_are_enough_to_try_something_out() -> None:
    rows, remarks = take(documents=2)
    assert [len(part) for part in rows.values()] == [2, 1]
    assert rows["train"] == take()[0]["train"][:2]
    assert remarks == ["only the first 2 documents of train are used"]


def test_splitting_again_with_groups() -> None:
    rows, _ = take(resplit=True, test_share=0.4, validation_share=0.2, group_column="patient")
    assert sorted(doc_id for part in rows.values() for doc_id, _ in part) == [
        "a1",
        "a2",
        "b1",
        "c1",
        "d1",
    ]
    assert any({"a1", "a2"} <= {doc_id for doc_id, _ in part} for part in rows.values())
    with pytest.raises(UsageError, match="leave no document"):
        take(resplit=True, test_share=0.9, validation_share=0.2)
    with pytest.raises(DataError, match="no column 'pacient'"):
        take(group_column="pacient")


def test_held_out_validation_takes_whole_groups() -> None:
    rows = [
        (f"{patient}{i}", f"text {patient}{i}", ["x"]) for patient in "abcdefghij" for i in range(4)
    ]
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
    whole = frame([(f"d{i}", f"text {i}", ["x"]) for i in range(100)]).with_columns(
        patient=pl.lit("p")
    )
    found, remarks = take_subset(
        Dataset(splits={"train": whole}), DataSection(group_column="patient")
    )
    assert list(found.splits) == ["train"]
    assert remarks == ["no validation split: no group can be held out without all of train"]


Row = tuple[str | None, str, list[str]]


def test_every_change_is_made_and_listed() -> None:
    train = [
        ("a", "fever and\x00 cough", [" Flu", "flu", ""]),
        ("b", "Fever and cough!", ["cold"]),
        ("c", "  ", ["x"]),
        ("a", "a broken arm", ["flu"]),
        (None, "a text of test", ["x"]),
        ("e", "one more text", ["flu"]),
    ]
    parts, changes = repair(
        {"train": builders.frame(*train), "test": builders.frame(("t", "A text, of test", ["x"]))}
    )
    assert parts["train"].rows() == [
        ("a", "fever and  cough", ["flu", "cold"]),
        ("a-2", "a broken arm", ["flu"]),
        ("e", "one more text", ["flu"]),
    ]
    assert parts["test"].rows() == [("t", "A text, of test", ["x"])]
    assert set(changes.rows()) == {
        ("train", "train-row-5", "it had no id"),
        ("train", "a", "labels trimmed, repeated and empty ones removed"),
        ("train", "a", "labels spelt as most documents spell them"),
        ("train", "a", "control characters became blanks"),
        ("train", "c", "left out: it has no text"),
        ("train", "b", "left out: it repeats a, which has its labels now"),
        ("train", "a", "got the labels of documents that repeat its text"),
        ("train", "train-row-5", "left out: another split has its text"),
        ("train", "a-2", "was called a, as another document is"),
    }


def test_a_sound_corpus_is_left_as_it_is() -> None:
    frames = {
        "train": builders.frame(("a", "fever and cough", ["x"]), ("b", "a broken arm", [])),
        "test": builders.frame(("c", "an old hip", ["x", "y"])),
    }
    parts, changes = repair(frames)
    assert changes.is_empty()
    assert all(parts[name].equals(part) for name, part in frames.items())  # type: ignore[index]


def test_spans_follow_their_labels_and_those_that_go_are_listed() -> None:
    train = [
        ("a", "fever and cough", [" Flu"]),
        ("b", "Fever and cough!", ["cold"]),
        ("c", "a broken arm", ["flu"]),
        ("d", "an old hip", ["flu"]),
    ]
    frames = {"train": builders.frame(*train)}
    parts, _ = repair(frames)
    rows = [
        ("a", "Flu ", 0, 5),
        ("c", "flu", 2, 8),
        ("b", "cold", 0, 5),
        ("a", "x", 0, 5),
        ("z", None, 0, None),
    ]
    spans = pl.DataFrame(
        rows, schema=["doc_id", "label", "start", "end"], orient="row"
    ).with_columns(text=pl.lit("t"))
    kept, gone = repair_evidence(spans, frames, parts)
    assert kept.rows() == [("a", "flu", 0, 5, "t"), ("c", "flu", 2, 8, "t")]
    assert gone.rows() == [
        ("train", "b", "left out: a span of evidence of 'cold', 0 to 5"),
        ("train", "a", "left out: a span of evidence of 'x', 0 to 5"),
        (None, "z", "left out: a span of evidence of '?', 0 to ?"),
    ]


def test_hidden_characters_go_and_spans_follow_their_words() -> None:
    frames = {
        "train": builders.frame(
            ("a", "\ufefffe\u00adver and\u200b cough", ["flu\u200b", "caf\u00e9"]),
            ("b", "old hip", ["flu", "cafe\u0301", "caf\u00e9"]),
        )
    }
    parts, changes = repair(frames)
    assert parts["train"].rows() == [
        ("a", "fever and cough", ["flu", "caf\u00e9"]),
        ("b", "old hip", ["flu", "caf\u00e9"]),
    ]
    assert ("train", "a", "hidden characters removed") in changes.rows()
    assert ("train", "a", "hidden characters removed from labels") in changes.rows()
    spans = pl.DataFrame(
        {"doc_id": ["a", "b"], "label": ["flu\u200b", "flu"], "start": [1, 0], "end": [7, 3]}
    )
    assert repair_evidence(spans, frames, parts)[0].rows() == [
        ("a", "flu", 0, 5),
        ("b", "flu", 0, 3),
    ]


TEXTS = st.sampled_from(
    (
        *(
            "fever and cough",
            "Fever, and cough",
            "",
            "a broken \x01arm",
            "a bro\u200bken arm",
            "\ufeff",
            "an old hip again",
        ),
        *("dizzy for a week", "?!", " ?!", "\U0001f600"),
    )
)

IDS = st.sampled_from(["a", "b", "a-2", None])

ROWS = st.lists(
    st.tuples(
        IDS,
        TEXTS,
        st.lists(st.sampled_from(["x", " X", "y  z", "y z", "", "x\u200b", "\u00ad"]), max_size=3),
    )
)

MENDED = (
    *(
        "share their id",
        "empty text",
        "another split holds",
        "occurs twice in their split",
        "only by case",
    ),
    *("control characters", "without width", "cannot be seen"),
)


@settings(deadline=None)
@given(ROWS, ROWS)
def test_a_second_repair_changes_nothing_and_nothing_wrong_is_left(
    train: list[Row], test: list[Row]
) -> None:
    parts, changes = repair({"train": builders.frame(*train), "test": builders.frame(*test)})
    again, more = repair(parts)
    assert more.is_empty()
    assert all(again[name].equals(part) for name, part in parts.items())
    kinds = {
        finding.what
        for finding in examine_documents(
            {name: digest(part) for name, part in parts.items()}, THOROUGH
        )
    }
    for mended in MENDED:
        assert not any(mended in kind for kind in kinds), kinds
    dropped = changes.filter(pl.col("change").str.starts_with("left out")).height
    assert sum(part.height for part in parts.values()) == len(train) + len(test) - dropped


@pytest.fixture
def full(dataset: Dataset) -> Dataset:
    evidence = pl.LazyFrame(
        {"doc_id": ["a"], "label": ["C1"], "start": [0], "end": [5], "text": ["heart"]}
    )
    casts = evidence.with_columns(pl.col("start", "end").cast(pl.Int32))
    return replace(dataset, evidence=casts)


@pytest.mark.parametrize(
    "name", ["data.parquet", "data.csv", "data.jsonl.gz", "data.tsv.gz", "folder"]
)
def test_what_is_written_is_what_the_files_dataset_reads(
    full: Dataset, tmp_path: Path, name: str
) -> None:
    frames = read_frames(full)
    written = write_corpus(frames, full, tmp_path / name, force=False)
    again = load_files(DataSection(path=str(tmp_path / name)))
    assert sorted(again.files) == sorted(str(path) for path in written)
    for split, frame in read_frames(again).items():
        assert_frame_equal(frame, frames[split])
    assert again.labels.collect()["label"].to_list() == full.labels.collect()["label"].to_list()
    assert_frame_equal(collect_evidence(again.evidence), collect_evidence(full.evidence))


@settings(max_examples=15, deadline=None)
@given(corpora(ANY_LABEL))
@pytest.mark.parametrize(
    "name",
    ["x.parquet", "x.jsonl", "x.ndjson.zst", "x.json", "x.csv", "x.csv.gz", "x.tsv", "folder"],
)
def test_tables_of_any_content_come_back(
    tmp_path_factory: pytest.TempPathFactory, name: str, dataset: Dataset
) -> None:
    place, frames = tmp_path_factory.mktemp("table") / name, read_frames(dataset)
    write_corpus(frames, dataset, place, force=False)
    again = load_files(DataSection(path=str(place)))
    assert [remark for remark in again.remarks if "the only labels are" not in remark] == []
    for split, frame in read_frames(again).items():
        assert_frame_equal(frame, frames[split])
    assert_frame_equal(
        again.labels.select(pl.col("label", "title").cast(pl.String)).collect(),
        dataset.labels.collect(),
    )


def test_nothing_is_overwritten_without_force(full: Dataset, tmp_path: Path) -> None:
    (tmp_path / "data.labels.csv").write_text("mine")
    with pytest.raises(UsageError, match="there already") as caught:
        write_corpus(read_frames(full), full, tmp_path / "data.csv", force=False)
    assert caught.value.where == str(tmp_path / "data.labels.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["data.labels.csv"]
    assert len(write_corpus(read_frames(full), full, tmp_path / "data.csv", force=True)) == 3


@pytest.mark.parametrize(
    ("name", "error", "what"),
    [("x.xlsx", DataError, r"x\.xlsx"), ("notes", UsageError, "is a file that is no table")],
)
def test_an_output_of_no_known_format_is_refused(
    full: Dataset, tmp_path: Path, name: str, error: type[Exception], what: str
) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(error, match=what):
        write_corpus(read_frames(full), full, tmp_path / name, force=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_the_corpus_itself_takes_its_place_last(
    full: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is killed meanwhile leaves no corpus without what belongs to it."""
    placed: list[str] = []
    monkeypatch.setattr(
        files.os,
        "replace",
        lambda source, target: placed.append(Path(target).name) or os.rename(source, target),
    )
    write_corpus(read_frames(full), full, tmp_path / "data.csv", force=False)
    assert [name for name in placed if not name.startswith(".")] == [
        "data.evidence.csv",
        "data.labels.csv",
        "data.csv",
    ]
    assert len(list(tmp_path.iterdir())) == 3


def test_no_moment_of_a_replacement_shows_old_documents_beside_new_tables(
    full: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each change of a name there are no documents, or those that belong to what stands
    beside them.
    """
    output, rename = tmp_path / "data.csv", os.rename
    write_corpus(read_frames(full), full, output, force=False)
    old, seen = output.read_text(), []

    def replace_and_look(source: Path, target: Path) -> None:
        rename(source, target)
        changed = "lungs" in (tmp_path / "data.evidence.csv").read_text()
        seen.append((changed, output.read_text() == old if output.exists() else None))

    monkeypatch.setattr(files.os, "replace", replace_and_look)
    other = replace(full, evidence=full.evidence.with_columns(text=pl.lit("lungs")))
    frames = {
        name: frame.with_columns(text=pl.col("text") + " lungs")
        for name, frame in read_frames(full).items()
    }
    write_corpus(frames, other, output, force=True)
    assert (True, True) not in seen
    assert seen[-1] == (True, False)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_replacement_that_fails_leaves_the_old_documents(
    full: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, rename = tmp_path / "data.csv", os.rename
    write_corpus(read_frames(full), full, output, force=False)
    old = output.read_text()

    def fail_later(source: Path, target: Path) -> None:
        if Path(target).name == "data.labels.csv":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(files.os, "replace", fail_later)
    with pytest.raises(OSError, match="Input/output"):
        write_corpus(read_frames(full), full, output, force=True)
    assert output.read_text() == old
    assert len(list(tmp_path.iterdir())) == 3


FEW_OF_MANY = """import sys
from pathlib import Path
import polars as pl
from plant_cli.api.corpus import Dataset
from plant_cli.runs.machine import peak_memory_gb
from plant_data.repair import write_corpus

def batches(count):
    for number in range(count):
        ids = [str(row) for row in range(1000 * number + 1000, 1000 * number + 2000)]
        table = pl.DataFrame({"doc_id": ids, "text": [name + "x" * 2000 for name in ids], "labels": [["a"]] * 1000})
        yield table.filter(pl.col("doc_id").str.ends_with("00"))

def write(name, count):
    write_corpus({"validation": batches(count)}, Dataset(splits={}), Path(sys.argv[1], name), force=False)

write("first.parquet", 5)
before = peak_memory_gb()
write("second.parquet", 200)
print(peak_memory_gb() - before)"""


def test_a_few_rows_of_large_tables_are_written_without_holding_the_tables(tmp_path: Path) -> None:
    """Of 400 MB of texts ten rows of each thousand are written, 4 MB in all."""
    done = subprocess.run(
        [sys.executable, "-c", FEW_OF_MANY, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert pl.read_parquet(tmp_path / "second.parquet").height == 2000
    assert float(done.stdout) < 0.1


@pytest.mark.parametrize("of", [1, 2, 7])
@pytest.mark.parametrize("start", [0, 1, 6])
def test_shards_hold_every_document_once_wherever_the_documents_begin(of: int, start: int) -> None:
    documents = list(range(20))
    shards = [Shard.parse(f"{number}/{of}") for number in range(1, of + 1)]
    shares = [documents[shard.rows_from(0)] for shard in shards]
    assert sorted(document for share in shares for document in share) == documents
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert [documents[start:][shard.rows_from(start)] for shard in shards] == [
        [row for row in share if row >= start] for share in shares
    ]
    assert str(shards[-1]) == f"{of}/{of}"


@pytest.mark.parametrize(
    "text", ["0/4", "5/4", "4/3", "1/0", "x/2", "x", "2", "1/99999999999999999999"]
)
def test_a_shard_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no shard|invalid literal|at most"):
        Shard.parse(text)


@pytest.mark.parametrize("total", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("of", [1, 2, 3, 8])
def test_parts_are_the_whole_one_after_the_other_and_alike(total: int, of: int) -> None:
    parts = [Shard(number, of).part(total) for number in range(1, of + 1)]
    assert [row for part in parts for row in part] == list(range(total))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_paths_are_named_once_and_sorted(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / name).mkdir()
    assert find_paths([str(tmp_path / "[bc]"), str(tmp_path / "?"), str(tmp_path / "none*")]) == [
        tmp_path / name for name in "abc"
    ]


@pytest.mark.parametrize(
    ("shards", "what"),
    [
        (["1/3", "3/3"], "shard 2/3 is missing"),
        (["1/2", "1/2", "2/2"], "shard 1/2 is given twice"),
        (["1/1", "1/2", "2/2"], "the shards are of different divisions, into 1 and 2"),
        ([], "there are no shards"),
    ],
)
def test_shards_that_are_no_whole_are_refused(shards: list[str], what: str) -> None:
    given = {Path(str(number)): Shard.parse(text) for number, text in enumerate(shards)}
    with pytest.raises(UsageError, match=what) as caught:
        require_whole(given)
    assert (
        caught.value.where == "--merge: "
        f"{', '.join(f'{path} ({shard})' for path, shard in given.items()) or 'nothing'}"
    )
    assert "`plant mig --shard i/n`" in caught.value.todo
    require_whole({Path("b"): Shard(2, 2), Path("a"): Shard(1, 2)})  # in any order
