"""Codes with their dots."""

from __future__ import annotations

from pathlib import Path

import pytest
from mimic_fixtures import reading, write_csv, write_mimic3, write_mimic4
from plant_datasets.mimic.codes import SYSTEMS, Kind, read_mimic3_codes, read_mimic4_codes

from plant_cli.data.vocabularies import add_dot

DIAGNOSES9 = {"4019": "401.9", "E8859": "E885.9", "E885": "E885", "V3001": "V30.01", "486": "486"}
OTHERS = [
    ("0066", "procedure", 9, "00.66"),
    ("66", "procedure", 9, "66"),
    ("I10", "diagnosis", 10, "I10"),
    ("E119", "diagnosis", 10, "E11.9"),
]
CASES = [*((code, "diagnosis", 9, dotted) for code, dotted in DIAGNOSES9.items()), *OTHERS, ("0DTJ4ZZ", "procedure", 10, "0DTJ4ZZ")]


@pytest.mark.parametrize(("code", "kind", "version", "dotted"), CASES)
def test_dots(code: str, kind: Kind, version: int, dotted: str) -> None:
    assert add_dot(code, SYSTEMS[kind, version]) == dotted


def test_leading_zeros_blanks_and_repetitions(tmp_path: Path) -> None:
    codes = read_mimic3_codes(reading(write_mimic3(tmp_path)), caml_quirk=False)
    assert codes["procedure"] == {"100": ["00.66", "66"], "101": ["38.93"]}
    assert codes["diagnosis"]["100"] == ["401.9", "E885.9"]
    assert read_mimic3_codes(reading(tmp_path), caml_quirk=True)["procedure"]["100"] == ["66"]


def test_versions_stay_apart(tmp_path: Path) -> None:
    write_mimic4(tmp_path)
    assert read_mimic4_codes(reading(tmp_path), 10)["diagnosis"]["1"] == ["E11.9", "I10"]
    assert read_mimic4_codes(reading(tmp_path), 9) == {"diagnosis": {"1": ["401.9"]}, "procedure": {}}


def test_rows_without_a_code_are_counted(tmp_path: Path) -> None:
    read = reading(write_mimic3(tmp_path))
    read_mimic3_codes(read, caml_quirk=False)
    assert read.remarks == ["DIAGNOSES_ICD: 1 rows have no code or no admission and are left out"]


def test_a_version_that_is_none_is_a_bad_row(tmp_path: Path) -> None:
    write_mimic4(tmp_path)
    columns = ["subject_id", "hadm_id", "seq_num", "icd_code", "icd_version"]
    write_csv(tmp_path / "hosp" / "diagnoses_icd.csv", columns, [(1, 1, 1, "I10", 10), (1, 1, 2, "E119", "ten"), (1, "x", 2, "E119", 10)])
    read = reading(tmp_path)
    assert read_mimic4_codes(read, 10)["diagnosis"] == {"1": ["I10"]}
    assert [(row.line, row.why) for row in read.bad.rows] == [
        (3, "a version of ICD that is neither 9 nor 10: 'ten'"),
        (4, "not a whole number: 'x'"),
    ]
