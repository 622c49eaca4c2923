"""MIMIC-III and MIMIC-IV from the folders of PhysioNet: notes, codes, splits and the subsets of
the literature.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api import SPLITS, DataError, DataSection, Dataset, SplitName, first_line
from plant_cli.kit import bare_name, collect, read_rows, scan_table, show_names
from plant_formats.classifications import System, add_dot
from plant_formats.corpus_reader import ALIASES, CorpusReader, choose_split

Kind = Literal["diagnosis", "procedure"]
Codes = dict[str, list[str]]  # by admission, sorted, each once
Parsed = TypeVar("Parsed")
Parts = dict[SplitName, pl.DataFrame]
MIMIC_SYSTEMS: Mapping[tuple[Kind, int], System] = {
    ("diagnosis", 9): "ICD-9-CM diagnoses",
    ("procedure", 9): "ICD-9-CM procedures",
    ("diagnosis", 10): "ICD-10-CM",
    ("procedure", 10): "ICD-10-PCS",
}
_TABLES: dict[Kind, str] = {"diagnosis": "diagnoses_icd", "procedure": "procedures_icd"}
FREQUENT_ADMISSIONS = 10  # admissions that must have a code of MIMIC-III-clean and MIMIC-IV
FEW_DOCUMENTS = 5  # training documents that a code of MIMIC-III-few has at most
TOP_50 = {  # of Mullenbach et al. (2018); counted again with right types, one code differs
    "401.9",
    "38.93",
    "428.0",
    "427.31",
    "414.01",
    "96.04",
    "96.6",
    "584.9",
    "250.00",
    "96.71",
    "272.4",
    "518.81",
    "99.04",
    "39.61",
    "599.0",
    "530.81",
    "96.72",
    "272.0",
    "285.9",
    "88.56",
    "244.9",
    "486",
    "38.91",
    "285.1",
    "36.15",
    "276.2",
    "496",
    "99.15",
    "995.92",
    "V58.61",
    "507.0",
    "038.9",
    "88.72",
    "585.9",
    "403.90",
    "311",
    "305.1",
    "37.22",
    "412",
    "33.24",
    "39.95",
    "287.5",
    "410.71",
    "276.1",
    "V45.81",
    "424.0",
    "45.13",
    "V15.82",
    "511.9",
    "37.23",
}
_ADMISSIONS = {
    "doc_id": pl.String(),
    "subject_id": pl.String(),
    "text": pl.String(),
    "diagnoses": pl.List(pl.String()),
    "procedures": pl.List(pl.String()),
}
_OTHER = re.compile(r"[^A-Za-z0-9]+")
_NUMBERS = re.compile(r"(\s\d+)+\s")
_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"\w+")
_DEIDENTIFIED = re.compile(r"\[\*\*.*?\*\*\]|_{3,}", re.DOTALL)
_KEPT = 2_000  # characters of a bad row that are reported: a note is long


def load(name: str, data: DataSection, options: Any) -> Dataset:
    """One of `mimic3-full`, `-top50`, `-clean`, `-rare50`, `-few`, `mimic4-icd10` and `-icd9`."""
    reader = CorpusReader.of(data)
    subset = name.partition("-")[2]
    version = {"icd10": 10}.get(subset, 9)
    if name.startswith("mimic4"):
        codes = read_mimic4_codes(reader, version)
        admissions = read_mimic4(reader, codes, options)
    else:
        codes = read_mimic3_codes(reader, caml_quirk=getattr(options, "caml_quirk", False))
        admissions = read_mimic3(reader, codes, options)
    columns = (
        ("icd_code", "long_title", "icd_version")
        if name.startswith("mimic4")
        else ("icd9_code", "long_title")
    )
    if subset in ("clean", "icd9", "icd10"):
        admissions = keep_frequent(admissions, reader)
    labels = pl.concat_list("procedures", "diagnoses").list.unique(maintain_order=True)
    documents = admissions.select("doc_id", "text", labels.alias("labels"), "subject_id")
    if subset == "rare50":
        parts = _take_rare(documents, Path(options.splits), reader)
    else:
        parts = _split(documents, reader, options.splits, "50" if subset == "top50" else "full")
    if subset == "top50":
        frequent = _count_codes(parts["train"], "labels").sort(
            "count", "code", descending=[True, False]
        )
        parts = _keep_labels(
            parts,
            sorted(TOP_50)
            if options.top50 == "mullenbach"
            else frequent["code"].head(50).to_list(),
        )
    if subset == "few":
        parts = _take_few(parts, options.protocol, reader)
    return Dataset(
        splits={split: part.lazy() for split, part in parts.items()},
        labels=_read_titles(reader, columns, version).lazy(),
        files=[str(path) for path in reader.files],
        remarks=[*reader.remarks, *reader.bad.close()],
    )


def find_table(root: Path, name: str) -> Path:
    """The file of a table, `.csv` or compressed, at most three folders down, in any case;
    `DataError` if there is none or several.
    """
    patterns = ("*", "*/*", "*/*/*", "*/*/*/*")
    paths = [
        path
        for pattern in patterns
        for path in sorted(root.glob(pattern))
        if bare_name(path).lower() == f"{name}.csv".lower() and path.is_file()
    ]
    if len(paths) != 1:
        raise DataError(
            f"{len(paths)} files are the table {name}",
            where=", ".join(map(str, paths)) or str(root),
            expected=f"{name}.csv or {name}.csv.gz below the folder that was named",
            todo="name the folder of PhysioNet (for MIMIC-IV one that holds both hosp and note)",
        )
    return paths[0]


def read_mimic_table(
    reader: CorpusReader, name: str, columns: Sequence[str], parse: Callable[..., Parsed]
) -> Iterator[Parsed]:
    """What `parse` makes of the cells of each row; it raises `ValueError` for a bad row. A
    table is never in memory as a whole.
    """
    path = find_table(reader.path, name)
    reader.files.append(path)
    rows = read_rows(path, reader.bad, reader.data.encoding, exact=True)
    names = [column.strip().lower() for column in next(rows, (1, []))[1]]
    missing = [column for column in columns if column not in names]
    if missing:
        expected, todo = f"columns {', '.join(columns)}", "copy the file again from PhysioNet"
        raise DataError(
            f"there is no column {missing[0]}",
            where=f"{path}, line 1: {show_names(names)}",
            expected=expected,
            todo=todo,
        )
    positions = [names.index(column) for column in columns]
    for line, row in rows:
        try:
            parsed = parse(*(row[position] for position in positions))
        except ValueError as error:
            reader.bad.add(path, line, str(error), ",".join(row)[:_KEPT])
            continue
        yield parsed


def read_number(value: str) -> str | None:
    """A whole number that pandas may have written as `100001.0`; None for a blank; `ValueError`
    for anything else.
    """
    text = value.strip().removesuffix(".0")
    if not text or text.lower() == "nan":
        return None
    if not text.isdecimal():
        raise ValueError(f"not a whole number: {value[:40]!r}")
    return text


def read_mimic3_codes(reader: CorpusReader, *, caml_quirk: bool) -> dict[Kind, Codes]:
    """Codes of MIMIC-III; with `caml_quirk` procedures are read as numbers, as CAML did: 0066
    becomes 66, and some codes fall together.
    """

    def parse(hadm: str, code: str) -> tuple[str | None, str, int]:
        return read_number(hadm), code.strip(), 9

    def parse_number(hadm: str, code: str) -> tuple[str | None, str, int]:
        return read_number(hadm), str(int(code)) if code.strip().isdecimal() else code.strip(), 9

    columns = ("hadm_id", "icd9_code")
    diagnoses = _read_codes(reader, "diagnosis", columns, parse, 9)
    return {
        "diagnosis": diagnoses,
        "procedure": _read_codes(
            reader, "procedure", columns, parse_number if caml_quirk else parse, 9
        ),
    }


def read_mimic4_codes(reader: CorpusReader, version: int) -> dict[Kind, Codes]:
    """Codes of MIMIC-IV in ICD-9 or ICD-10."""

    def parse(hadm: str, code: str, number: str) -> tuple[str | None, str, int]:
        if number.strip() not in ("9", "10"):
            raise ValueError(f"a version of ICD that is neither 9 nor 10: {number[:40]!r}")
        return read_number(hadm), code.strip(), int(number)

    columns = ("hadm_id", "icd_code", "icd_version")
    return {kind: _read_codes(reader, kind, columns, parse, version) for kind in _TABLES}


def _read_codes(
    reader: CorpusReader,
    kind: Kind,
    columns: Sequence[str],
    parse: Callable[..., tuple[str | None, str, int]],
    version: int,
) -> Codes:
    """Codes of one version with their dots; a remark counts the rows without code or admission."""
    codes: dict[str, set[str]] = {}
    blank = 0
    for admission, code, number in read_mimic_table(reader, _TABLES[kind], columns, parse):
        if admission is None or not code or code.lower() == "nan":
            blank += 1
        elif number == version:
            codes.setdefault(admission, set()).add(add_dot(code, MIMIC_SYSTEMS[kind, version]))
    if blank:
        reader.remarks.append(
            f"{_TABLES[kind]}: {blank:,} rows have no code or no admission and are left out"
        )
    return {admission: sorted(found) for admission, found in codes.items()}


def read_mimic3(reader: CorpusReader, codes: Mapping[Kind, Codes], options: Any) -> pl.DataFrame:
    """Admissions of MIMIC-III with notes and codes; the report comes before its addenda, each
    group in order of time.
    """

    def parse(
        row: str,
        subject: str,
        hadm: str,
        date: str,
        time: str,
        category: str,
        description: str,
        text: str,
    ) -> tuple[str | None, tuple[Any, ...], str, str] | None:
        if category.strip() != "Discharge summary":
            return None
        order = (description.strip() != "Report", time, date, int(read_number(row) or 0))
        return read_number(hadm), order, str(read_number(subject)), text

    columns = (
        "row_id",
        "subject_id",
        "hadm_id",
        "chartdate",
        "charttime",
        "category",
        "description",
        "text",
    )
    notes: dict[str, list[tuple[tuple[Any, ...], str, str]]] = {}
    homeless = 0
    for note in read_mimic_table(reader, "noteevents", columns, parse):
        if note is None:
            continue
        admission, order, subject, text = note
        homeless += admission is None
        if admission is not None:
            notes.setdefault(admission, []).append((order, subject, text))
    _remark(reader, homeless, "discharge notes are of no admission")
    joined = {
        hadm: (group[0][1], " ".join(text for _, _, text in sorted(group)))
        for hadm, group in notes.items()
    }
    return _join(reader, joined, codes, options)


def read_mimic4(reader: CorpusReader, codes: Mapping[Kind, Codes], options: Any) -> pl.DataFrame:
    """Admissions of MIMIC-IV with notes and codes; a repeated note counts once."""

    def parse(subject: str, hadm: str, text: str) -> tuple[str, str | None, str]:
        return str(read_number(subject)), read_number(hadm), text

    notes: dict[str, tuple[str, list[str]]] = {}
    homeless = blank = repeated = 0
    for subject, admission, text in read_mimic_table(
        reader, "discharge", ("subject_id", "hadm_id", "text"), parse
    ):
        homeless += admission is None
        blank += admission is not None and not text.strip()
        if admission is None or not text.strip():
            continue
        _, texts = notes.setdefault(admission, (subject, []))
        repeated += text in texts
        if text not in texts:
            texts.append(text)
    _remark(reader, homeless, "discharge notes are of no admission")
    _remark(reader, blank, "discharge notes are blank")
    _remark(reader, repeated, "discharge notes repeat another of their admission")
    return _join(
        reader,
        {hadm: (subject, " ".join(texts)) for hadm, (subject, texts) in notes.items()},
        codes,
        options,
    )


def _join(
    reader: CorpusReader,
    notes: dict[str, tuple[str, str]],
    codes: Mapping[Kind, Codes],
    options: Any,
) -> pl.DataFrame:
    """A table of the schema `_ADMISSIONS`, by the number of the admission."""
    rows = []
    coded = codes["diagnosis"].keys() | codes["procedure"].keys()
    _remark(reader, len(coded - notes.keys()), "admissions have codes and no discharge note")
    for hadm in sorted(notes, key=lambda number: (len(number), number)):
        diagnoses, procedures = codes["diagnosis"].get(hadm, []), codes["procedure"].get(hadm, [])
        if diagnoses or procedures:
            subject, text = notes.pop(hadm)
            rows.append(
                (
                    hadm,
                    subject,
                    clean(text, options.text, mask=options.deid == "mask"),
                    diagnoses,
                    procedures,
                )
            )
    _remark(reader, len(notes), "admissions have a discharge note and no code")
    return pl.DataFrame(rows, schema=_ADMISSIONS, orient="row")


def _remark(reader: CorpusReader, count: int, what: str) -> None:
    if count:
        reader.remarks.append(f"{count:,} {what}: left out")


def clean(text: str, how: Literal["e23", "caml", "none", "alpha"], *, mask: bool) -> str:
    """A note as the literature prepares it; with `mask`, de-identified parts (`[**…**]`, `___`) are
    replaced by a blank first.

    `e23`: lower case, letters and digits, without runs of numbers between blanks (Edin et al.
    2023); `caml`: lower-cased words without those that are numbers (Mullenbach et al. 2018);
    `alpha`: words of letters only; `none`: as it is.
    """
    text = _DEIDENTIFIED.sub(" ", text) if mask else text
    if how == "e23":
        return _BLANKS.sub(" ", _NUMBERS.sub(" ", _OTHER.sub(" ", text.lower()))).strip()
    if how == "none":
        return text
    words = _WORD.findall(text.lower()) if how == "caml" else text.lower().split()
    return " ".join(
        word for word in words if (not word.isnumeric() if how == "caml" else word.isalpha())
    )


def keep_frequent(admissions: pl.DataFrame, reader: CorpusReader) -> pl.DataFrame:
    """Admissions without rare codes, counted among diagnoses and among procedures; admissions
    without any other code are left out.
    """
    before = admissions.height
    for column in ("diagnoses", "procedures"):
        kept = _count_codes(admissions, column).filter(pl.col("count") >= FREQUENT_ADMISSIONS)[
            "code"
        ]
        admissions = admissions.with_columns(
            pl.col(column).list.eval(pl.element().filter(pl.element().is_in(kept.implode())))
        )
    admissions = admissions.filter(
        pl.col("diagnoses").list.len() + pl.col("procedures").list.len() > 0
    )
    lost = before - admissions.height
    if before and not admissions.height:
        raise DataError(
            f"no code has {FREQUENT_ADMISSIONS} admissions, and this data set leaves out rarer "
            f"ones: none of {before:,} admissions is left",
            where=str(reader.data.path),
            expected="the whole of MIMIC, and not a sample of it",
            todo="name the folder of the whole tables, or read a sample under a name that keeps "
            "every code, such as mimic3-full",
        )
    reader.remarks.append(
        f"codes of fewer than {FREQUENT_ADMISSIONS} admissions are left out, and {lost:,} "
        "admissions that have no other"
    )
    return admissions


def _split(documents: pl.DataFrame, reader: CorpusReader, splits: str | None, subset: str) -> Parts:
    if splits is None:
        how = "patients are split 80/10/10 by a hash, which compares with no published figure"
        reader.remarks.append(f"no file of splits (option splits of the dataset): {how}")
        names: list[SplitName | None] = [
            choose_split(str(subject)) for subject in documents["subject_id"]
        ]
    else:
        known = read_splits(Path(splits), subset)
        names = [known.get(hadm) for hadm in documents["doc_id"]]
        absent = len(set(known) - set(documents["doc_id"]))
        if absent or None in names:
            lost = f"{names.count(None):,} documents are in no split and left out"
            reader.remarks.append(f"{absent:,} admissions of {splits} have no document; {lost}")
    column = pl.Series(names, dtype=pl.String)
    return {name: documents.filter(column == name) for name in SPLITS if name in names}


def _take_rare(documents: pl.DataFrame, path: Path, reader: CorpusReader) -> Parts:
    lists = read_rare_lists(path)
    documents = documents.filter(pl.col("doc_id").is_in(list(lists)))
    if documents.height < len(lists):
        reader.remarks.append(
            f"{len(lists) - documents.height:,} admissions of {path} have no document"
        )
    labelled = documents.with_columns(
        labels=pl.Series([lists[hadm][1] for hadm in documents["doc_id"]], dtype=pl.List(pl.String))
    )
    names = pl.Series([lists[hadm][0] for hadm in documents["doc_id"]], dtype=pl.String)
    return {name: labelled.filter(names == name) for name in SPLITS if (names == name).any()}


def _take_few(parts: Parts, protocol: str, reader: CorpusReader) -> Parts:
    """Codes with 1 to 5 training documents that test has: the corpus as it is, or nothing but
    these codes.
    """
    rare = set(
        _count_codes(parts["train"], "labels").filter(pl.col("count") <= FEW_DOCUMENTS)["code"]
    )
    tested = set(parts["test"]["labels"].explode().drop_nulls()) if "test" in parts else set()
    wanted = sorted(rare & tested)
    reader.remarks.append(
        f"protocol {protocol}: {len(wanted):,} codes have 1 to {FEW_DOCUMENTS} training documents "
        "and occur in test"
    )
    if protocol == "restricted":
        return _keep_labels(parts, wanted)
    reader.remarks.append(
        "all documents and codes are kept: the figures of this protocol are those of the bin 1-5 "
        "of `plant eval`"
    )
    return parts


def _count_codes(documents: pl.DataFrame, column: str) -> pl.DataFrame:
    return documents.select(code=pl.col(column).explode().drop_nulls())["code"].value_counts()


def _keep_labels(parts: Parts, wanted: list[str]) -> Parts:
    kept = pl.col("labels").list.eval(pl.element().filter(pl.element().is_in(wanted)))
    restricted = {
        name: part.with_columns(kept).filter(pl.col("labels").list.len() > 0)
        for name, part in parts.items()
    }
    return {name: part for name, part in restricted.items() if part.height}


def _read_titles(reader: CorpusReader, columns: Sequence[str], version: int) -> pl.DataFrame:
    """Titles of diagnoses and procedures; where both have a code, the diagnosis's counts."""
    rows = []
    for kind, table in _TABLES.items():
        for row in read_mimic_table(
            reader, f"d_icd_{table.removesuffix('_icd')}", columns, lambda *cells: cells
        ):
            if len(row) == 2 or row[2].strip() == str(version):
                rows.append((add_dot(row[0].strip(), MIMIC_SYSTEMS[kind, version]), row[1].strip()))
    titles = pl.DataFrame(rows, schema={"label": pl.String, "title": pl.String}, orient="row")
    return titles.unique("label", keep="first", maintain_order=True)


