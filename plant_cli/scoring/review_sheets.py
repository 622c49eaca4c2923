"""Sheets in which people accept and reject labels, as they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import UsageError
from plant_cli.data.files import replacing
from plant_cli.data.office_files import office_package, write_workbook
from plant_cli.data.tables import guard_cells, table_format, write_text_batches
from plant_cli.scoring.suggested_documents import SuggestedDocument
from plant_cli.scoring.suggestion_files import in_frames

ACCEPT, REJECT_LABEL = "accept", "reject"
REVIEW_COLUMNS = {
    "doc_id": 14,
    "heading": 40,
    "text": 60,
    "label": 24,
    "title": 34,
    "score": 8,
    "band": 10,
    "decision": 12,
    "evidence": 50,
}
"""The columns of a sheet, and their widths in a spreadsheet, in characters."""
TEXT_IN_SHEET = 300  # characters


def sheet_format(path: Path) -> str:
    """The format of a sheet of that name; ask before long work for it."""
    form = ".xlsx" if path.suffix.lower() == ".xlsx" else table_format(path)
    if form not in (".csv", ".tsv", ".xlsx", ".jsonl") or (
        form != ".xlsx" and path.suffix.lower() != form
    ):
        expected = "a name that ends in .xlsx, .csv, .tsv or .jsonl"
        raise UsageError(
            "no sheet goes by this name",
            where=str(path),
            expected=expected,
            todo="choose such a name, as review.xlsx",
        )
    if form == ".xlsx":
        office_package("openpyxl", path)
    return str(form)


def review_rows(document: SuggestedDocument) -> Iterator[tuple[Any, ...]]:
    """A row for each label of a document; cells as in `REVIEW_COLUMNS`."""
    columns = (
        document.labels,
        document.titles,
        document.scores,
        document.bands,
        document.evidence or [""] * len(document.labels),
    )
    for label, title, score, band, evidence in zip(*columns, strict=True):
        yield (
            document.doc_id,
            document.heading,
            document.text,
            label,
            title or "",
            round(score, 2) if score >= 0.01 else float(f"{score:.1g}"),
            band,
            "",
            evidence,
        )


def write_sheet(path: Path, documents: Iterable[SuggestedDocument]) -> None:
    """Write a sheet, atomically, in the format that its name promises; no cell of one for
    spreadsheet programs begins a formula.

    Raises:
        DataError: there are more rows than a workbook has.
    """
    form = sheet_format(path)
    with replacing(path) as temporary:
        if form == ".xlsx":
            rows = chain.from_iterable(map(review_rows, documents))
            write_workbook(
                temporary, rows, REVIEW_COLUMNS, {"decision": (ACCEPT, REJECT_LABEL)}, path
            )
        elif form == ".jsonl":
            write_text_batches(in_frames(documents, _review_frame), temporary)
        else:  # a spreadsheet knows UTF-8 by its byte order mark
            marked = (
                guard_cells(frame).rename({"doc_id": "\ufeffdoc_id"})
                for frame in in_frames(documents, _review_frame)
            )
            write_text_batches(marked, temporary)


def _review_frame(documents: Iterable[SuggestedDocument]) -> pl.DataFrame:
    schema = {name: pl.Float64 if name == "score" else pl.String for name in REVIEW_COLUMNS}
    return pl.DataFrame(
        list(chain.from_iterable(map(review_rows, documents))), schema=schema, orient="row"
    )
