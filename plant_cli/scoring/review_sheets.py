"""Sheets in which people accept and reject labels: written, and read after a spreadsheet program or a server wrote to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import DataError, Reporter, UsageError
from plant_cli.data.files import replacing
from plant_cli.data.lines import find_fallback, read_bytes
from plant_cli.data.office_files import office_package, read_workbook, write_workbook
from plant_cli.data.quotes import guard_cell
from plant_cli.data.tables import collect, guard_cells, scan_table, table_format, write_text_batches
from plant_cli.scoring.suggested_documents import SuggestedDocument
from plant_cli.scoring.suggestion_files import in_frames

ACCEPT, REJECT_LABEL = "accept", "reject"
REVIEW_COLUMNS = {
    "doc_id": 14, "heading": 40, "text": 60, "label": 24, "title": 34, "score": 8, "band": 10, "decision": 12, "evidence": 50,
}  # fmt: skip
"""The columns of a sheet, and their widths in a spreadsheet, in characters."""
_SAID = {
    **dict.fromkeys(("accept", "a", "yes", "y", "x", "1", "true", "ja", "j"), ACCEPT),
    **dict.fromkeys(("reject", "r", "no", "n", "0", "false", "nein"), REJECT_LABEL),
}


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
            round(score, 2),
            band,
            "",
            evidence,
        )


def write_sheet(path: Path, documents: Iterable[SuggestedDocument]) -> None:
    """Write a sheet, atomically, in the format that its name promises; no cell of one for spreadsheet programs begins a formula.

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


@dataclass(frozen=True, kw_only=True)
class ReviewedRow:
    """A row of a sheet: a document, a label, and what a person says of it."""

    place: str  # file and row
    doc_id: str
    text: str  # the whole text or its beginning
    whole: bool  # which of them
    label: str
    title: str
    band: str
    decision: str  # accept, reject, or empty
    who: str
    time: str  # ISO 8601


def read_sheet(path: Path, reporter: Reporter) -> list[ReviewedRow]:
    """The rows of a sheet, or of the feedback that `plant serve` keeps; whose rows have no `who` and `time` have the file's.

    Raises:
        DataError: it is no table, or lacks a column.
    """
    frame = _read_table(path, reporter)
    frame = frame.rename({name: name.strip().lower() for name in frame.columns})
    missing = [name for name in ("doc_id", "label", "decision") if name not in frame.columns]
    if missing:
        raise DataError(
            f"the sheet has no column '{missing[0]}'",
            where=str(path),
            expected=f"the columns of `plant review export`: {', '.join(REVIEW_COLUMNS)}",
            todo="name the columns as they were",
        )
    own = {
        "who": path.stem,
        "time": datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
    }
    names = ("doc_id", "text", "label", "title", "band", "decision", "who", "time")
    exact = table_format(path) == ".jsonl"
    rows, odd = [], list[str]()
    for number, cells in enumerate(frame.iter_rows(named=True), start=1 if exact else 2):
        values = {name: _clean(cells.get(name), exact=exact) for name in names}
        if not (values["doc_id"] or values["label"] or values["title"]):
            continue  # a row that a spreadsheet left empty
        said = values["decision"].strip().lower()
        if said and said not in _SAID:
            odd.append(f"row {number}: '{said[:20]}'")
        values["decision"] = _SAID.get(said, "")
        rows.append(
            ReviewedRow(
                place=f"{path}, row {number}",
                whole=exact,
                **{**values, **{name: values[name] or own[name] for name in own}},
            )
        )
    if odd:
        reporter.warn(
            f"{path}: {len(odd)} decisions are neither {ACCEPT} nor {REJECT_LABEL} and count as undecided, first {odd[0]}"
        )
    return rows


def _read_table(path: Path, reporter: Reporter) -> pl.DataFrame:
    if path.suffix.lower() == ".xlsx" and path.is_file():
        header, *rows = read_workbook(path) or [[]]
        places = {
            name: place for place, name in reversed(list(enumerate(header))) if name
        }  # others were added, and are not looked at
        cells = {
            name: [row[place] if place < len(row) else "" for row in rows]
            for name, place in places.items()
        }
        return pl.DataFrame(cells, schema=dict.fromkeys(places, pl.String))
    usual = find_fallback(read_bytes(path, "a sheet"), "windows-1252")
    if usual:
        reporter.note(f"{path} is not UTF-8: it is read in {usual}")
    return collect(scan_table(path, encoding=usual), str(path))


def _clean(cell: Any, *, exact: bool) -> str:
    """A cell without what guards it from being a formula."""
    text = "" if cell is None else str(cell)
    return text[1:] if not exact and text.startswith("'") and guard_cell(text[1:]) == text else text
