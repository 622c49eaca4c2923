"""Files of splits."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from plant_datasets.mimic.splits import read_rare_lists, read_splits, split_patients

from plant_cli.api import DataError

WANTED = {"100": "train", "101": "validation", "102": "test"}


def test_camls_folder(tmp_path: Path) -> None:
    for mode, hadm in (("train", "100"), ("dev", "101"), ("test", "102")):
        (tmp_path / f"{mode}_full_hadm_ids.csv").write_text(f"{hadm}\n")
    assert read_splits(tmp_path, "full") == WANTED
    with pytest.raises(DataError, match="splits cannot be read"):
        read_splits(tmp_path, "50")


@pytest.mark.parametrize("name", ["splits.feather", "splits.parquet", "splits.csv"])
def test_tables(tmp_path: Path, name: str) -> None:
    table = pl.DataFrame({"_id": [100, 101, 102], "split": ["train", "val", "test"]})
    {"feather": table.write_ipc, "parquet": table.write_parquet, "csv": table.write_csv}[name.rpartition(".")[2]](tmp_path / name)
    assert read_splits(tmp_path / name, "full") == WANTED
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="splits cannot be read"):
        read_splits(tmp_path / "x.csv", "full")


def test_lists_of_rare50_are_read_and_not_run(tmp_path: Path) -> None:
    lists = "train_ids = ['1_100']\ntrain_labels = ['34.71;34.71']\ndev_ids = ['2_101']\ndev_labels = ['77.7']\n"
    (tmp_path / "lists.py").write_text("import os\nos.remove('x')\n" + lists + "test_ids = ['3_102']\ntest_labels = ['990;52.0']\n")
    found = read_rare_lists(tmp_path / "lists.py")
    assert found == {"100": ("train", ["34.71"]), "101": ("validation", ["77.7"]), "102": ("test", ["52.0", "990"])}
    (tmp_path / "other.py").write_text("x = 1\n")
    with pytest.raises(DataError, match="splits cannot be read"):
        read_rare_lists(tmp_path / "other.py")


LISTS = "train_ids = ['1']\ntrain_labels = ['a']\ndev_ids = ['2']\ndev_labels = ['b']\ntest_ids = ['3', '4']\ntest_labels = ['c']\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"print 'x'", "not lists in Python 3"),
        (b"train_ids = [f()]", "not lists in Python 3"),
        (b"\xff", "not lists in Python 3"),
        (b"a = '\0'", "not lists in Python 3"),
        (LISTS.encode(), "test has 2 ids, and labels of 1"),
    ],
)
def test_damaged_lists_are_told(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "lists.py").write_bytes(content)
    with pytest.raises(DataError, match="splits cannot be read") as caught:
        read_rare_lists(tmp_path / "lists.py")
    assert said in caught.value.where


def test_damaged_splits_are_told(tmp_path: Path) -> None:
    for content in (b"ARROW1", b"", b"no feather"):
        (tmp_path / "splits.feather").write_bytes(content)
        with pytest.raises(DataError, match="splits cannot be read"):
            read_splits(tmp_path / "splits.feather", "full")
    (tmp_path / "train_full_hadm_ids.csv").write_bytes(b"\xff\xfe1")
    with pytest.raises(DataError, match="splits cannot be read"):
        read_splits(tmp_path, "full")


def test_patients_stay_together() -> None:
    places = split_patients(pl.Series([str(i % 50) for i in range(1000)]))
    assert len({(i % 50, place) for i, place in enumerate(places)}) == 50
    assert set(places) == {"train", "validation", "test"}
