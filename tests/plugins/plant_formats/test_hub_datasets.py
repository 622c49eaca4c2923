"""The format `huggingface-dataset`."""

from __future__ import annotations

from pathlib import Path

import datasets
import polars as pl
import pytest
from plant_formats import HubOptions, hub_datasets

from plant_cli.api import DataError, DataSection


def test_numbers_of_classes_become_names_and_a_plain_data_set_is_split(tmp_path: Path) -> None:
    features = datasets.Features(
        {
            "title": datasets.Value("string"),
            "text": datasets.Value("string"),
            "labels": datasets.ClassLabel(names=["no", "yes"]),
        }
    )
    rows = {
        "title": ["T"] * 30,
        "text": [f"text {i}" for i in range(30)],
        "labels": [i % 2 for i in range(30)],
    }
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / "one"))
    data = DataSection(path=str(tmp_path / "one"), text_column="title,text")
    dataset = hub_datasets.load(data, HubOptions())
    train = dataset.splits["train"].collect()
    assert train["text"][0] == "T\ntext 0"
    assert {label for row in train["labels"] for label in row} == {"no", "yes"}
    assert (
        hub_datasets.recognise(data) == "a Hugging Face data set (dataset_info.json and state.json)"
    )


@pytest.mark.parametrize(
    ("feature", "given", "expected"),
    [
        (
            datasets.Sequence(datasets.ClassLabel(names=["x", "y", "z"])),
            [[0, 1], [-1], [2, -1]],
            [["x", "y"], [], ["z"]],
        ),
        (datasets.ClassLabel(names=["x", "y", "z"]), [0, -1, 2], [["x"], [], ["z"]]),
        (datasets.Sequence(datasets.Value("int64")), [[0, 1], [-1], []], [["0", "1"], ["-1"], []]),
    ],
    ids=["lists of classes", "classes", "plain numbers"],
)
def test_the_class_minus_one_is_no_label(
    tmp_path: Path, feature: object, given: object, expected: list[list[str]]
) -> None:
    features = datasets.Features({"text": datasets.Value("string"), "labels": feature})
    rows = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "labels": given}, features=features)
    datasets.DatasetDict({"train": rows}).save_to_disk(str(tmp_path / "one"))
    dataset = hub_datasets.load(DataSection(path=str(tmp_path / "one")), HubOptions())
    assert dataset.splits["train"].collect()["labels"].to_list() == expected


def test_a_column_for_each_label(tmp_path: Path) -> None:
    rows = {"comment": ["what a day", "you", "me"], "joy": [1, 0, 0], "fear": [0, 1, 0]}
    datasets.DatasetDict({"train": datasets.Dataset.from_dict(rows)}).save_to_disk(
        str(tmp_path / "one")
    )
    dataset = hub_datasets.load(DataSection(path=str(tmp_path / "one")), HubOptions())
    assert dataset.splits["train"].collect().rows() == [
        ("train-1", "what a day", ["joy"]),
        ("train-2", "you", ["fear"]),
        ("train-3", "me", []),
    ]
    assert dataset.remarks == [
        "train: labels are 2 columns of 0 and 1: joy, fear",
        "train: texts are the column comment",
    ]


def save(path: Path, **sizes: int) -> DataSection:
    """A data set without ids, with so many documents in each split."""
    parts = {
        name: datasets.Dataset.from_dict(
            {"text": [f"{name} {i}" for i in range(size)], "labels": [["a"]] * size}
        )
        for name, size in sizes.items()
    }
    datasets.DatasetDict(parts).save_to_disk(str(path))
    return DataSection(path=str(path))


@pytest.mark.parametrize("sizes", [{"first": 30, "second": 20}, {"all": 30}])
def test_splits_of_unknown_names_are_taken_together_where_no_other_is_there(
    tmp_path: Path, sizes: dict[str, int]
) -> None:
    dataset = hub_datasets.load(save(tmp_path / "one", **sizes), HubOptions())
    documents = pl.concat(part.collect() for part in dataset.splits.values())
    assert documents["doc_id"].is_unique().all()
    assert sorted(documents["text"]) == sorted(
        f"{name} {i}" for name, size in sizes.items() for i in range(size)
    )
    assert dataset.remarks == [
        f"{tmp_path / 'one'} has no split of a known name, only {', '.join(sizes)}: split "
        "80/10/10 by a hash of each text"
    ]


def test_splits_of_other_names_are_left_out_beside_known_ones(tmp_path: Path) -> None:
    dataset = hub_datasets.load(save(tmp_path / "more", train=5, dev=3, extra=4), HubOptions())
    assert {name: part.collect()["doc_id"].to_list() for name, part in dataset.splits.items()} == {
        "train": [f"train-{i}" for i in range(1, 6)],
        "validation": [f"validation-{i}" for i in range(1, 4)],
    }
    assert dataset.remarks == ["splits of other names are left out: extra"]


def test_two_names_of_one_split_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'dev' and 'validation' both name the split validation"):
        hub_datasets.load(save(tmp_path / "both", train=5, dev=3, validation=2), HubOptions())


def test_what_is_neither_a_folder_nor_on_the_hub() -> None:
    with pytest.raises(DataError, match="cannot be read"):
        hub_datasets.load(DataSection(path="nobody/nothing"), HubOptions())


def test_texts_that_are_no_utf_8(tmp_path: Path) -> None:
    rows = {"text": ["plain text"] * 3, "labels": [["a"]] * 3}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "one"))
    arrow = next((tmp_path / "one").glob("*.arrow"))
    arrow.write_bytes(arrow.read_bytes().replace(b"plain text", b"plain \x8aext"))
    with pytest.raises(DataError, match="cannot be read: 'utf-8' codec") as caught:
        hub_datasets.load(DataSection(path=str(tmp_path / "one")), HubOptions())
    assert str(tmp_path / "one") in caught.value.where


@pytest.mark.parametrize("column", ["text", "doc_id"])
def test_texts_and_ids_that_are_lists_are_refused(tmp_path: Path, column: str) -> None:
    rows = {
        "doc_id": ["1", "2"],
        "text": ["a", "b"],
        "labels": [["x"], ["y"]],
        column: [["a", "b"], ["c"]],
    }
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "one"))
    with pytest.raises(DataError, match=f"the column '{column}' holds lists"):
        hub_datasets.load(DataSection(path=str(tmp_path / "one")), HubOptions())