def read_splits(path: Path, subset: str) -> dict[str, SplitName]:
    """The split of each admission: from CAML's folder with train_full_hadm_ids.csv, … (one
    number a line; `subset` is `full` or `50`), or from a table with `_id` (or `hadm_id`) and
    `split`: feather (Edin et al.), Parquet, CSV.
    """
    if path.is_dir():
        return _read_caml_splits(path, subset)
    try:
        table = (
            pl.read_ipc(path.read_bytes())
            if path.suffix in (".feather", ".arrow", ".ipc")
            else collect(scan_table(path), str(path))
        )
    except (
        OSError,
        PolarsError,
    ) as error:  # of polars: what a damaged feather file makes of its reader
        raise _no_splits(path, first_line(error)) from error
    names = {name.lower(): name for name in table.columns}
    number = next((names[name] for name in ("_id", "hadm_id", "id") if name in names), None)
    if number is None or "split" not in names:
        raise _no_splits(path, f"columns {', '.join(table.columns)}")
    rows = table.select(
        pl.col(number).cast(pl.String).str.strip_suffix(".0"),
        pl.col(names["split"]).cast(pl.String).str.to_lowercase(),
    )
    wrong = set(rows[names["split"]].unique()) - set(ALIASES)
    if wrong:
        raise _no_splits(path, f"splits {', '.join(map(str, sorted(map(str, wrong))))}")
    return {hadm: ALIASES[split] for hadm, split in rows.iter_rows()}


