"""Tables of PhysioNet."""

from __future__ import annotations

from pathlib import Path

import pytest
from mimic_fixtures import write_mimic3
from plant_datasets.mimic.tables import find_table, read_number, read_rows

from plant_cli.api import DataError


@pytest.mark.parametrize(("lower", "packed"), [(False, False), (True, True)])
def test_tables_are_found_and_read_in_any_case(tmp_path: Path, lower: bool, packed: bool) -> None:
    path = find_table(write_mimic3(tmp_path / "deep" / "er", lower, packed).parent.parent, "PROCEDURES_ICD")
    assert list(read_rows(path, ("hadm_id", "icd9_code"))) == [("100", "0066"), ("100", "66"), ("101", "3893 ")]
    with pytest.raises(DataError, match="no column icd_code"):
        next(read_rows(path, ("icd_code",)))


def test_missing_repeated_and_cut_tables(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="0 files are the table"):
        find_table(tmp_path, "NOTEEVENTS")
    (tmp_path / "NOTEEVENTS.csv").write_text('HADM_ID,TEXT\n1,"a\nb"\n2\n')
    with pytest.raises(DataError, match="a row has 1 fields") as caught:
        list(read_rows(tmp_path / "NOTEEVENTS.csv", ("text",)))
    assert "line 4" in caught.value.where
    (tmp_path / "noteevents.csv.gz").touch()
    with pytest.raises(DataError, match="2 files are the table"):
        find_table(tmp_path, "NOTEEVENTS")


def test_numbers() -> None:
    assert [read_number(value) for value in ("100.0", " 7 ", "", "nan")] == ["100", "7", None, None]
