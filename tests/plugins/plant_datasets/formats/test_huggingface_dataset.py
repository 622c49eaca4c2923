"""The format `huggingface-dataset`."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest
from plant_datasets.formats import huggingface_dataset
from plant_datasets.formats.registration import HubOptions
from round_trips import ANY_LABEL, Promise, round_trip

from plant_cli.api import DataError, DataSection

test_what_is_written_is_read_again = round_trip(huggingface_dataset, ANY_LABEL, Promise(ids=True), HubOptions())


def test_numbers_of_classes_become_names_and_a_plain_data_set_is_split(tmp_path: Path) -> None:
    features = datasets.Features(
        {"title": datasets.Value("string"), "text": datasets.Value("string"), "labels": datasets.ClassLabel(names=["no", "yes"])}
    )
    rows = {"title": ["T"] * 30, "text": [f"text {i}" for i in range(30)], "labels": [i % 2 for i in range(30)]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / "one"))
    data = DataSection(path=str(tmp_path / "one"), text_column="title,text")
    dataset = huggingface_dataset.load(data, HubOptions())
    train = dataset.splits["train"].collect()
    assert train["text"][0] == "T\ntext 0"
    assert {label for row in train["labels"] for label in row} == {"no", "yes"}
    assert huggingface_dataset.recognise(data) == "a Hugging Face data set (dataset_info.json and state.json)"


def test_what_is_neither_a_folder_nor_on_the_hub() -> None:
    with pytest.raises(DataError, match="cannot be read"):
        huggingface_dataset.load(DataSection(path="nobody/nothing"), HubOptions())


def test_texts_that_are_no_utf_8(tmp_path: Path) -> None:
    rows = {"text": ["plain text"] * 3, "labels": [["a"]] * 3}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "one"))
    arrow = next((tmp_path / "one").glob("*.arrow"))
    arrow.write_bytes(arrow.read_bytes().replace(b"plain text", b"plain \x8aext"))
    with pytest.raises(DataError, match="cannot be read: 'utf-8' codec") as caught:
        huggingface_dataset.load(DataSection(path=str(tmp_path / "one")), HubOptions())
    assert str(tmp_path / "one") in caught.value.where
