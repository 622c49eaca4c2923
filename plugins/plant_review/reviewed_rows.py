"""What people decided: the rows of a sheet after a spreadsheet program or a server wrote to it."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from plant_cli.api import DataError, Reporter
from plant_cli.api.errors import first_names
from plant_cli.data.decision_words import WITHDRAW, Decision, read_decision
from plant_cli.data.lines import decode_text, find_fallback, read_bytes
from plant_cli.data.office_files import read_workbook
from plant_cli.data.quotes import guard_cell
from plant_cli.data.tables import collect, scan_table, table_format
from plant_cli.data.text_tables import peek_text
from plant_cli.scoring.review_sheets import ACCEPT, REJECT_LABEL, REVIEW_COLUMNS

_NEEDED = ("doc_id", "label", "decision")
_ABOVE = 20  # rows in which the names of the columns are looked for
_DECIDED: dict[Decision | None, str] = {"accept": ACCEPT, "reject": REJECT_LABEL}
_LISTED = 12  # words that are no decision, in a warning


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
    decision: str  # accept, reject, withdraw, or empty
    who: str
    time: str  # ISO 8601

    @cached_property
    def moment(self) -> tuple[datetime, str]:
        """The time for comparing: within the hour that summer time repeats, text says nothing.
        UTC where no zone is given; what is no ISO 8601 comes first, in the order of its characters.
        """
        try:
            found, rest = datetime.fromisoformat(self.time), ""
        except ValueError:
            found, rest = datetime.min, self.time
        return found if found.tzinfo else found.replace(tzinfo=UTC), rest


def read_sheet(path: Path, reporter: Reporter) -> list[ReviewedRow]:
    """The rows of a sheet, or of the feedback that `plant serve` keeps; whose rows have no `who`
    and `time` have the file's.

    Raises:
        DataError: it is no table, or lacks a column.
    """
    frame, above = _read_table(path, reporter)
    frame = frame.rename({name: name.strip().lower() for name in frame.columns})
    _require_columns(frame, path)
    own = {
        "who": path.stem,
        "time": datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds"),
    }
    names = ("doc_id", "text", "label", "title", "band", "decision", "who", "time")
    exact = table_format(path) == ".jsonl"
    rows, odd = [], dict[str, str]()
    first = above + (1 if exact else 2)
    for number, cells in enumerate(frame.iter_rows(named=True), start=first):
        values = {name: _clean(cells.get(name), exact=exact) for name in names}
        if not (values["doc_id"] or values["label"] or values["title"]):
            continue  # a row that a spreadsheet left empty
        said = values["decision"].strip()
        decision = read_decision(said)
        if said and decision is None and said != WITHDRAW:
            odd.setdefault(said, f"'{said[:20]}' (row {number})")
        values["decision"] = said if said == WITHDRAW else _DECIDED.get(decision, "")
        rows.append(
            ReviewedRow(
                place=f"{path}, row {number}",
                whole=exact,
                **{**values, **{name: values[name] or own[name] for name in own}},
            )
        )
    if odd:
        listed = first_names([*odd.values()], _LISTED)
        reporter.warn(
            f"{path}: words that are neither {ACCEPT} nor {REJECT_LABEL} count as undecided: "
            f"{listed}"
        )
    return rows


def _require_columns(frame: pl.DataFrame, path: Path) -> None:
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise DataError(
            f"the sheet has no column '{missing[0]}'",
            where=f"{path}{_name_sheets(path)}",
            expected=f"the columns of `plant review export`: {', '.join(REVIEW_COLUMNS)}",
            todo="name the columns as they were",
        )


def take_latest(rows: Sequence[ReviewedRow]) -> list[ReviewedRow]:
    """The rows without earlier decisions of one person on the same label of the same document;
    a label whose decision was withdrawn is undecided.
    """
    decided = defaultdict[tuple[str, str, str], list[ReviewedRow]](list)
    for row in rows:
        if row.decision:
            decided[row.doc_id, row.label, row.who].append(row)
    last = {id(row) for found in decided.values() for row in _find_last(found)}
    return [
        replace(row, decision="") if row.decision == WITHDRAW else row
        for row in rows
        if not row.decision or id(row) in last
    ]


def _find_last(rows: Sequence[ReviewedRow]) -> Sequence[ReviewedRow]:
    """The decisions of the latest time; of those that have this time, which is in whole seconds,
    none that was withdrawn by a later line.
    """
    latest = max(row.moment for row in rows)
    last = [row for row in rows if row.moment == latest]
    withdrawn = [place for place, row in enumerate(last) if row.decision == WITHDRAW]
    return last[withdrawn[-1] + 1 :] or last[withdrawn[-1] :] if withdrawn else last


def find_conflicts(rows: Iterable[ReviewedRow]) -> dict[tuple[str, str], list[ReviewedRow]]:
    """The decisions on a label of a document, where they differ."""
    decisions = defaultdict[tuple[str, str], list[ReviewedRow]](list)
    for row in rows:
        if row.decision:
            decisions[row.doc_id, row.label].append(row)
    return {
        pair: found for pair, found in decisions.items() if len({row.decision for row in found}) > 1
    }


def _read_table(path: Path, reporter: Reporter) -> tuple[pl.DataFrame, int]:
    """The table of a sheet, and how many lines stand above its header."""
    if path.suffix.lower() == ".xlsx" and path.is_file():
        book = read_workbook(path)
        title, above = _find_header(book)
        header, *rows = book[title][above:] or [[]]
        if title != next(iter(book)) or above:
            reporter.note(f"{path}: the table is in the sheet '{title}', from row {above + 1} on")
        places = {
            name: place for place, name in reversed(list(enumerate(header))) if name
        }  # others were added, and are not looked at
        cells = {
            name: [row[place] if place < len(row) else "" for row in rows]
            for name, place in places.items()
        }
        return pl.DataFrame(cells, schema=dict.fromkeys(places, pl.String)), above
    usual = find_fallback(read_bytes(path, "a sheet"), "windows-1252")
    if usual:
        reporter.note(f"{path} is not UTF-8: it is read in {usual}")
    above = 0 if table_format(path) == ".jsonl" else _count_above(peek_text(path, usual))
    if not above:
        return collect(scan_table(path, encoding=usual), str(path)), 0
    reporter.note(f"{path}: the table begins in row {above + 1}")
    return _read_below(path, usual, above), above


def _find_header(book: Mapping[str, Sequence[Sequence[str]]]) -> tuple[str, int]:
    """The sheet whose first rows name the columns, and how many rows stand above these; else
    the first.
    """
    for title, rows in book.items():
        for above, row in enumerate(rows[:_ABOVE]):
            if {*_NEEDED} <= {cell.strip().lower() for cell in row}:
                return title, above
    return next(iter(book)), 0


def _name_sheets(path: Path) -> str:
    """The names of the sheets of a workbook that has several, for an error."""
    sheets = list(read_workbook(path)) if path.suffix.lower() == ".xlsx" else []
    return f", sheets {first_names(sheets, _LISTED)}" if len(sheets) > 1 else ""


def _count_above(head: str) -> int:
    """How many lines stand above the line that names the columns; 0 if none of the first does."""
    for above, line in enumerate(head.splitlines()[:_ABOVE]):
        if {*_NEEDED} <= {cell.strip('\ufeff "').lower() for cell in re.split(r"[;,\t]", line)}:
            return above
    return 0


def _read_below(path: Path, encoding: str | None, above: int) -> pl.DataFrame:
    """The table of a file below some lines."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        text = decode_text(read_bytes(path, "a sheet"), encoding, "the sheet", str(path))
        copy.write_text("".join(text.splitlines(keepends=True)[above:]), encoding="utf-8")
        return collect(scan_table(copy), str(path))


def _clean(cell: Any, *, exact: bool) -> str:
    """A cell without what guards it from being a formula."""
    text = "" if cell is None else str(cell)
    return text[1:] if not exact and text.startswith("'") and guard_cell(text[1:]) == text else text
