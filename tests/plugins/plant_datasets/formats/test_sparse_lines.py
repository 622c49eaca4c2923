"""Lines of labels and features."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant_datasets.formats import libsvm
from plant_datasets.formats.registration import FeatureOptions
from plant_datasets.formats.sparse_lines import Fault, SparseLine, is_sparse_file, parse_line

from plant_cli.api import DataError, DataSection


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("1,3 1:0.5 9:2", SparseLine([1, 3], [1, 9], [0.5, 2.0])),
        (" 1:0.5", SparseLine([], [1], [0.5])),
        ("1:0.5", SparseLine([], [1], [0.5])),
        ("4", SparseLine([4], [], [])),
        ("", SparseLine([], [], [])),
    ],
)
def test_parsing(line: str, parsed: SparseLine) -> None:
    assert parse_line(line) == parsed


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("1,x 1:1", 3),
        ("1 1:1 2", 7),
        ("1 1:y", 3),
        ("1 -1:2", 3),
        pytest.param("1 " + "9" * 5_000 + ":1", 3, id="a feature of 5,000 digits"),
        pytest.param("9" * 5_000 + " 1:1", 1, id="a label of 5,000 digits"),
    ],
)
def test_faults_have_a_column(line: str, column: int) -> None:
    with pytest.raises(Fault) as caught:
        parse_line(line)
    assert caught.value.column == column


def test_which_files_hold_such_lines(tmp_path) -> None:
    names = ["train.txt", "train.svm.gz", "train_raw_texts.txt", "X.trn.txt", "train.npz", "eurlex_train"]
    assert [is_sparse_file(tmp_path / name) for name in names] == [True, True, False, False, False, True]


@pytest.mark.parametrize(
    ("lines", "texts", "said"),
    [
        ("0 1:1\n1 1:1\n", "a\n", "there are 1 texts, and more lines of labels"),
        ("0 1:1\n", "a\nb\n\nc\n", "there are 1 lines of labels, and 2 more"),
    ],
)
def test_texts_and_lines_of_two_distributions_are_refused(lines: str, texts: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "train.svm").write_text(lines)
    (tmp_path / "train_raw_texts.txt").write_text(texts)
    with pytest.raises(DataError, match=said):
        libsvm.load(DataSection(path=str(tmp_path)), FeatureOptions())


def test_the_text_of_a_bad_last_line_is_not_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "train.svm").write_text("0 1:1\n1 1:y\n")
    (tmp_path / "train_raw_texts.txt").write_text("a\nb\n\n")
    dataset = libsvm.load(DataSection(path=str(tmp_path)), FeatureOptions())
    assert dataset.splits["train"].collect()["text"].to_list() == ["a"]
