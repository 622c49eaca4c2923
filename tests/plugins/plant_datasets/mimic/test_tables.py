"""Tables of PhysioNet."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from mimic_fixtures import reading, write_mimic3
from plant_datasets.mimic.tables import find_table, read_number, read_rows

from plant_cli.api import DataError


def cells(*values: str) -> tuple[str, ...]:
    return values


@pytest.mark.parametrize(("lower", "packed"), [(False, False), (True, True)])
def test_tables_are_found_and_read_in_any_case(tmp_path: Path, lower: bool, packed: bool) -> None:
    read = reading(write_mimic3(tmp_path / "deep" / "er", lower, packed).parent.parent)
    assert list(read_rows(read, "PROCEDURES_ICD", ("hadm_id", "icd9_code"), cells)) == [("100", "0066"), ("100", "66"), ("101", "3893 ")]
    assert [path.name.lower() for path in read.files] == [f"procedures_icd.csv{'.gz' if packed else ''}"]
    with pytest.raises(DataError, match="no column icd_code"):
        next(read_rows(read, "PROCEDURES_ICD", ("icd_code",), cells))


def test_missing_and_repeated_tables(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="0 files are the table"):
        find_table(tmp_path, "NOTEEVENTS")
    (tmp_path / "NOTEEVENTS.csv").touch()
    (tmp_path / "noteevents.csv.gz").touch()
    with pytest.raises(DataError, match="2 files are the table"):
        find_table(tmp_path, "NOTEEVENTS")


def test_a_row_that_is_cut_off_is_named_by_the_line_in_which_it_begins(tmp_path: Path) -> None:
    (tmp_path / "NOTEEVENTS.csv").write_text('HADM_ID,TEXT\n1,"a\nb"\n2\n3,"c\n')
    read = reading(tmp_path)
    assert list(read_rows(read, "NOTEEVENTS", ("text",), cells)) == [("a\nb",), ("c\n",)]
    assert [(row.line, row.why) for row in read.bad.rows] == [(4, "1 fields, the header has 2")]
    with pytest.raises(DataError, match="a row cannot be read: 1 fields") as caught:
        list(read_rows(reading(tmp_path, strict=True), "NOTEEVENTS", ("text",), cells))
    assert "line 4" in caught.value.where


def test_numbers() -> None:
    assert [read_number(value) for value in ("100.0", " 7 ", "", "nan")] == ["100", "7", None, None]
    with pytest.raises(ValueError, match=r"not a whole number: '1\.5'"):
        read_number("1.5")


def test_why_polars_does_not_read_these_tables(tmp_path: Path) -> None:
    """docs/decisions.md: its scan stops without naming the line, or, by its options, changes rows without a word."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,b\n1,x\n2,y,lost\n")
    with pytest.raises(pl.exceptions.ComputeError) as caught:
        pl.scan_csv(path, infer_schema=False).collect()
    assert "line 3" not in str(caught.value)
    assert "lost" not in str(caught.value)
    assert pl.scan_csv(path, infer_schema=False, truncate_ragged_lines=True).collect().rows() == [("1", "x"), ("2", "y")]
    path.write_bytes(b"a,b\n1,\xe9\n")
    with pytest.raises(pl.exceptions.ComputeError):
        pl.scan_csv(path, infer_schema=False).collect()
    assert pl.scan_csv(path, infer_schema=False, encoding="utf8-lossy").collect().rows() == [("1", "\ufffd")]
