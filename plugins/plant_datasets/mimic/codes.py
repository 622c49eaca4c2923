"""Codes of admissions, with their dots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from plant_cli.kit import System, add_dot
from plant_datasets.formats.documents import Reading
from plant_datasets.mimic.tables import read_number, read_rows

Kind = Literal["diagnosis", "procedure"]
Codes = dict[str, list[str]]  # by admission, sorted, each once
Coded = tuple[str | None, str, int]  # admission, code, version of ICD
SYSTEMS: Mapping[tuple[Kind, int], System] = {
    ("diagnosis", 9): "ICD-9-CM diagnoses",
    ("procedure", 9): "ICD-9-CM procedures",
    ("diagnosis", 10): "ICD-10-CM",
    ("procedure", 10): "ICD-10-PCS",
}


def read_mimic3_codes(reading: Reading, *, caml_quirk: bool) -> dict[Kind, Codes]:
    """Codes of MIMIC-III.

    Args:
        reading: of the folder of PhysioNet.
        caml_quirk: procedures are read as numbers, as CAML did, so that 0066 becomes 66 and some codes fall together.
    """
    found: dict[Kind, Codes] = {}
    for kind, table in _tables("DIAGNOSES_ICD", "PROCEDURES_ICD"):
        quirk = caml_quirk and kind == "procedure"

        def parse(hadm: str, code: str, quirk: bool = quirk) -> Coded:
            return read_number(hadm), _as_number(code) if quirk else code.strip(), 9

        found[kind] = _gather(reading, table, ("hadm_id", "icd9_code"), parse, kind, 9)
    return found


def read_mimic4_codes(reading: Reading, version: int) -> dict[Kind, Codes]:
    """Codes of MIMIC-IV in ICD-9 or ICD-10."""

    def parse(hadm: str, code: str, number: str) -> Coded:
        if number.strip() not in ("9", "10"):
            raise ValueError(f"a version of ICD that is neither 9 nor 10: {number[:40]!r}")
        return read_number(hadm), code.strip(), int(number)

    columns = ("hadm_id", "icd_code", "icd_version")
    return {kind: _gather(reading, table, columns, parse, kind, version) for kind, table in _tables("diagnoses_icd", "procedures_icd")}


def _tables(diagnoses: str, procedures: str) -> Iterator[tuple[Kind, str]]:
    yield "diagnosis", diagnoses
    yield "procedure", procedures


def _gather(reading: Reading, table: str, columns: tuple[str, ...], parse: Callable[..., Coded], kind: Kind, version: int) -> Codes:
    """Codes of one version with their dots, by admission; a remark counts the rows without code or admission."""
    found: dict[str, set[str]] = {}
    blank = 0
    for admission, code, number in read_rows(reading, table, columns, parse):
        if admission is None or not code or code.lower() == "nan":
            blank += 1
        elif number == version:
            found.setdefault(admission, set()).add(add_dot(code, SYSTEMS[kind, version]))
    if blank:
        reading.remarks.append(f"{table}: {blank:,} rows have no code or no admission and are left out")
    return {admission: sorted(codes) for admission, codes in found.items()}


def _as_number(code: str) -> str:
    return str(int(code)) if code.strip().isdecimal() else code.strip()
