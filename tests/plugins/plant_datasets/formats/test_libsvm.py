"""The format `libsvm`."""

from __future__ import annotations

from pathlib import Path

from plant_datasets.formats import libsvm
from plant_datasets.formats.registration import FeatureOptions
from round_trips import ANY_LABEL, Promise, one_line, round_trip

from plant_cli.api import DataSection

test_what_is_written_is_read_again = round_trip(libsvm, ANY_LABEL, Promise(one_line, titles=True), FeatureOptions())


def test_features_count_from_one(tmp_path: Path) -> None:
    (tmp_path / "train.svm").write_text("1,3 1:0.1 3:0.2\n2:1\n")
    (tmp_path / "features.txt").write_text("cough\nfever\narm\n")
    dataset = libsvm.load(DataSection(path=str(tmp_path)), FeatureOptions())
    assert dataset.splits["train"].collect().rows() == [("train-1", "arm cough", ["1", "3"]), ("train-2", "fever", [])]


def test_a_single_file_is_split_by_hash(tmp_path: Path) -> None:
    (tmp_path / "all.svm").write_text("".join(f"{i % 3} {i + 1}:1\n" for i in range(100)))
    dataset = libsvm.load(DataSection(path=str(tmp_path / "all.svm")), FeatureOptions())
    assert sum(frame.collect().height for frame in dataset.splits.values()) == 100
    assert any("split 80/10/10" in remark for remark in dataset.remarks)
