"""Admissions: the discharge notes of each with its codes."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plant_datasets.mimic.codes import Codes, Kind
from plant_datasets.mimic.tables import find_table, read_number, read_rows
from plant_datasets.mimic.texts import Cleaning, clean

SCHEMA = {
    "doc_id": pl.String(),
    "subject_id": pl.String(),
    "text": pl.String(),
    "diagnoses": pl.List(pl.String()),
    "procedures": pl.List(pl.String()),
}
_NOTES3 = ("row_id", "subject_id", "hadm_id", "chartdate", "charttime", "category", "description", "text")


def read_mimic3(root: Path, codes: dict[Kind, Codes], cleaning: Cleaning, *, mask: bool) -> pl.DataFrame:
    """Admissions of MIMIC-III with notes and codes; the report stands before its addenda, each group in order of time.

    Args:
        root: the folder of PhysioNet.
        codes: of all admissions.
        cleaning: of the texts.
        mask: see `texts.clean`.

    Returns:
        A table of the schema `SCHEMA`, by the number of the admission.
    """
    notes: dict[str, list[tuple[tuple[bool, str, str, int], str, str]]] = {}
    for row_id, subject, hadm, date, time, category, description, text in read_rows(find_table(root, "NOTEEVENTS"), _NOTES3):
        admission = read_number(hadm)
        if category.strip() == "Discharge summary" and admission is not None:
            order = (description.strip() != "Report", time, date, int(row_id))
            notes.setdefault(admission, []).append((order, str(read_number(subject)), text))
    joined = {hadm: (group[0][1], " ".join(text for _, _, text in sorted(group))) for hadm, group in notes.items()}
    return _join(joined, codes, cleaning, mask=mask)


def read_mimic4(root: Path, codes: dict[Kind, Codes], cleaning: Cleaning, *, mask: bool) -> pl.DataFrame:
    """Admissions of MIMIC-IV with a discharge note and codes, as `read_mimic3`; a note that is repeated counts once."""
    notes: dict[str, tuple[str, list[str]]] = {}
    for subject, hadm, text in read_rows(find_table(root, "discharge"), ("subject_id", "hadm_id", "text")):
        admission = read_number(hadm)
        if admission is None or not text.strip():
            continue
        _, texts = notes.setdefault(admission, (str(read_number(subject)), []))
        if text not in texts:
            texts.append(text)
    return _join({hadm: (subject, " ".join(texts)) for hadm, (subject, texts) in notes.items()}, codes, cleaning, mask=mask)


def keep_frequent(admissions: pl.DataFrame, minimum: int) -> pl.DataFrame:
    """Admissions without the codes that fewer have, counted among diagnoses and among procedures; those left without codes go."""
    for column in ("diagnoses", "procedures"):
        counts = admissions.select(pl.col(column).explode().drop_nulls().alias("code"))["code"].value_counts()
        kept = counts.filter(pl.col("count") >= minimum)["code"]
        admissions = admissions.with_columns(pl.col(column).list.eval(pl.element().filter(pl.element().is_in(kept.implode()))))
    return admissions.filter(pl.col("diagnoses").list.len() + pl.col("procedures").list.len() > 0)


def _join(notes: dict[str, tuple[str, str]], codes: dict[Kind, Codes], cleaning: Cleaning, *, mask: bool) -> pl.DataFrame:
    rows = []
    for hadm in sorted(notes, key=lambda number: (len(number), number)):
        diagnoses, procedures = (codes[kind].get(hadm, []) for kind in ("diagnosis", "procedure"))
        if diagnoses or procedures:
            subject, text = notes.pop(hadm)
            rows.append((hadm, subject, clean(text, cleaning, mask=mask), diagnoses, procedures))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
