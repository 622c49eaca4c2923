"""Which files of a folder are which split, and which tables stand beside a corpus."""

from pathlib import Path

import pytest
from plant_datasets.layout import find_beside, find_split_files

from plant_cli.api import DataError


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).touch()
    return folder


def test_splits_are_found_by_many_names_and_in_order(tmp_path: Path) -> None:
    found = find_split_files(touch(tmp_path, "test.csv", "DEV.jsonl.gz", "trn.parquet", "notes.txt"))
    assert [(split, [path.name for path in paths]) for split, paths in found.items()] == [
        ("train", ["trn.parquet"]),
        ("validation", ["DEV.jsonl.gz"]),
        ("test", ["test.csv"]),
    ]


def test_shards_belong_together(tmp_path: Path) -> None:
    names = ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    assert [path.name for path in find_split_files(touch(tmp_path, *names))["train"]] == names


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["train.csv", "training.parquet"], "claim to be the split train"),
        (["test.csv"], "no training file"),
        (["train-00000-of-00002.csv"], "not all shards of the split train"),
        (["train-00000-of-00002.csv", "train-00001-of-00003.csv"], "not all shards of the split train"),
        (["train.csv", "test-00001-of-00002.csv"], "not all shards of the split test"),
    ],
)
def test_a_folder_that_is_no_corpus_is_told(names: list[str], what: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=what):
        find_split_files(touch(tmp_path, *names))


def test_the_table_of_the_corpus_wins_over_that_of_the_folder(tmp_path: Path) -> None:
    touch(tmp_path, "notes.parquet", "notes.labels.csv", "labels.tsv")
    assert find_beside(tmp_path / "notes.parquet", "labels") == tmp_path / "notes.labels.csv"
    assert find_beside(tmp_path, "labels") == tmp_path / "labels.tsv"
    assert find_beside(tmp_path, "evidence") is None