def _read_caml_splits(folder: Path, subset: str) -> dict[str, SplitName]:
    splits: dict[str, SplitName] = {}
    for mode in ("train", "dev", "test"):
        path = folder / f"{mode}_{subset}_hadm_ids.csv"
        if not path.is_file():
            raise _no_splits(folder, f"no {path.name}")
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise _no_splits(path, first_line(error)) from error
        splits |= {line.strip(): ALIASES[mode] for line in lines if line.strip()}
    return splits


def read_rare_lists(path: Path) -> dict[str, tuple[SplitName, list[str]]]:
    """Split and codes of the admissions of MIMIC-III-rare50, from the lists in KEPT's
    collectrare50data.py, which is read and not run.
    """
    lists: dict[str, list[str]] = {}
    try:
        for node in ast.parse(path.read_text("utf-8")).body:
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and isinstance(node.value, ast.List)
            ):
                lists[node.targets[0].id] = [str(item) for item in ast.literal_eval(node.value)]
    except (SyntaxError, ValueError) as error:
        raise _no_splits(path, f"not lists in Python 3: {first_line(error)}") from error
    if not all(
        f"{mode}_{what}" in lists for mode in ("train", "dev", "test") for what in ("ids", "labels")
    ):
        raise _no_splits(
            path,
            f"the lists {', '.join(lists) or 'none'}; wanted train_ids, train_labels, dev_ids, …",
        )
    splits: dict[str, tuple[SplitName, list[str]]] = {}
    for mode in ("train", "dev", "test"):
        ids, labels = lists[f"{mode}_ids"], lists[f"{mode}_labels"]
        if len(ids) != len(labels):
            raise _no_splits(path, f"{mode} has {len(ids)} ids, and labels of {len(labels)}")
        splits |= {
            hadm.split("_")[-1]: (ALIASES[mode], sorted(set(own.split(";"))))
            for hadm, own in zip(ids, labels, strict=True)
        }
    return splits


def _no_splits(path: Path, why: str) -> DataError:
    return DataError(
        "the splits cannot be read",
        where=f"{path}: {why}",
        expected="CAML's folder of *_hadm_ids.csv, a feather, Parquet or CSV table with _id and "
        "split, or for rare50 KEPT's lists",
        todo="docs/corpus.md says where these public files are",
    )
