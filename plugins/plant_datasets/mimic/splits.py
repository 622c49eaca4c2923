"""Files that say which admission is in which split, as the literature hands them out."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api import DataError, SplitName, first_line
from plant_cli.kit import collect, scan_table
from plant_datasets.layout import ALIASES

_IDS = ("_id", "hadm_id", "id")


def read_splits(path: Path, subset: str) -> dict[str, SplitName]:
    """The split of each admission.

    Args:
        path: a folder with CAML's train_full_hadm_ids.csv, dev_… and test_… (one number a line), or a table with `_id` (or `hadm_id`) and
            `split`: feather (Edin et al.), Parquet, CSV.
        subset: `full` or `50`, of CAML's files.

    Raises:
        DataError: the file is none of these.
    """
    if path.is_dir():
        return _read_folder(path, subset)
    try:
        table = pl.read_ipc(path) if path.suffix in (".feather", ".arrow", ".ipc") else collect(scan_table(path), str(path))
    except (OSError, PolarsError) as error:  # of polars: what a damaged feather file makes of its reader
        raise _no_splits(path, first_line(error)) from error
    names = {name.lower(): name for name in table.columns}
    number = next((names[name] for name in _IDS if name in names), None)
    if number is None or "split" not in names:
        raise _no_splits(path, f"columns {', '.join(table.columns)}")
    found = table.select(pl.col(number).cast(pl.String).str.strip_suffix(".0"), pl.col(names["split"]).cast(pl.String).str.to_lowercase())
    wrong = set(found[names["split"]].unique()) - set(ALIASES)
    if wrong:
        raise _no_splits(path, f"splits {', '.join(map(str, sorted(map(str, wrong))))}")
    return {hadm: ALIASES[split] for hadm, split in found.iter_rows()}


def read_rare_lists(path: Path) -> dict[str, tuple[SplitName, list[str]]]:
    """Split and codes of the admissions of MIMIC-III-rare50, from the lists in KEPT's collectrare50data.py, which is read and not run."""
    found: dict[str, list[str]] = {}
    try:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.List):
                found[node.targets[0].id] = [str(item) for item in ast.literal_eval(node.value)]
    except (SyntaxError, ValueError) as error:
        raise _no_splits(path, f"not lists in Python 3: {first_line(error)}") from error
    if not all(f"{mode}_{what}" in found for mode in ("train", "dev", "test") for what in ("ids", "labels")):
        raise _no_splits(path, f"the lists {', '.join(found) or 'none'}; wanted train_ids, train_labels, dev_ids, …")
    for mode in ("train", "dev", "test"):
        ids, labels = len(found[f"{mode}_ids"]), len(found[f"{mode}_labels"])
        if ids != labels:
            raise _no_splits(path, f"{mode} has {ids} ids, and labels of {labels}")
    return {
        number.split("_")[-1]: (ALIASES[mode], sorted(set(labels.split(";"))))
        for mode in ("train", "dev", "test")
        for number, labels in zip(found[f"{mode}_ids"], found[f"{mode}_labels"], strict=True)
    }


def split_patients(subjects: pl.Series) -> list[SplitName]:
    """A split for each admission by a hash of its patient, 80/10/10."""
    tenths = (10 * int.from_bytes(hashlib.sha256(str(subject).encode()).digest()[:6], "big") >> 48 for subject in subjects)
    return ["validation" if tenth == 8 else "test" if tenth == 9 else "train" for tenth in tenths]


def _read_folder(folder: Path, subset: str) -> dict[str, SplitName]:
    found: dict[str, SplitName] = {}
    for mode in ("train", "dev", "test"):
        path = folder / f"{mode}_{subset}_hadm_ids.csv"
        if not path.is_file():
            raise _no_splits(folder, f"no {path.name}")
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise _no_splits(path, first_line(error)) from error
        found |= {line.strip(): ALIASES[mode] for line in lines if line.strip()}
    return found


def _no_splits(path: Path, found: str) -> DataError:
    return DataError(
        "the splits cannot be read",
        where=f"{path}: {found}",
        expected="CAML's folder of *_hadm_ids.csv, a feather, Parquet or CSV table with _id and split, or for rare50 KEPT's lists",
        todo="docs/corpus.md says where these public files are",
    )
