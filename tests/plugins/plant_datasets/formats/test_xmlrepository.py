"""The format `xmlrepository`."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant_datasets.formats import xmlrepository
from round_trips import ANY_LABEL, Promise, round_trip

from plant_cli.api import DataError, DataSection, NoOptions

test_what_is_written_is_read_again = round_trip(xmlrepository, ANY_LABEL, Promise(ids=True, titles=True))


def folder(tmp_path: Path, **files: str) -> DataSection:
    for name, content in files.items():
        (tmp_path / name.replace("__", ".")).write_text(content, encoding="utf-8")
    return DataSection(path=str(tmp_path))


JSON = '{"uid": "B01", "title": "A lamp", "content": "bright", "target_ind": [1, 0], "target_rel": [1.0, 1.0]}\n'
LABELS = '{"uid": "L0", "title": "a desk"}\n{"uid": "L1", "title": ""}\n'


def test_the_json_files_as_they_are_handed_out(tmp_path: Path) -> None:
    data = folder(tmp_path, trn__json=JSON, tst__json=JSON.replace("B01", "B02"), lbl__json=LABELS, filter_labels_test__txt="0 1\n")
    dataset = xmlrepository.load(data, NoOptions())
    assert dataset.splits["train"].collect().rows() == [("B01", "A lamp\nbright", ["L1", "L0"])]
    assert dataset.labels is not None
    assert dataset.labels.collect().rows() == [("L0", "a desk"), ("L1", None)]
    assert dataset.excluded is not None
    assert dataset.excluded.collect().rows() == [("B02", "L1")]


def test_texts_and_matrices_without_json(tmp_path: Path) -> None:
    data = folder(tmp_path, trn_X__txt="one\ntwo\n", trn_X_Y__txt="2 3\n0:1 2:1\n\n", Y__txt="zero\none\ntwo\n")
    dataset = xmlrepository.load(data, NoOptions())
    assert dataset.splits["train"].collect()["labels"].to_list() == [["0", "2"], []]
    assert dataset.labels is not None
    assert dataset.labels.collect()["title"].to_list() == ["zero", "one", "two"]


def test_bad_rows_are_named(tmp_path: Path) -> None:
    bad = JSON + '{"title": \n' + JSON.replace("[1, 0]", "[7]")
    dataset = xmlrepository.load(folder(tmp_path, trn__json=bad, lbl__json=LABELS), NoOptions())
    assert dataset.splits["train"].collect().height == 1
    assert "2 rows cannot be read" in dataset.remarks[0]
    assert "line 2, column" in dataset.remarks[0]
    assert "line 3: a number in target_ind has no name in 2 labels" in dataset.remarks[0]
    data = DataSection(path=str(tmp_path), strict=True)
    with pytest.raises(DataError, match="not JSON"):
        xmlrepository.load(data, NoOptions())


def test_uneven_files_are_an_error(tmp_path: Path) -> None:
    data = folder(tmp_path, trn_X__txt="one\ntwo\n", trn_X_Y__txt="2 3\n0:1 2:1\n", Y__txt="zero\none\ntwo\n")
    with pytest.raises(DataError, match="2 texts, and labels of 1 documents"):
        xmlrepository.load(data, NoOptions())


def test_the_filter_file_is_written_again(tmp_path: Path) -> None:
    data = folder(tmp_path, trn__json=JSON, tst__json=JSON.replace("B01", "B02"), lbl__json=LABELS, filter_labels_test__txt="0 1\n")
    dataset = xmlrepository.load(data, NoOptions())
    (tmp_path / "out").mkdir()
    xmlrepository.write(dataset, tmp_path / "out", "")
    assert (tmp_path / "out" / "filter_labels_test.txt").read_text() == "0 1\n"
