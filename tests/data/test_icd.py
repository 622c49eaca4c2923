"""Codes with their dots."""

from __future__ import annotations

import pytest

from plant_cli.data.vocabularies import SYSTEMS, System, add_dot

DIAGNOSES9 = {"4019": "401.9", "401": "401", "E8859": "E885.9", "E885": "E885", "V3001": "V30.01", "486": "486"}
PROCEDURES9 = {"0066": "00.66", "66": "66", "9904": "99.04"}
DIAGNOSES10 = {"I10": "I10", "E119": "E11.9", "S52501A": "S52.501A"}
CODES: dict[System, dict[str, str]] = {
    "ICD-9-CM diagnoses": DIAGNOSES9,
    "ICD-9-CM procedures": PROCEDURES9,
    "ICD-10-CM": DIAGNOSES10,
    "ICD-10-PCS": {"0DTJ4ZZ": "0DTJ4ZZ", "0DT": "0DT"},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_dots(system: System) -> None:
    assert {code: add_dot(code, system) for code in CODES[system]} == CODES[system]
