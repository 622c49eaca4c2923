"""Made-up tables in the schema of MIMIC, with every trap that a reader falls into. No row is of
a patient.
"""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

from plant_formats.corpus_reader import CorpusReader

from plant_cli.api import DataSection


def reading(root: Path, **data: Any) -> CorpusReader:
    """A reading of the folder with options of the section `data`."""
    return CorpusReader.of(DataSection(path=str(root), **data))


NOTES = [
    "ROW_ID",
    "SUBJECT_ID",
    "HADM_ID",
    "CHARTDATE",
    "CHARTTIME",
    "STORETIME",
    "CATEGORY",
    "DESCRIPTION",
    "CGID",
    "ISERROR",
    "TEXT",
]
CODES = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"]
TITLES = ["ROW_ID", "ICD9_CODE", "SHORT_TITLE", "LONG_TITLE"]


def write_csv(
    path: Path, columns: list[str], rows: list[tuple[Any, ...]], packed: bool = False
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO(newline="")
    csv.writer(text).writerows([columns, *rows])
    content = text.getvalue().encode()
    Path(f"{path}.gz" if packed else path).write_bytes(
        gzip.compress(content) if packed else content
    )


def note(
    row: int,
    subject: int,
    hadm: str,
    text: str,
    category: str = "Discharge summary",
    kind: str = "Report",
    date: str = "2100-01-01",
):
    return (row, subject, hadm, date, "", "", category, kind, "", "", text)


def write_mimic3(root: Path, lower: bool = False, packed: bool = False) -> Path:
    """Admission 100: addendum before its report; 101: another patient; 102: codes alone; 103: a
    note alone; 104: CPT alone.
    """
    case = [str.lower if lower else str][0]
    notes = [
        note(1, 1, "100.0", "An addendum, 12 34 mg.", kind="Addendum"),
        note(2, 1, "100.0", "Admitted [**Hospital 1**] with\nCHF; 250mg given 3 x 4 times."),
        note(3, 1, "", "A note without an admission."),
        note(4, 1, "100.0", "X-ray.", category="Radiology"),
        note(5, 2, "101.0", 'She said "well", twice.'),
        note(6, 3, "103.0", "No codes."),
        note(7, 4, "104.0", "CPT alone."),
        *(note(20 + i, 50 + i, f"{200 + i}.0", f"Fall number {i}") for i in range(10)),
    ]
    diagnoses = [
        (1, 1, 100, 1, "4019"), (2, 1, 100, 2, "E8859"), (3, 1, 100, 3, "4019"), (4, 1, 100, 4, ""), (5, 2, 101, 1, "V3001"),
        (6, 9, 102, 1, "4280"), *((20 + i, 50 + i, 200 + i, 1, "E8859") for i in range(10)),
    ]  # fmt: skip
    procedures = [(1, 1, 100, 1, "0066"), (2, 1, 100, 2, "66"), (3, 2, 101, 1, "3893 ")]
    tables: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {
        "NOTEEVENTS": (NOTES, notes),
        "DIAGNOSES_ICD": (CODES, diagnoses),
        "PROCEDURES_ICD": (CODES, procedures),
        "D_ICD_DIAGNOSES": (
            TITLES,
            [
                (1, "4019", "Hypertension", "Unspecified essential hypertension"),
                (2, "0066", "x", "A diagnosis"),
            ],
        ),
        "D_ICD_PROCEDURES": (
            TITLES,
            [(1, "0066", "PTCA", "Percutaneous transluminal angioplasty")],
        ),
        "CPTEVENTS": (["ROW_ID", "HADM_ID", "CPT_CD"], [(1, 104, "99291")]),
    }
    for name, (columns, rows) in tables.items():
        write_csv(root / f"{case(name)}.csv", [case(column) for column in columns], rows, packed)
    return root


NOTES4 = "note_id subject_id hadm_id note_type note_seq charttime storetime text"
CODES4 = "subject_id hadm_id seq_num icd_code icd_version"
PROCEDURES4 = "subject_id hadm_id seq_num chartdate icd_code icd_version"


def write_mimic4(root: Path) -> Path:
    """Admission 1 has both versions of ICD, a note that is repeated and one that is blank; 2 to
    11 have ICD-10 alone.
    """
    notes = [
        (f"1-DS-{n}", 1, 1, "DS", n, "", "", text)
        for n, text in enumerate(["Seen by ___ on Monday."] * 2 + [" "], start=1)
    ]
    notes += [(f"{i}-DS", i, i, "DS", 1, "", "", f"Visit {i} of many") for i in range(2, 12)]
    write_csv(root / "note" / "discharge.csv", NOTES4.split(), notes, True)
    diagnoses = [(i, i, 1, "I10  ", 10) for i in range(1, 12)] + [
        (1, 1, 2, "E119", 10),
        (1, 1, 3, "4019", 9),
    ]
    write_csv(root / "hosp" / "diagnoses_icd.csv", CODES4.split(), diagnoses)
    procedures = [(i, i, 1, "2100-01-01", "0DTJ4ZZ", 10) for i in range(1, 12)]
    write_csv(root / "hosp" / "procedures_icd.csv", PROCEDURES4.split(), procedures, True)
    titles = ["icd_code", "icd_version", "long_title"]
    write_csv(
        root / "hosp" / "d_icd_diagnoses.csv",
        titles,
        [("I10", 10, "Essential hypertension"), ("I10", 9, "Something else")],
    )
    write_csv(
        root / "hosp" / "d_icd_procedures.csv", titles, [("0DTJ4ZZ", 10, "Resection of Appendix")]
    )
    return root
