"""Admissions: the discharge notes of each with its codes."""

from __future__ import annotations

import polars as pl

from plant_datasets.formats.documents import Reading
from plant_datasets.mimic.codes import Codes, Kind
from plant_datasets.mimic.tables import read_number, read_rows
from plant_datasets.mimic.texts import Cleaning, clean

SCHEMA = {
    "doc_id": pl.String(),
    "subject_id": pl.String(),
    "text": pl.String(),
    "diagnoses": pl.List(pl.String()),
    "procedures": pl.List(pl.String()),
}
Order = tuple[bool, str, str, int]  # whether a note is an addendum, its time, date and row
_NOTES3 = ("row_id", "subject_id", "hadm_id", "chartdate", "charttime", "category", "description", "text")


def read_mimic3(reading: Reading, codes: dict[Kind, Codes], cleaning: Cleaning, *, mask: bool) -> pl.DataFrame:
    """Admissions of MIMIC-III with notes and codes; the report stands before its addenda, each group in order of time.

    Args:
        reading: of the folder of PhysioNet; remarks count what is left out.
        codes: of all admissions.
        cleaning: of the texts.
        mask: see `texts.clean`.

    Returns:
        A table of the schema `SCHEMA`, by the number of the admission.
    """
    notes: dict[str, list[tuple[Order, str, str]]] = {}
    homeless = 0
    for found in read_rows(reading, "NOTEEVENTS", _NOTES3, _parse_note3):
        if found is None:
            continue
        admission, order, subject, text = found
        homeless += admission is None
        if admission is not None:
            notes.setdefault(admission, []).append((order, subject, text))
    _say(reading, homeless, "discharge notes are of no admission")
    joined = {hadm: (group[0][1], " ".join(text for _, _, text in sorted(group))) for hadm, group in notes.items()}
    return _join(reading, joined, codes, cleaning, mask=mask)


def _parse_note3(
    row: str, subject: str, hadm: str, date: str, time: str, category: str, description: str, text: str
) -> tuple[str | None, Order, str, str] | None:
    """Admission, place among its notes, patient and text of a discharge note; None for any other note."""
    if category.strip() != "Discharge summary":
        return None
    order = (description.strip() != "Report", time, date, int(read_number(row) or 0))
    return read_number(hadm), order, str(read_number(subject)), text


def read_mimic4(reading: Reading, codes: dict[Kind, Codes], cleaning: Cleaning, *, mask: bool) -> pl.DataFrame:
    """Admissions of MIMIC-IV with a discharge note and codes, as `read_mimic3`; a note that is repeated counts once."""
    notes: dict[str, tuple[str, list[str]]] = {}
    homeless = blank = repeated = 0
    for subject, admission, text in read_rows(reading, "discharge", ("subject_id", "hadm_id", "text"), _parse_note4):
        homeless += admission is None
        blank += admission is not None and not text.strip()
        if admission is None or not text.strip():
            continue
        _, texts = notes.setdefault(admission, (subject, []))
        repeated += text in texts
        if text not in texts:
            texts.append(text)
    _say(reading, homeless, "discharge notes are of no admission")
    _say(reading, blank, "discharge notes are blank")
    _say(reading, repeated, "discharge notes repeat another of their admission")
    return _join(reading, {hadm: (subject, " ".join(texts)) for hadm, (subject, texts) in notes.items()}, codes, cleaning, mask=mask)


def _parse_note4(subject: str, hadm: str, text: str) -> tuple[str, str | None, str]:
    return str(read_number(subject)), read_number(hadm), text


def keep_frequent(admissions: pl.DataFrame, minimum: int) -> pl.DataFrame:
    """Admissions without the codes that fewer have, counted among diagnoses and among procedures; those left without codes go."""
    for column in ("diagnoses", "procedures"):
        counts = admissions.select(pl.col(column).explode().drop_nulls().alias("code"))["code"].value_counts()
        kept = counts.filter(pl.col("count") >= minimum)["code"]
        admissions = admissions.with_columns(pl.col(column).list.eval(pl.element().filter(pl.element().is_in(kept.implode()))))
    return admissions.filter(pl.col("diagnoses").list.len() + pl.col("procedures").list.len() > 0)


def _join(reading: Reading, notes: dict[str, tuple[str, str]], codes: dict[Kind, Codes], cleaning: Cleaning, *, mask: bool) -> pl.DataFrame:
    rows = []
    coded = codes["diagnosis"].keys() | codes["procedure"].keys()
    _say(reading, len(coded - notes.keys()), "admissions have codes and no discharge note")
    for hadm in sorted(notes, key=lambda number: (len(number), number)):
        diagnoses, procedures = (codes[kind].get(hadm, []) for kind in ("diagnosis", "procedure"))
        if diagnoses or procedures:
            subject, text = notes.pop(hadm)
            rows.append((hadm, subject, clean(text, cleaning, mask=mask), diagnoses, procedures))
    _say(reading, len(notes), "admissions have a discharge note and no code")
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _say(reading: Reading, count: int, what: str) -> None:
    if count:
        reading.remarks.append(f"{count:,} {what}: left out")
