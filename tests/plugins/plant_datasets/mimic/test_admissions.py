"""Admissions: notes joined with codes."""

from __future__ import annotations

from pathlib import Path

from mimic_fixtures import reading, write_mimic3, write_mimic4
from plant_datasets.mimic.admissions import keep_frequent, read_mimic3, read_mimic4
from plant_datasets.mimic.codes import read_mimic3_codes, read_mimic4_codes


def test_reports_stand_before_addenda_and_other_admissions_go(tmp_path: Path) -> None:
    codes = read_mimic3_codes(reading(write_mimic3(tmp_path)), caml_quirk=False)
    found = read_mimic3(reading(tmp_path), codes, "none", mask=False)
    assert found["doc_id"].to_list()[:2] == ["100", "101"]
    assert not {"102", "103", "104"} & set(found["doc_id"])
    text = found["text"][0]
    assert text.startswith("Admitted")
    assert text.endswith("An addendum, 12 34 mg.")
    assert "X-ray" not in text
    assert found.select("subject_id", "diagnoses", "procedures").row(0) == ("1", ["401.9", "E885.9"], ["00.66", "66"])
    assert read_mimic3(reading(tmp_path), codes, "e23", mask=False)["text"][1] == "she said well twice"


def test_codes_of_fewer_than_ten_admissions(tmp_path: Path) -> None:
    codes = read_mimic3_codes(reading(write_mimic3(tmp_path)), caml_quirk=False)
    found = keep_frequent(read_mimic3(reading(tmp_path), codes, "none", mask=False), 10)
    assert found.height == 11
    assert found["diagnoses"].explode().unique().to_list() == ["E885.9"]


def test_repeated_and_blank_notes_of_mimic4(tmp_path: Path) -> None:
    write_mimic4(tmp_path)
    found = read_mimic4(reading(tmp_path), read_mimic4_codes(reading(tmp_path), 10), "none", mask=True)
    assert found.height == 11
    assert found.select("doc_id", "text").row(0) == ("1", "Seen by   on Monday.")
    assert keep_frequent(found, 10)["diagnoses"].explode().unique().to_list() == ["I10"]
