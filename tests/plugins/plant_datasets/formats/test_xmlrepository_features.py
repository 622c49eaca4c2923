"""The format `xmlrepository-features`."""

from __future__ import annotations

from pathlib import Path

from plant_datasets.formats import xmlrepository_features
from plant_datasets.formats.registration import FeatureOptions
from round_trips import ANY_LABEL, Promise, one_line, round_trip

from plant_cli.api import DataSection, Dataset

test_what_is_written_is_read_again = round_trip(xmlrepository_features, ANY_LABEL, Promise(one_line, titles=True), FeatureOptions())


def read(tmp_path: Path, **files: str) -> Dataset:
    for name, content in files.items():
        (tmp_path / f"{name}.txt").write_text(content)
    return xmlrepository_features.load(DataSection(path=str(tmp_path)), FeatureOptions())


def test_documents_are_made_of_their_features_by_falling_weight(tmp_path: Path) -> None:
    dataset = read(tmp_path, train="2 3 2\n0,1 0:0.5 2:1.5\n 1:1\n", features="cough\nfever\narm\n")
    assert dataset.splits["train"].collect().rows() == [("train-1", "arm cough", ["0", "1"]), ("train-2", "fever", [])]
    assert "has no texts beside it" in dataset.remarks[0]


def test_texts_beside_the_features_are_preferred(tmp_path: Path) -> None:
    dataset = read(tmp_path, train="1 3 2\n1 0:0.5\n", train_raw_texts="a cough\n", Y="x\ny\n")
    assert dataset.splits["train"].collect().rows() == [("train-1", "a cough", ["1"])]
    assert dataset.labels is not None
    assert dataset.labels.collect().rows() == [("0", "x"), ("1", "y")]


def test_labels_numbered_from_one(tmp_path: Path) -> None:
    dataset = read(tmp_path, train="2 3 2\n1,2 0:1\n2 1:1\n", Y="x\ny\n")
    assert dataset.splits["train"].collect()["labels"].to_list() == [["0", "1"], ["1"]]
    assert "numbered from 1 to 2" in dataset.remarks[0]


def test_a_wrong_field_is_named_with_its_column(tmp_path: Path) -> None:
    dataset = read(tmp_path, train="2 3 2\n0 0:1 1:x\n1 1:1\n")
    assert "line 2, column 7: '1:x' is no feature:value" in dataset.remarks[-1]
    assert dataset.splits["train"].collect()["doc_id"].to_list() == ["train-2"]
