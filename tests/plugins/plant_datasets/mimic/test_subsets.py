"""The corpora of the literature, on made-up tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from mimic_fixtures import write_mimic3, write_mimic4
from plant_datasets.mimic.registration import MIMIC

from plant_cli.api import DataSection, Dataset


def load(name: str, root: Path, **options: Any) -> Dataset:
    spec = next(spec for spec in MIMIC if spec.name == name)
    return spec.load(DataSection(path=str(root)), spec.options(**options))


def splits(folder: Path, rows: dict[str, str]) -> str:
    path = folder / "splits.feather"
    pl.DataFrame({"_id": [int(hadm) for hadm in rows], "split": list(rows.values())}).write_ipc(path)
    return str(path)


def rows(dataset: Dataset, split: str = "train") -> dict[str, list[str]]:
    return dict(dataset.splits[split].select("doc_id", "labels").collect().iter_rows())  # type: ignore[index]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_mimic3(tmp_path / "mimic3")


def test_full_with_its_splits_and_titles(root: Path, tmp_path: Path) -> None:
    dataset = load("mimic3-full", root, splits=splits(tmp_path, {"100": "train", "101": "test", "999": "train"}))
    assert rows(dataset) == {"100": ["00.66", "66", "401.9", "E885.9"]}
    assert rows(dataset, "test") == {"101": ["38.93", "V30.01"]}
    assert dataset.remarks[0].startswith("1 admissions of")
    assert "10 documents are in no split" in dataset.remarks[0]
    assert "the counts are of no known version of MIMIC-III-full" in dataset.remarks[1]
    assert dataset.labels is not None
    titles = dict(dataset.labels.collect().iter_rows())
    assert titles["401.9"] == "Unspecified essential hypertension"
    assert titles["00.66"] == "Percutaneous transluminal angioplasty"
    assert titles["006.6"] == "A diagnosis"


def test_without_splits_patients_are_split_and_it_is_said(root: Path) -> None:
    assert "compares with no published figure" in load("mimic3-full", root).remarks[0]


def test_top_50_by_the_published_list_or_by_train(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "test"})
    published = load("mimic3-top50", root, splits=given)
    assert (rows(published), rows(published, "test")) == ({"100": ["401.9"]}, {"101": ["38.93"]})
    assert rows(load("mimic3-top50", root, splits=given, top50="recount"))["100"] == ["00.66", "66", "401.9", "E885.9"]


def test_clean_and_the_quirk(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "train", "200": "test"})
    assert rows(load("mimic3-clean", root, splits=given)) == {"100": ["E885.9"]}
    assert rows(load("mimic3-full", root, splits=given, caml_quirk=True))["100"] == ["66", "401.9", "E885.9"]


def test_few_in_two_protocols(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "train", "200": "test"})
    full = load("mimic3-few", root, splits=given)
    assert len(rows(full)) == 2
    assert "protocol full: 1 codes have 1 to 5" in full.remarks[1]
    restricted = load("mimic3-few", root, splits=given, protocol="restricted")
    assert (rows(restricted), rows(restricted, "test")) == ({"100": ["E885.9"]}, {"200": ["E885.9"]})


def test_rare50_from_the_lists(root: Path, tmp_path: Path) -> None:
    train, dev = "train_ids = ['1_100']\ntrain_labels = ['00.66;00.66']", "dev_ids = []\ndev_labels = []"
    lists = f"{train}\n{dev}\ntest_ids = ['2_101']\ntest_labels = ['38.93']\n"
    (tmp_path / "lists.py").write_text(lists)
    dataset = load("mimic3-rare50", root, splits=str(tmp_path / "lists.py"))
    assert (rows(dataset), rows(dataset, "test")) == ({"100": ["00.66"]}, {"101": ["38.93"]})


def test_mimic4_in_both_versions(tmp_path: Path) -> None:
    write_mimic4(tmp_path / "iv")
    dataset = load("mimic4-icd10", tmp_path / "iv", splits=splits(tmp_path, {str(i): "train" for i in range(1, 12)}))
    assert set(map(tuple, rows(dataset).values())) == {("0DTJ4ZZ", "I10")}
    assert dataset.labels is not None
    assert dict(dataset.labels.collect().iter_rows()) == {"I10": "Essential hypertension", "0DTJ4ZZ": "Resection of Appendix"}
    assert load("mimic4-icd9", tmp_path / "iv").splits == {}
