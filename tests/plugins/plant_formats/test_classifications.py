"""Codes of ICD with their dots, and their titles in order files and lists."""

from __future__ import annotations

import pytest
from plant_formats.classifications import (
    SYSTEMS,
    System,
    add_dot,
    find_classification,
    read_icd_titles,
)

CODES: dict[System, dict[str, str]] = {
    "ICD-9-CM diagnoses": {
        "4019": "401.9",
        "401": "401",
        "E8859": "E885.9",
        "E885": "E885",
        "V3001": "V30.01",
        "486": "486",
    },
    "ICD-9-CM procedures": {"0066": "00.66", "66": "66", "9904": "99.04"},
    "ICD-10-CM": {"I10": "I10", "E119": "E11.9", "S52501A": "S52.501A"},
    "ICD-10-PCS": {"0DTJ4ZZ": "0DTJ4ZZ", "0DT": "0DT"},
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_dots(system: System) -> None:
    assert {code: add_dot(code, system) for code in CODES[system]} == CODES[system]


ORDER = "\n".join(
    f"{number:05d} {code:<7} {flag} {short:<60} {long}"
    for number, code, flag, short, long in [
        (1, "A00", 0, "Cholera", "Cholera"),
        (
            2,
            "A000",
            1,
            "Cholera due to Vibrio cholerae 01, biovar cholerae",
            "Cholera due to Vibrio cholerae 01, biovar cholerae",
        ),
        (
            3,
            "S52501A",
            1,
            "Unsp fracture of the lower end of right radius, init",
            "Unspecified fracture of the lower end of right radius",
        ),
    ]
)


def test_the_order_file_has_categories_and_short_titles() -> None:
    table, remarks = read_icd_titles(ORDER)  # type: ignore[misc]
    assert remarks == ["3 titles of ICD-10-CM (order file)"]
    assert table.select("label", "parents").rows() == [
        ("A00", []),
        ("A00.0", ["A00"]),
        ("S52.501A", []),
    ]
    assert table["alternatives"].to_list() == [
        [],
        [],
        ["Unsp fracture of the lower end of right radius, init"],
    ]


@pytest.mark.parametrize(
    ("text", "labels", "system"),
    [
        (
            "A000    Cholera due to Vibrio\nA0100   Typhoid fever\n",
            ["A00.0", "A01.00"],
            "ICD-10-CM",
        ),
        (
            "0016070 Bypass Cerebral Ventricle\n0DTJ4ZZ Resection of Appendix\n",
            ["0016070", "0DTJ4ZZ"],
            "ICD-10-PCS",
        ),
        (
            "0010  Cholera d/t vib cholerae\nE8859 Fall NOS\nV3001 Single liveborn\n",
            ["001.0", "E885.9", "V30.01"],
            "ICD-9-CM diagnoses",
        ),
        ("0001 Therapeutic ultrasound\n0066 PTCA\n", ["00.01", "00.66"], "ICD-9-CM procedures"),
    ],
)
def test_lists_of_four_classifications(text: str, labels: list[str], system: str) -> None:
    table, remarks = read_icd_titles(text)  # type: ignore[misc]
    assert table["label"].to_list() == labels
    assert system in remarks[0]


def test_lines_that_fit_no_layout_are_counted() -> None:
    _, remarks = read_icd_titles("A000    Cholera\n" * 100 + "* end\n")  # type: ignore[misc]
    assert remarks[1] == "1 lines are not a code and a title, and are left out: 101"


@pytest.mark.parametrize(
    "text", ["", "label,title\nA,b\n", "A000\n", "some prose\nand more\n", "HELLO world\nTHE end\n"]
)
def test_other_files_are_none(text: str) -> None:
    assert read_icd_titles(text) is None
    assert find_classification(["ABC-1"]) is None
