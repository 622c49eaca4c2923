"""The corpora of the literature: full, top 50, clean, rare 50 and few of MIMIC-III, and MIMIC-IV in ICD-10 and ICD-9."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import SPLITS, DataSection, Dataset, SplitName
from plant_cli.kit import add_dot
from plant_datasets.formats.documents import Reading
from plant_datasets.mimic.admissions import keep_frequent, read_mimic3, read_mimic4
from plant_datasets.mimic.codes import SYSTEMS, Kind, read_mimic3_codes, read_mimic4_codes
from plant_datasets.mimic.splits import read_rare_lists, read_splits, split_patients
from plant_datasets.mimic.tables import read_rows

FREQUENT = 10  # admissions that must have a code of MIMIC-III-clean and MIMIC-IV
FEW = 5  # training documents that a code of MIMIC-III-few has at most
TOP_50 = {  # of Mullenbach et al. (2018): recounted with right types, one code differs
    "401.9", "38.93", "428.0", "427.31", "414.01", "96.04", "96.6", "584.9", "250.00", "96.71", "272.4", "518.81", "99.04", "39.61",
    "599.0", "530.81", "96.72", "272.0", "285.9", "88.56", "244.9", "486", "38.91", "285.1", "36.15", "276.2", "496", "99.15", "995.92",
    "V58.61",
    "507.0", "038.9", "88.72", "585.9", "403.90", "311", "305.1", "37.22", "412", "33.24", "39.95", "287.5", "410.71", "276.1", "V45.81",
    "424.0", "45.13", "V15.82", "511.9", "37.23",
}  # fmt: skip


def load_mimic3(data: DataSection, options: Any, subset: str) -> Dataset:
    """One of the corpora of MIMIC-III: `full`, `top50`, `clean`, `rare50` or `few`."""
    reading = Reading.of(data)
    codes = read_mimic3_codes(reading, caml_quirk=getattr(options, "caml_quirk", False))
    admissions = read_mimic3(reading, codes, options.text, mask=options.deid == "mask")
    if subset == "clean":
        admissions = _keep_frequent(admissions, reading)
    if subset == "rare50":
        parts = _take_rare(admissions, Path(options.splits), reading)
    else:
        parts = _split(_with_labels(admissions), reading, options.splits, "50" if subset == "top50" else "full")
    if subset == "top50":
        wanted = sorted(TOP_50) if options.top50 == "mullenbach" else _most_frequent(parts["train"], 50)
        parts = _keep_labels(parts, wanted)
    if subset == "few":
        parts = _take_few(parts, options.protocol, reading)
    return _make(reading, parts, _read_titles(reading, ("D_ICD_DIAGNOSES", "D_ICD_PROCEDURES"), ("icd9_code", "long_title"), 9))


def load_mimic4(data: DataSection, options: Any, version: int) -> Dataset:
    """MIMIC-IV in one version of ICD."""
    reading = Reading.of(data)
    codes = read_mimic4_codes(reading, version)
    admissions = _keep_frequent(read_mimic4(reading, codes, options.text, mask=options.deid == "mask"), reading)
    parts = _split(_with_labels(admissions), reading, options.splits, "full")
    titles = _read_titles(reading, ("d_icd_diagnoses", "d_icd_procedures"), ("icd_code", "long_title", "icd_version"), version)
    return _make(reading, parts, titles)


def _keep_frequent(admissions: pl.DataFrame, reading: Reading) -> pl.DataFrame:
    kept = keep_frequent(admissions, FREQUENT)
    lost = admissions.height - kept.height
    reading.remarks.append(f"codes of fewer than {FREQUENT} admissions are left out, and {lost:,} admissions that have no other")
    return kept


def _with_labels(admissions: pl.DataFrame) -> pl.DataFrame:
    labels = pl.concat_list("procedures", "diagnoses").list.unique(maintain_order=True)
    return admissions.select("doc_id", "text", labels.alias("labels"), "subject_id")


def _split(documents: pl.DataFrame, reading: Reading, splits: str | None, subset: str) -> dict[SplitName, pl.DataFrame]:
    if splits is None:
        how = "patients are split 80/10/10 by a hash, which compares with no published figure"
        reading.remarks.append(f"no file of splits (option splits of the dataset): {how}")
        places: list[SplitName | None] = [*split_patients(documents["subject_id"])]
    else:
        known = read_splits(Path(splits), subset)
        places = [known.get(hadm) for hadm in documents["doc_id"]]
        absent = len(set(known) - set(documents["doc_id"]))
        left_out = sum(place is None for place in places)
        if absent or left_out:
            lost = f"{left_out:,} documents are in no split and left out"
            reading.remarks.append(f"{absent:,} admissions of {splits} have no document; {lost}")
    column = pl.Series(places, dtype=pl.String)
    return {name: documents.filter(column == name) for name in SPLITS if name in places}


def _take_rare(admissions: pl.DataFrame, path: Path, reading: Reading) -> dict[SplitName, pl.DataFrame]:
    lists = read_rare_lists(path)
    documents = _with_labels(admissions).filter(pl.col("doc_id").is_in(list(lists)))
    if documents.height < len(lists):
        reading.remarks.append(f"{len(lists) - documents.height:,} admissions of {path} have no document")
    labelled = documents.with_columns(labels=pl.Series([lists[hadm][1] for hadm in documents["doc_id"]], dtype=pl.List(pl.String)))
    places = pl.Series([lists[hadm][0] for hadm in documents["doc_id"]], dtype=pl.String)
    return {name: labelled.filter(places == name) for name in SPLITS if (places == name).any()}


def _take_few(parts: dict[SplitName, pl.DataFrame], protocol: str, reading: Reading) -> dict[SplitName, pl.DataFrame]:
    """Codes with 1 to 5 training documents that test has: the corpus as it is, or nothing but these codes."""
    counts = parts["train"].select(code=pl.col("labels").explode().drop_nulls())["code"].value_counts()
    rare = set(counts.filter(pl.col("count") <= FEW)["code"])
    tested = set(parts["test"]["labels"].explode().drop_nulls()) if "test" in parts else set()
    wanted = sorted(rare & tested)
    reading.remarks.append(f"protocol {protocol}: {len(wanted):,} codes have 1 to {FEW} training documents and occur in test")
    if protocol == "restricted":
        return _keep_labels(parts, wanted)
    reading.remarks.append("all documents and codes are kept: the figures of this protocol are those of the bin 1-5 of `plant eval`")
    return parts


def _most_frequent(train: pl.DataFrame, number: int) -> list[str]:
    counts = train.select(code=pl.col("labels").explode().drop_nulls())["code"].value_counts()
    return counts.sort("count", "code", descending=[True, False]).head(number)["code"].to_list()


def _keep_labels(parts: dict[SplitName, pl.DataFrame], wanted: list[str]) -> dict[SplitName, pl.DataFrame]:
    kept = pl.col("labels").list.eval(pl.element().filter(pl.element().is_in(wanted)))
    restricted = {name: part.with_columns(kept).filter(pl.col("labels").list.len() > 0) for name, part in parts.items()}
    return {name: part for name, part in restricted.items() if part.height}


def _make(reading: Reading, parts: dict[SplitName, pl.DataFrame], titles: pl.DataFrame) -> Dataset:
    return Dataset(
        splits={name: part.lazy() for name, part in parts.items()},
        labels=titles.lazy(),
        files=[str(path) for path in reading.files],
        remarks=[*reading.remarks, *reading.bad.close()],
    )


def _read_titles(reading: Reading, tables: tuple[str, str], columns: tuple[str, ...], version: int) -> pl.DataFrame:
    """Titles of diagnoses and procedures; where both have a code, the diagnosis's counts."""
    kinds: tuple[Kind, Kind] = ("diagnosis", "procedure")
    rows = []
    for kind, table in zip(kinds, tables, strict=True):
        for row in read_rows(reading, table, columns, lambda *cells: cells):
            if len(row) == 2 or row[2].strip() == str(version):
                rows.append((add_dot(row[0].strip(), SYSTEMS[kind, version]), row[1].strip()))
    table_of_titles = pl.DataFrame(rows, schema={"label": pl.String, "title": pl.String}, orient="row")
    return table_of_titles.unique("label", keep="first", maintain_order=True)
