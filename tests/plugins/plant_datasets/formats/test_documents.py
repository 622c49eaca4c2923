"""What readers of formats share."""

from __future__ import annotations

from pathlib import Path

import pytest
from plant_datasets.formats.documents import (
    Document,
    NumberedLabels,
    Reading,
    find_base,
    find_file,
    find_parts,
    is_line_file,
    read_numbered,
)

from plant_cli.api import DataError, DataSection, UsageError


def reading(path: Path | None) -> Reading:
    return Reading.of(DataSection(path=None if path is None else str(path)))


def test_a_corpus_must_be_named() -> None:
    with pytest.raises(UsageError, match="no corpus was named"):
        reading(None)


def test_files_are_found_by_the_words_of_their_names(tmp_path: Path) -> None:
    for name in ("eurlex_train.txt", "X.tst.txt.gz", "notes.md", "devices.txt"):
        (tmp_path / name).touch()
    found = find_parts(tmp_path, is_line_file)
    assert {split: path.name for split, path in found.items()} == {"train": "eurlex_train.txt", "test": "X.tst.txt.gz"}
    assert find_parts(tmp_path / "notes.md", is_line_file) == {None: tmp_path / "notes.md"}
    assert find_file(tmp_path, "X.tst.txt") == tmp_path / "X.tst.txt.gz"
    assert find_file(tmp_path, "missing") is None
    (tmp_path / "trn.txt").touch()
    with pytest.raises(DataError, match="two files claim"):
        find_parts(tmp_path, is_line_file)


def test_a_folder_without_training_files(tmp_path: Path) -> None:
    (tmp_path / "test.txt").touch()
    with pytest.raises(DataError, match="no training file"):
        find_parts(tmp_path, is_line_file)


@pytest.mark.parametrize(
    ("numbers", "declared", "base"), [([1, 2, 3], 3, 1), ([0, 3], 3, 0), ([1, 2], 3, 0), ([1, 2], None, 0), ([], 2, 0)]
)
def test_numbers_from_one(numbers: list[int], declared: int | None, base: int) -> None:
    assert find_base(numbers, declared) == base


def test_names_of_numbers(tmp_path: Path) -> None:
    labels = NumberedLabels(["a", "b"], ["A", None], 1)
    assert (labels.name(1), labels.name(2)) == ("a", "b")
    for number in (0, 3):
        with pytest.raises(IndexError):
            labels.name(number)
    assert NumberedLabels(None, None).name(7) == "7"
    (tmp_path / "Y.txt").write_text("x\n\n")
    assert read_numbered(reading(tmp_path), tmp_path, ["Y.txt"]).titles == ["x"]
    (tmp_path / "labels.tsv").write_text("label\ttitle\nE11\tDiabetes\nI10\t\n")
    found = read_numbered(reading(tmp_path), tmp_path, ["Y.txt"])
    assert (found.ids, found.titles) == (["E11", "I10"], ["Diabetes", None])


def test_documents_without_splits_are_split_and_ids_are_made(tmp_path: Path) -> None:
    one = reading(tmp_path).dataset({"train": [Document(1, "t", ["a"]), Document(2, "u", [], "own")]})
    assert one.splits["train"].collect()["doc_id"].to_list() == ["train-1", "own"]
    many = reading(tmp_path).dataset({None: (Document(n, f"text {n}", ["a"]) for n in range(1, 101))})
    assert sum(frame.collect().height for frame in many.splits.values()) == 100
    assert "split 80/10/10" in many.remarks[0]
