"""Files of office programs, by packages of the extra `office`: workbooks, written and read; the
texts of PDF, Word and HTML.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

from plant_cli.api.errors import DataError, missing_package
from plant_cli.data.lines import read_head
from plant_cli.data.quotes import guard_cell

MOST_ROWS = 1_048_575  # of a sheet, below its header
DOCUMENT_ENDINGS = (".pdf", ".docx", ".html", ".htm")
"""Files of one text each, beside text files."""
_USES = {
    "openpyxl": "which reads and writes XLSX",
    "pypdf": "which reads PDF",
    "docx": "which reads Word documents",
}


def office_package(name: str, path: Path) -> Any:
    """A package of the extra `office`, or a module of one; `ComponentError` that names the file
    if it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise missing_package(
            {"docx": "python-docx"}.get(package, package),
            _USES[package],
            "office",
            where=str(path),
            otherwise=", or the file as text or CSV",
        ) from error


def read_document(path: Path, decode: Callable[[bytes], str]) -> str:
    """The text of a PDF, a Word document or a web page.

    `DataError` if the file is damaged or encrypted, or a PDF holds pictures alone; `ComponentError`
    if a package is not installed.
    """
    read_head(path, "a document")
    kind = path.suffix.lower()
    if kind in (".html", ".htm"):
        page = _Page()
        page.feed(decode(path.read_bytes()))
        return "\n".join(
            line for part in "".join(page.parts).splitlines() if (line := " ".join(part.split()))
        )
    package = office_package("pypdf" if kind == ".pdf" else "docx", path)
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs what it mends
    try:
        if kind == ".docx":
            return "\n".join(
                part.text
                for part in package.Document(str(path)).iter_inner_content()
                if hasattr(part, "text")
            )
        reader = package.PdfReader(path)
        encrypted = reader.is_encrypted and not reader.decrypt("")
        text = "" if encrypted else "\n".join(page.extract_text() for page in reader.pages)
    except Exception as error:  # both packages hand on whatever a damaged file leads them to
        what, todo = (
            f"the {kind[1:].upper()} cannot be read: {type(error).__name__}",
            "open and save it again, or save it as text",
        )
        raise DataError(what, where=str(path), expected="a complete file", todo=todo) from error
    if not text.strip():
        what = (
            "the PDF is encrypted" if encrypted else "the PDF holds no text, perhaps pictures alone"
        )
        todo = "save it without a password" if encrypted else "recognise its text first (OCR)"
        raise DataError(what, where=str(path), expected="a PDF with text", todo=todo)
    return text


class _Page(HTMLParser):
    """Collects the text of a web page."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen += tag in _UNSEEN
        self.parts += [] if tag in _INLINE else ["\n"]

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in _UNSEEN and self._unseen > 0
        self.parts += [] if tag in _INLINE else ["\n"]

    def handle_data(self, data: str) -> None:
        self.parts += [] if self._unseen else [data.replace("\n", " ")]


_UNSEEN = ("script", "style", "template", "noscript")
_INLINE = (
    "a",
    "abbr",
    "b",
    "cite",
    "code",
    "em",
    "i",
    "mark",
    "q",
    "small",
    "span",
    "strong",
    "sub",
    "sup",
    "u",
)


def write_workbook(
    temporary: Path,
    rows: Iterable[Sequence[Any]],
    widths: Mapping[str, int],
    choices: Mapping[str, Sequence[str]],
    path: Path,
) -> None:
    """Write one sheet with a frozen header and a filter; no cell begins a formula. `DataError` if
    there are more rows than a sheet has.

    Args:
        temporary: the file that is written.
        rows: their cells, in the order of the columns; "" is an empty cell, and fractions have two
            digits.
        widths: of the columns in characters, by name; texts in wide ones are wrapped.
        choices: what may be chosen in a column, by its name.
        path: what the file will be called.
    """
    openpyxl, styles = office_package("openpyxl", path), office_package("openpyxl.styles", path)
    validation = office_package("openpyxl.worksheet.datavalidation", path)
    book = openpyxl.Workbook(write_only=True)  # rows do not stay in memory
    sheet, bold = book.create_sheet(), styles.Font(bold=True)
    plain, wrapped = (styles.Alignment(wrap_text=wraps, vertical="top") for wraps in (False, True))
    letters = [openpyxl.utils.get_column_letter(number) for number in range(1, len(widths) + 1)]
    sheet.freeze_panes = "A2"
    for letter, width in zip(letters, widths.values(), strict=True):
        sheet.column_dimensions[letter].width = width
    cells = [openpyxl.cell.WriteOnlyCell(sheet, name) for name in widths]
    for cell in cells:
        cell.font = bold
    sheet.append(cells)
    last = 1
    for last, row in enumerate(rows, start=2):
        if last > MOST_ROWS + 1:
            expected, todo = (
                f"at most {MOST_ROWS:,}",
                "write a .csv file, or fewer labels of each text (--top-k)",
            )
            raise DataError(
                "there are more rows than a sheet has",
                where=str(path),
                expected=expected,
                todo=todo,
            )
        cells = []
        for value, width in zip(row, widths.values(), strict=True):
            shown = None if value == "" else guard_cell(value) if isinstance(value, str) else value
            cells.append(cell := openpyxl.cell.WriteOnlyCell(sheet, shown))
            cell.alignment = wrapped if width > _WIDE else plain
            if isinstance(value, float):
                cell.number_format = "0.00"
        sheet.append(cells)
    for letter, name in zip(letters, widths, strict=True):
        if chosen := choices.get(name):
            listed = validation.DataValidation(
                type="list", formula1=f'"{",".join(chosen)}"', allow_blank=True
            )
            listed.add(f"{letter}2:{letter}{max(2, last)}")
            sheet.data_validations.append(listed)
    sheet.auto_filter.ref = f"A1:{letters[-1]}{last}"
    book.save(temporary)


_WIDE = 30  # characters


def _show_cell(cell: Any) -> str:
    """A cell as text: 7 for 7.0, as a spreadsheet shows it."""
    whole = isinstance(cell, float) and cell.is_integer()
    return "" if cell is None else str(int(cell) if whole else cell)


def read_workbook(path: Path) -> dict[str, list[list[str]]]:
    """The rows of each sheet as texts, by its name; `DataError` if it is no workbook."""
    openpyxl = office_package("openpyxl", path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        return {
            sheet.title: [
                [_show_cell(cell) for cell in row] for row in sheet.iter_rows(values_only=True)
            ]
            for sheet in book.worksheets
        }
    # a damaged archive is refused by zipfile, its parts by the XML reader, each in its own way
    except Exception as error:
        expected, todo = (
            "a workbook (.xlsx) with the table in one of its sheets",
            "save it again as .xlsx or .csv",
        )
        raise DataError(
            "the workbook cannot be read", where=str(path), expected=expected, todo=todo
        ) from error
