"""The corpora of the literature, on made-up tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from mimic_fixtures import write_mimic3, write_mimic4
from plant_datasets.mimic.registration import MIMIC

from plant_cli.api import DataError, DataSection, Dataset


def load(name: str, root: Path, **options: Any) -> Dataset:
    spec = next(spec for spec in MIMIC if spec.name == name)
    return spec.load(DataSection(path=str(root)), spec.options(**options))


def said(dataset: Dataset, *parts: str) -> bool:
    """Whether one remark has all of these parts."""
    return any(all(part in remark for part in parts) for remark in dataset.remarks)


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
    assert said(dataset, "1 admissions of", "10 documents are in no split")
    assert said(dataset, "the counts are of no known version of MIMIC-III-full")
    assert said(dataset, "1 discharge notes are of no admission: left out")
    assert said(dataset, "2 admissions have a discharge note and no code: left out")
    assert said(dataset, "1 admissions have codes and no discharge note: left out")
    assert {Path(path).name for path in dataset.files} >= {"NOTEEVENTS.csv", "DIAGNOSES_ICD.csv", "PROCEDURES_ICD.csv"}
    assert dataset.labels is not None
    titles = dict(dataset.labels.collect().iter_rows())
    assert titles["401.9"] == "Unspecified essential hypertension"
    assert titles["00.66"] == "Percutaneous transluminal angioplasty"
    assert titles["006.6"] == "A diagnosis"


def test_without_splits_patients_are_split_and_it_is_said(root: Path) -> None:
    assert said(load("mimic3-full", root), "compares with no published figure")


def test_top_50_by_the_published_list_or_by_train(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "test"})
    published = load("mimic3-top50", root, splits=given)
    assert (rows(published), rows(published, "test")) == ({"100": ["401.9"]}, {"101": ["38.93"]})
    assert rows(load("mimic3-top50", root, splits=given, top50="recount"))["100"] == ["00.66", "66", "401.9", "E885.9"]


def test_clean_and_the_quirk(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "train", "200": "test"})
    clean = load("mimic3-clean", root, splits=given)
    assert rows(clean) == {"100": ["E885.9"]}
    assert said(clean, "codes of fewer than 10 admissions are left out, and 1 admissions that have no other")
    assert rows(load("mimic3-full", root, splits=given, caml_quirk=True))["100"] == ["66", "401.9", "E885.9"]


def test_few_in_two_protocols(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "train", "200": "test"})
    full = load("mimic3-few", root, splits=given)
    assert len(rows(full)) == 2
    assert said(full, "protocol full: 1 codes have 1 to 5")
    restricted = load("mimic3-few", root, splits=given, protocol="restricted")
    assert (rows(restricted), rows(restricted, "test")) == ({"100": ["E885.9"]}, {"200": ["E885.9"]})


def test_rare50_from_the_lists(root: Path, tmp_path: Path) -> None:
    train, dev = "train_ids = ['1_100']\ntrain_labels = ['00.66;00.66']", "dev_ids = []\ndev_labels = []"
    lists = f"{train}\n{dev}\ntest_ids = ['2_101', '9_999']\ntest_labels = ['38.93', '38.93']\n"
    (tmp_path / "lists.py").write_text(lists)
    dataset = load("mimic3-rare50", root, splits=str(tmp_path / "lists.py"))
    assert (rows(dataset), rows(dataset, "test")) == ({"100": ["00.66"]}, {"101": ["38.93"]})
    assert said(dataset, "1 admissions of", "have no document")


def test_mimic4_in_both_versions(tmp_path: Path) -> None:
    write_mimic4(tmp_path / "iv")
    dataset = load("mimic4-icd10", tmp_path / "iv", splits=splits(tmp_path, {str(i): "train" for i in range(1, 12)}))
    assert set(map(tuple, rows(dataset).values())) == {("0DTJ4ZZ", "I10")}
    assert dataset.labels is not None
    assert dict(dataset.labels.collect().iter_rows()) == {"I10": "Essential hypertension", "0DTJ4ZZ": "Resection of Appendix"}
    assert said(dataset, "1 discharge notes are blank: left out")
    assert said(dataset, "1 discharge notes repeat another of their admission: left out")
    assert load("mimic4-icd9", tmp_path / "iv").splits == {}


def spoil(root: Path) -> Path:
    """Three rows of notes that cannot be read: a number that is none, a field too few, a wrong byte in a note of two lines."""
    path = root / "NOTEEVENTS.csv"
    content = path.read_bytes()
    content += b"90,7,many,2100-01-01,,,Discharge summary,Report,,,text\r\n91,7,101.0\r\n"
    content += b'92,7,101.0,2100-01-01,,,Discharge summary,Report,,,"two\r\nlines of caf\xe9"\r\n'
    path.write_bytes(content)
    return path


def test_bad_rows_are_counted_listed_and_kept(root: Path, tmp_path: Path) -> None:
    whole = rows(load("mimic3-full", root, splits=splits(tmp_path, {"100": "train", "101": "test"})))
    path = spoil(root)
    lines = path.read_bytes().count(b"\n")
    spec = next(spec for spec in MIMIC if spec.name == "mimic3-full")
    options = spec.options(splits=splits(tmp_path, {"100": "train", "101": "test"}))
    dataset = spec.load(DataSection(path=str(root), rejects=str(tmp_path / "rejects.tsv")), options)
    assert rows(dataset) == whole
    assert said(dataset, "3 rows cannot be read and are left out", f"{path}, line {lines - 3}: not a whole number: 'many'")
    assert said(dataset, f"line {lines - 2}: 3 fields, the header has 11", f"line {lines - 1}: byte 0xe9 is not UTF-8")
    kept = pl.read_csv(tmp_path / "rejects.tsv", separator="\t")
    assert kept["line"].to_list() == [lines - 3, lines - 2, lines - 1]
    assert "lines of caf" in kept["content"][2]
    with pytest.raises(DataError, match="a row cannot be read") as caught:
        spec.load(DataSection(path=str(root), strict=True), options)
    assert f"line {lines - 3}" in caught.value.where


def test_another_encoding(root: Path, tmp_path: Path) -> None:
    """Named, it is read; not named, many wrong rows say that the file is in another one."""
    given = splits(tmp_path, {"100": "train", "101": "test"})
    spec = next(spec for spec in MIMIC if spec.name == "mimic3-full")
    path = root / "NOTEEVENTS.csv"
    text = path.read_text().replace("Fall", "Chüte").replace("Admitted", "Admitted zürst")
    path.write_text(text, encoding="latin-1", newline="")
    for encoding, named in (("latin-1", "latin-1"), ("utf-16", None)):
        path.write_text(text, encoding=encoding, newline="")
        found = spec.load(DataSection(path=str(root), encoding=named), spec.options(splits=given, text="none"))
        assert "Admitted zürst" in found.splits["train"].collect()["text"][0]
    path.write_text(text, encoding="latin-1", newline="")
    with pytest.raises(DataError, match="the file is not UTF-8: it has more than 10 rows"):
        spec.load(DataSection(path=str(root)), spec.options(splits=given))
