"""Predictions in a file: tables with the columns that `plant` itself names, else a format of
another tool, which a plugin reads.

All become `doc_id`, `labels`, `scores`, a row for each document. Where a format numbers documents,
these are the rows of the split; where it numbers labels, a list of labels says which is which.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from plant_cli.api import (
    DataError,
    ForeignPredictions,
    PredictionFile,
    PredictionsSpec,
)
from plant_cli.api.formats import name_number
from plant_cli.data.format_choice import choose_format
from plant_cli.data.lines import PARQUET, read_head, read_utf8_lines
from plant_cli.data.listed_values import MISSING
from plant_cli.data.quotes import unguard_cells
from plant_cli.data.tables import collect, scan_table
from plant_cli.data.text_tables import peek_text
from plant_cli.evaluation.gold import Gold

PREDICTIONS_READ = (
    "a table with doc_id, label(s) and score(s), a column for each label or for each rank; "
    "Annif's JSON or a folder of its TSV; "
    "XMLRepository sparse text; npz or npy; `label:score` text; a TREC run"
)
_UNSCORED = (
    "it holds no scores: labels are ranked by their order, and each label that is listed counts "
    "as assigned (F1 is that of whole lists); "
    "nothing that needs probabilities is measured"
)
_LISTS = {"doc_id": pl.String(), "labels": pl.List(pl.String), "scores": pl.List(pl.Float64)}
_PAIRS = ["doc_id", "label", "score"]
_KEYS_IN = 1 << 12  # characters
_NO_TEXT = (PARQUET, b"\x93NUMPY")  # the first bytes of files whose start is not decoded
_DIGITS = re.compile(r"\d+")
LONGEST_NUMBER = 18  # digits: no document and no label has a larger one


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """What numbers in predictions stand for, and which pairs do not count."""

    labels: Sequence[str] = ()
    """The labels in the order of their numbers; empty: a number is itself the label, as the
    corpus writes it.
    """
    removed: frozenset[tuple[int, int]] = frozenset()
    """Pairs of document (row of the split) and label number that are taken out of the
    predictions.
    """

    def name(self, number: int, where: str) -> str:
        """The label of a number; `DataError` where the list ends before it."""
        return name_number(self.labels, number, where)


def read_numbering(labels: str | None, removed: str | None) -> Numbering:
    """The list of labels, one a line (what follows a tab is passed over), and the pairs
    `document label` to remove.
    """
    lines = [] if labels is None else read_utf8_lines(Path(labels))
    names = [line.split("\t")[0].strip().strip("<>") for line in lines]
    pairs = set()
    for number, line in enumerate(
        [] if removed is None else read_utf8_lines(Path(removed)), start=1
    ):
        numbers = _DIGITS.findall(line)
        if line.strip() and (
            len(numbers) != 2 or numbers != line.split() or max(map(len, numbers)) > LONGEST_NUMBER
        ):
            raise DataError(
                f"this is no pair of document and label: {line[:60]}",
                where=f"{removed}, line {number}",
                expected="two numbers, each counted from 0, as in filter_labels_test.txt",
                todo="name the file of pairs that came with the data set",
            )
        if numbers:
            pairs.add((int(numbers[0]), int(numbers[1])))
    return Numbering(labels=names, removed=frozenset(pairs))


def read_foreign(path: Path, gold: Gold, numbering: Numbering) -> ForeignPredictions:
    """Predictions in a table of `plant`, whose `form` is empty, or in the first format that
    recognises the file; ids and labels that `guard_cell` changed are those that they were.
    """
    file = _open(path, gold, numbering)
    found = _read_own(file) or _read_format(file)
    labels, ids = unguard_cells(gold.labels), unguard_cells(gold.doc_ids)
    if not (labels or ids):
        return found
    unguarded = found.frame.with_columns(
        pl.col("labels").list.eval(pl.element().replace(labels)), pl.col("doc_id").replace(ids)
    )
    return replace(found, frame=unguarded)


def _open(path: Path, gold: Gold, numbering: Numbering) -> PredictionFile:
    """A file of which a sample is read, for all formats."""
    about = PredictionFile(
        path=path,
        split=gold.split,
        documents=gold.doc_ids,
        labels=gold.labels,
        order=numbering.labels,
        read_lines=read_utf8_lines,
        expected=PREDICTIONS_READ,
    )
    if path.is_dir():
        return about
    head = read_head(path, PREDICTIONS_READ)
    is_text = not head.startswith(_NO_TEXT) and not _holds_arrays(path)
    return replace(about, head=head, start=peek_text(path, None) if is_text else "")


def _holds_arrays(path: Path) -> bool:
    return zipfile.is_zipfile(path) and all(
        name.endswith(".npy") for name in zipfile.ZipFile(path).namelist()
    )


def _read_own(file: PredictionFile) -> ForeignPredictions | None:
    """A table with a list of labels and one of scores in each row, or with a pair in each; None
    for other columns, and for cells that have to be understood.
    """
    listed = all(f'"{name}"' in file.start[:_KEYS_IN] for name in _LISTS)
    paired = file.first.replace("\t", ",").split(",") == _PAIRS
    if not (listed or paired or file.head.startswith(PARQUET)):
        return None
    try:
        frame = collect(scan_table(file.path), str(file.path))
    except DataError:
        return None
    if "doc_id" in frame.columns and all(
        frame.schema.get(name) == _LISTS[name] for name in ("labels", "scores")
    ):
        frame = frame.select(pl.col("doc_id").cast(pl.String), "labels", "scores")
        rows = frame["labels"].to_list() if file.order else []
        names = [file.names(row or ()) for row in rows]
        named = pl.Series("labels", names, dtype=_LISTS["labels"])
        return ForeignPredictions(frame=frame.with_columns(named) if names else frame)
    return _read_pairs(frame, file) if frame.columns == _PAIRS else None


def _read_pairs(frame: pl.DataFrame, file: PredictionFile) -> ForeignPredictions | None:
    """One pair in each row, both halves of it plain; else None."""
    if any(dtype.is_nested() or dtype == pl.Boolean for dtype in frame.dtypes):
        return None
    cells = frame.select(
        pl.col("doc_id").cast(pl.String),
        labels=pl.col("label").cast(pl.String, strict=False),
        scores=pl.col("score").cast(pl.Float64, strict=False),
    )
    bare = pl.col("labels").str.strip_chars()
    plain = ~bare.is_in(["", *MISSING]) & ~bare.str.contains(r"[\])}]$")
    if cells.null_count().sum_horizontal().item() or not cells.select(plain.all()).item():
        return None
    names = cells.with_columns(
        labels=pl.Series(file.names(cells["labels"].to_list()), dtype=pl.String)
    )
    return ForeignPredictions(
        form="a table with a pair in each row",
        frame=names.group_by("doc_id", maintain_order=True).agg("labels", "scores"),
        pairs=True,
    )


def _read_format(file: PredictionFile) -> ForeignPredictions:
    """The predictions as the first format that recognises the file reads them."""
    own = f"a table with {', '.join(_LISTS)}, or with {', '.join(_PAIRS)}"
    spec, said, remarks = choose_format(
        PredictionsSpec, file, "no format of predictions fits the file", own
    )
    found = spec.read(file)
    frame, unscored = _rank_by_place(found.frame)
    remarks += [*found.remarks, *unscored]
    return replace(found, frame=frame, form=found.form or said, remarks=remarks)


def _rank_by_place(frame: pl.DataFrame) -> tuple[pl.DataFrame, Sequence[str]]:
    """Where no label has a score, its place in the list gives one: 2 for the last of the longest;
    and the remark that says so.
    """
    sizes = frame["labels"].list.len().fill_null(0).to_list()
    if not any(sizes) or frame["scores"].explode().is_not_null().any():
        return frame, ()
    scores = [[float(max(sizes) + 1 - place) for place in range(size)] for size in sizes]
    listed = pl.Series("scores", scores, dtype=_LISTS["scores"])
    return frame.with_columns(listed), (_UNSCORED,)
