"""Codes of admissions, with their dots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from plant_datasets.mimic.tables import find_table, read_number, read_rows

Kind = Literal["diagnosis", "procedure"]
Codes = dict[str, list[str]]  # by admission, sorted, each once


def add_dot(code: str, kind: Kind, version: int) -> str:
    """A code as it is printed: 4019 is 401.9, E8859 is E885.9, the procedure 0066 is 00.66; ICD-10-PCS has no dot."""
    if version == 10:
        place = 3 if kind == "diagnosis" else len(code)
    elif kind == "procedure":
        place = 2
    else:
        place = 4 if code.startswith("E") else 3
    return code if len(code) <= place else f"{code[:place]}.{code[place:]}"


def read_mimic3_codes(root: Path, *, caml_quirk: bool) -> dict[Kind, Codes]:
    """Codes of MIMIC-III.

    Args:
        root: the folder of PhysioNet.
        caml_quirk: procedures are read as numbers, as CAML did, so that 0066 becomes 66 and some codes fall together.
    """
    found: dict[Kind, Codes] = {}
    for kind, table in _tables("DIAGNOSES_ICD", "PROCEDURES_ICD"):
        rows = read_rows(find_table(root, table), ("hadm_id", "icd9_code"))
        quirk = caml_quirk and kind == "procedure"
        found[kind] = _gather((hadm, _as_number(code) if quirk else code.strip(), 9) for hadm, code in rows)[9]
        found[kind] = {hadm: sorted({add_dot(code, kind, 9) for code in codes}) for hadm, codes in found[kind].items()}
    return found


def read_mimic4_codes(root: Path, version: int) -> dict[Kind, Codes]:
    """Codes of MIMIC-IV in ICD-9 or ICD-10."""
    found: dict[Kind, Codes] = {}
    for kind, table in _tables("diagnoses_icd", "procedures_icd"):
        rows = read_rows(find_table(root, table), ("hadm_id", "icd_code", "icd_version"))
        codes = _gather((hadm, code.strip(), int(number)) for hadm, code, number in rows).get(version, {})
        found[kind] = {hadm: sorted({add_dot(code, kind, version) for code in names}) for hadm, names in codes.items()}
    return found


def _tables(diagnoses: str, procedures: str) -> Iterator[tuple[Kind, str]]:
    yield "diagnosis", diagnoses
    yield "procedure", procedures


def _gather(rows: Iterator[tuple[str, str, int]]) -> dict[int, Codes]:
    found: dict[int, Codes] = {9: {}}
    for hadm, code, version in rows:
        admission = read_number(hadm)
        if admission is not None and code and code.lower() != "nan":
            found.setdefault(version, {}).setdefault(admission, []).append(code)
    return found


def _as_number(code: str) -> str:
    return str(int(code)) if code.strip().isdecimal() else code.strip()
