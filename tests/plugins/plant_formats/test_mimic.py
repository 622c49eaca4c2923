"""MIMIC-III and MIMIC-IV, on made-up tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from mimic_fixtures import reading, write_csv, write_mimic3, write_mimic4
from plant_formats import Mimic3Options, plant_register_datasets
from plant_formats.mimic import (
    clean,
    find_table,
    keep_frequent,
    read_mimic3,
    read_mimic3_codes,
    read_mimic4,
    read_mimic4_codes,
    read_mimic_table,
    read_number,
    read_rare_lists,
    read_splits,
)

from plant_cli.api import DataError, DataSection, Dataset

SPECS = {spec.name: spec for spec in plant_register_datasets() if spec.name.startswith("mimic")}
TEXT = "Seen by [**Name 1**] on 12 34 mg; 250mg_x ___.\nOK"
LISTS = (
    "train_ids = ['1']\ntrain_labels = ['a']\ndev_ids = ['2']\ndev_labels = ['b']\ntest_ids "
    "= ['3', '4']\ntest_labels = ['c']\n"
)


def cells(*values: str) -> tuple[str, ...]:
    return values


@pytest.mark.parametrize(("lower", "packed"), [(False, False), (True, True)])
def test_tables_are_found_and_read_in_any_case(tmp_path: Path, lower: bool, packed: bool) -> None:
    read = reading(write_mimic3(tmp_path / "deep" / "er", lower, packed).parent.parent)
    assert list(read_mimic_table(read, "PROCEDURES_ICD", ("hadm_id", "icd9_code"), cells)) == [
        ("100", "0066"),
        ("100", "66"),
        ("101", "3893 "),
    ]
    assert [path.name.lower() for path in read.files] == [
        f"procedures_icd.csv{'.gz' if packed else ''}"
    ]
    with pytest.raises(DataError, match="no column icd_code"):
        next(read_mimic_table(read, "PROCEDURES_ICD", ("icd_code",), cells))


def test_missing_and_repeated_tables(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="0 files are the table"):
        find_table(tmp_path, "NOTEEVENTS")
    for name in ("NOTEEVENTS.csv", "noteevents.csv.gz"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match="2 files are the table"):
        find_table(tmp_path, "NOTEEVENTS")


def test_a_row_that_is_cut_off_is_named_by_the_line_in_which_it_begins(tmp_path: Path) -> None:
    (tmp_path / "NOTEEVENTS.csv").write_text('HADM_ID,TEXT\n1,"a\nb"\n2\n3,"c\n"\n')
    read = reading(tmp_path)
    assert list(read_mimic_table(read, "NOTEEVENTS", ("text",), cells)) == [("a\nb",), ("c\n",)]
    assert [(row.line, row.why) for row in read.bad.rows] == [(4, "1 fields, the header has 2")]
    with pytest.raises(DataError, match="a row cannot be read: 1 fields") as caught:
        list(read_mimic_table(reading(tmp_path, strict=True), "NOTEEVENTS", ("text",), cells))
    assert "line 4" in caught.value.where


def test_numbers() -> None:
    assert [read_number(value) for value in ("100.0", " 7 ", "", "nan")] == ["100", "7", None, None]
    with pytest.raises(ValueError, match=r"not a whole number: '1\.5'"):
        read_number("1.5")


def test_why_polars_does_not_read_these_tables(tmp_path: Path) -> None:
    """docs/decisions.md: its scan stops without naming the line, or, by its options, changes
    rows without a word.
    """
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n1,x\n2,y,lost\n")
    with pytest.raises(pl.exceptions.ComputeError) as caught:
        pl.scan_csv(path, infer_schema=False).collect()
    assert ("line 3" in str(caught.value), "lost" in str(caught.value)) == (False, False)
    assert pl.scan_csv(path, infer_schema=False, truncate_ragged_lines=True).collect().rows() == [
        ("1", "x"),
        ("2", "y"),
    ]
    path.write_bytes(b"a,b\n1,\xe9\n")
    with pytest.raises(pl.exceptions.ComputeError):
        pl.scan_csv(path, infer_schema=False).collect()
    assert pl.scan_csv(path, infer_schema=False, encoding="utf8-lossy").collect().rows() == [
        ("1", "\ufffd")
    ]


@pytest.mark.parametrize(
    ("text", "how", "mask", "prepared"),
    [
        (TEXT, "e23", False, "seen by name on mg 250mg x ok"),
        (TEXT, "caml", False, "seen by name on mg 250mg_x ___ ok"),
        (TEXT, "alpha", False, "seen by on ok"),
        (TEXT, "none", False, TEXT),
        (TEXT, "e23", True, "seen by on mg 250mg x ok"),
        (
            "12 a 3 b 45",
            "e23",
            False,
            "12 a b 45",
        ),  # numbers at the ends stay, as in the published code
    ],
)
def test_how_texts_are_prepared(text: str, how: Any, mask: bool, prepared: str) -> None:
    assert clean(text, how, mask=mask) == prepared


def test_codes_of_mimic3(tmp_path: Path) -> None:
    read = reading(write_mimic3(tmp_path))
    codes = read_mimic3_codes(read, caml_quirk=False)
    assert codes["procedure"] == {"100": ["00.66", "66"], "101": ["38.93"]}
    assert codes["diagnosis"]["100"] == ["401.9", "E885.9"]
    assert read.remarks == ["diagnoses_icd: 1 rows have no code or no admission and are left out"]
    assert read_mimic3_codes(reading(tmp_path), caml_quirk=True)["procedure"]["100"] == ["66"]


def test_codes_of_mimic4_of_one_version(tmp_path: Path) -> None:
    write_mimic4(tmp_path)
    assert read_mimic4_codes(reading(tmp_path), 10)["diagnosis"]["1"] == ["E11.9", "I10"]
    assert read_mimic4_codes(reading(tmp_path), 9) == {
        "diagnosis": {"1": ["401.9"]},
        "procedure": {},
    }
    columns = ["subject_id", "hadm_id", "seq_num", "icd_code", "icd_version"]
    write_csv(
        tmp_path / "hosp" / "diagnoses_icd.csv",
        columns,
        [(1, 1, 1, "I10", 10), (1, 1, 2, "E119", "ten"), (1, "x", 2, "E119", 10)],
    )
    read = reading(tmp_path)
    assert read_mimic4_codes(read, 10)["diagnosis"] == {"1": ["I10"]}
    assert [(row.line, row.why) for row in read.bad.rows] == [
        (3, "a version of ICD that is neither 9 nor 10: 'ten'"),
        (4, "not a whole number: 'x'"),
    ]


def test_admissions_of_mimic3(tmp_path: Path) -> None:
    codes = read_mimic3_codes(reading(write_mimic3(tmp_path)), caml_quirk=False)
    admissions = read_mimic3(reading(tmp_path), codes, Mimic3Options(text="none"))
    assert admissions["doc_id"].to_list()[:2] == ["100", "101"]
    assert not {"102", "103", "104"} & set(admissions["doc_id"])
    text = admissions["text"][0]  # the report before its addenda, and no other note
    assert (
        text.startswith("Admitted"),
        text.endswith("An addendum, 12 34 mg."),
        "X-ray" in text,
    ) == (True, True, False)
    assert admissions.select("subject_id", "diagnoses", "procedures").row(0) == (
        "1",
        ["401.9", "E885.9"],
        ["00.66", "66"],
    )
    assert (
        read_mimic3(reading(tmp_path), codes, Mimic3Options())["text"][1] == "she said well twice"
    )
    frequent = keep_frequent(admissions, reading(tmp_path))
    assert (frequent.height, frequent["diagnoses"].explode().unique().to_list()) == (11, ["E885.9"])


def test_admissions_of_mimic4(tmp_path: Path) -> None:
    """A repeated note counts once, a blank one not at all."""
    write_mimic4(tmp_path)
    admissions = read_mimic4(
        reading(tmp_path),
        read_mimic4_codes(reading(tmp_path), 10),
        Mimic3Options(text="none", deid="mask"),
    )
    assert admissions.height == 11
    assert admissions.select("doc_id", "text").row(0) == ("1", "Seen by   on Monday.")
    assert keep_frequent(admissions, reading(tmp_path))[
        "diagnoses"
    ].explode().unique().to_list() == ["I10"]


@pytest.mark.parametrize("name", ["caml", "splits.feather", "splits.parquet", "splits.csv"])
def test_files_of_splits(tmp_path: Path, name: str) -> None:
    table = pl.DataFrame({"_id": [100, 101, 102], "split": ["train", "val", "test"]})
    if name == "caml":
        for mode, hadm in (("train", "100"), ("dev", "101"), ("test", "102")):
            (tmp_path / f"{mode}_full_hadm_ids.csv").write_text(f"{hadm}\n")
        path = tmp_path
    else:
        path = tmp_path / name
        {"feather": table.write_ipc, "parquet": table.write_parquet, "csv": table.write_csv}[
            name.rpartition(".")[2]
        ](path)
    assert read_splits(path, "full") == {"100": "train", "101": "validation", "102": "test"}


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("lists.py", b"x = 1", "the lists none"),
        ("lists.py", b"print 'x'", "not lists in Python 3"),
        ("lists.py", b"train_ids = [f()]", "not lists in Python 3"),
        ("lists.py", b"\xff", "not lists in Python 3"),
        ("lists.py", b"a = '\0'", "not lists in Python 3"),
        ("lists.py", LISTS.encode(), "test has 2 ids, and labels of 1"),
        ("x.csv", b"a,b\n1,2\n", "columns a, b"),
        ("x.csv", b"_id,split\n1,holdout\n", "splits holdout"),
        ("splits.feather", b"ARROW1", ""),
        ("splits.feather", b"", ""),
        ("splits.feather", b"no feather", ""),
        ("caml/train_full_hadm_ids.csv", b"\xff\xfe1", "codec can't decode"),
        ("caml/train_50_hadm_ids.csv", b"1", "no train_full_hadm_ids.csv"),
    ],
)
def test_damaged_files_of_splits(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    with pytest.raises(DataError, match="splits cannot be read") as caught:
        read_rare_lists(path) if name == "lists.py" else read_splits(
            path.parent if "caml" in name else path, "full"
        )
    assert why in caught.value.where


def test_lists_of_rare50_are_read_and_not_run(tmp_path: Path) -> None:
    lists = (
        "train_ids = ['1_100']\ntrain_labels = ['34.71;34.71']\ndev_ids = "
        "['2_101']\ndev_labels = ['77.7']\n"
    )
    (tmp_path / "lists.py").write_text(
        "import os\nos.remove('x')\n" + lists + "test_ids = ['3_102']\ntest_labels = ['990;52.0']\n"
    )
    found = read_rare_lists(tmp_path / "lists.py")
    assert found == {
        "100": ("train", ["34.71"]),
        "101": ("validation", ["77.7"]),
        "102": ("test", ["52.0", "990"]),
    }


def load(name: str, root: Path, data: dict[str, Any] = {}, **options: Any) -> Dataset:  # noqa: B006
    dataset = SPECS[name].load(DataSection(path=str(root), **data), SPECS[name].options(**options))
    assert isinstance(dataset, Dataset)
    return dataset


def said(dataset: Dataset, *parts: str) -> bool:
    """Whether one remark has all of these parts."""
    return any(all(part in remark for part in parts) for remark in dataset.remarks)


def splits(folder: Path, rows: dict[str, str]) -> str:
    path = folder / "splits.feather"
    pl.DataFrame({"_id": [int(hadm) for hadm in rows], "split": list(rows.values())}).write_ipc(
        path
    )
    return str(path)


def rows(dataset: Dataset, split: str = "train") -> dict[str, list[str]]:
    return dict(dataset.splits[split].select("doc_id", "labels").collect().iter_rows())  # type: ignore[index]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_mimic3(tmp_path / "mimic3")


def test_full_with_its_splits_and_titles(root: Path, tmp_path: Path) -> None:
    dataset = load(
        "mimic3-full",
        root,
        splits=splits(tmp_path, {"100": "train", "101": "test", "999": "train"}),
    )
    assert rows(dataset) == {"100": ["00.66", "66", "401.9", "E885.9"]}
    assert rows(dataset, "test") == {"101": ["38.93", "V30.01"]}
    assert said(dataset, "1 admissions of", "10 documents are in no split")
    assert said(dataset, "the counts are of no known version of MIMIC-III-full")
    assert said(dataset, "1 discharge notes are of no admission: left out")
    assert said(dataset, "2 admissions have a discharge note and no code: left out")
    assert said(dataset, "1 admissions have codes and no discharge note: left out")
    assert {Path(path).name for path in dataset.files} >= {
        "NOTEEVENTS.csv",
        "DIAGNOSES_ICD.csv",
        "PROCEDURES_ICD.csv",
    }
    titles = dict(dataset.labels.collect().iter_rows())
    assert titles["401.9"] == "Unspecified essential hypertension"
    assert titles["00.66"] == "Percutaneous transluminal angioplasty"
    assert titles["006.6"] == "A diagnosis"


def test_without_splits_patients_are_split_and_it_is_said(root: Path) -> None:
    dataset = load("mimic3-full", root)
    assert said(dataset, "compares with no published figure")
    assert sum(frame.collect().height for frame in dataset.splits.values()) == 12


def test_top_50_by_the_published_list_or_by_train(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "test"})
    published = load("mimic3-top50", root, splits=given)
    assert (rows(published), rows(published, "test")) == ({"100": ["401.9"]}, {"101": ["38.93"]})
    assert rows(load("mimic3-top50", root, splits=given, top50="recount"))["100"] == [
        "00.66",
        "66",
        "401.9",
        "E885.9",
    ]


def test_clean_and_the_quirk(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "train", "200": "test"})
    clean = load("mimic3-clean", root, splits=given)
    assert rows(clean) == {"100": ["E885.9"]}
    assert said(
        clean, "codes of fewer than 10 admissions are left out, and 1 admissions that have no other"
    )
    assert rows(load("mimic3-full", root, splits=given, caml_quirk=True))["100"] == [
        "66",
        "401.9",
        "E885.9",
    ]


def test_few_in_two_protocols(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "train", "200": "test"})
    full = load("mimic3-few", root, splits=given)
    assert len(rows(full)) == 2
    assert said(full, "protocol full: 1 codes have 1 to 5")
    restricted = load("mimic3-few", root, splits=given, protocol="restricted")
    assert (rows(restricted), rows(restricted, "test")) == (
        {"100": ["E885.9"]},
        {"200": ["E885.9"]},
    )


def test_rare50_from_the_lists(root: Path, tmp_path: Path) -> None:
    train, dev = (
        "train_ids = ['1_100']\ntrain_labels = ['00.66;00.66']",
        "dev_ids = []\ndev_labels = []",
    )
    lists = f"{train}\n{dev}\ntest_ids = ['2_101', '9_999']\ntest_labels = ['38.93', '38.93']\n"
    (tmp_path / "lists.py").write_text(lists)
    dataset = load("mimic3-rare50", root, splits=str(tmp_path / "lists.py"))
    assert (rows(dataset), rows(dataset, "test")) == ({"100": ["00.66"]}, {"101": ["38.93"]})
    assert said(dataset, "1 admissions of", "have no document")


def test_mimic4_in_both_versions(tmp_path: Path) -> None:
    write_mimic4(tmp_path / "iv")
    dataset = load(
        "mimic4-icd10",
        tmp_path / "iv",
        splits=splits(tmp_path, {str(i): "train" for i in range(1, 12)}),
    )
    assert set(map(tuple, rows(dataset).values())) == {("0DTJ4ZZ", "I10")}
    assert dict(dataset.labels.collect().iter_rows()) == {
        "I10": "Essential hypertension",
        "0DTJ4ZZ": "Resection of Appendix",
    }
    assert said(dataset, "1 discharge notes are blank: left out")
    assert said(dataset, "1 discharge notes repeat another of their admission: left out")
    with pytest.raises(DataError, match="no code has 10 admissions"):
        load("mimic4-icd9", tmp_path / "iv")


def spoil(root: Path) -> Path:
    """Three rows of notes that cannot be read: a number that is none, a field too few, a wrong
    byte in a note of two lines.
    """
    path = root / "NOTEEVENTS.csv"
    content = path.read_bytes()
    content += b"90,7,many,2100-01-01,,,Discharge summary,Report,,,text\r\n91,7,101.0\r\n"
    content += b'92,7,101.0,2100-01-01,,,Discharge summary,Report,,,"two\r\nlines of caf\xe9"\r\n'
    path.write_bytes(content)
    return path


def test_bad_rows_are_counted_listed_and_kept(root: Path, tmp_path: Path) -> None:
    given = splits(tmp_path, {"100": "train", "101": "test"})
    whole = rows(load("mimic3-full", root, splits=given))
    path = spoil(root)
    lines = path.read_bytes().count(b"\n")
    dataset = load("mimic3-full", root, {"rejects": str(tmp_path / "rejects.tsv")}, splits=given)
    assert rows(dataset) == whole
    assert said(
        dataset,
        "3 rows cannot be read and are left out",
        f"{path}, line {lines - 3}: not a whole number: 'many'",
    )
    assert said(
        dataset,
        f"line {lines - 2}: 3 fields, the header has 11",
        f"line {lines}, column 13: byte 0xe9 is not UTF-8",
    )
    kept = pl.read_csv(tmp_path / "rejects.tsv", separator="\t")
    assert kept["line"].to_list() == [lines - 3, lines - 2, lines]
    assert "caf" in kept["content"][2]
    with pytest.raises(DataError, match="a row cannot be read") as caught:
        load("mimic3-full", root, {"strict": True}, splits=given)
    assert f"line {lines - 3}" in caught.value.where


def test_another_encoding(root: Path, tmp_path: Path) -> None:
    """Named, it is read; not named, many wrong rows say that the file is in another one."""
    given = splits(tmp_path, {"100": "train", "101": "test"})
    path = root / "NOTEEVENTS.csv"
    text = path.read_text().replace("Fall", "Chüte").replace("Admitted", "Admitted zürst")
    path.write_text(text, encoding="latin-1", newline="")
    for encoding, named in (("latin-1", "latin-1"), ("utf-16", None)):
        path.write_text(text, encoding=encoding, newline="")
        found = load("mimic3-full", root, {"encoding": named}, splits=given, text="none")
        assert "Admitted zürst" in found.splits["train"].collect()["text"][0]
    path.write_text(text, encoding="latin-1", newline="")
    with pytest.raises(DataError, match="not UTF-8: more than 10 rows"):
        load("mimic3-full", root, splits=given)
