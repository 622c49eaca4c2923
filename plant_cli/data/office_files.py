"""Files of office programs, by packages of the extra `office`: workbooks, written and read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from plant_cli.api.errors import DataError, missing_package
from plant_cli.data.quotes import guard_cell

MOST_ROWS = 1_048_575  # of a sheet, below its header
_USES = {"openpyxl": "which reads and writes XLSX"}


def office_package(name: str, path: Path) -> Any:
    """A package of the extra `office`, or a module of one; `ComponentError` that names the file if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise missing_package(package, _USES[package], "office", where=str(path), otherwise=", or the file as text or CSV") from error


def write_workbook(
    temporary: Path, rows: Iterable[Sequence[Any]], widths: Mapping[str, int], choices: Mapping[str, Sequence[str]], path: Path
) -> None:
    """Write one sheet with a frozen header and a filter; no cell begins a formula.

    Args:
        temporary: the file that is written.
        rows: their cells, in the order of the columns; "" is an empty cell, and fractions have two digits.
        widths: of the columns in characters, by name; texts in wide ones are wrapped.
        choices: what may be chosen in a column, by its name.
        path: what the file will be called.

    Raises:
        DataError: there are more rows than a sheet has.
    """
    styles, validation = office_package("openpyxl.styles", path), office_package("openpyxl.worksheet.datavalidation", path)
    book = office_package("openpyxl", path).Workbook()
    sheet, wrapped = book.active, styles.Alignment(wrap_text=True, vertical="top")
    sheet.append(list(widths))
    for number, row in enumerate(rows, start=2):
        if number > MOST_ROWS:
            expected, todo = f"at most {MOST_ROWS:,}", "write a .csv file, or fewer labels of each text (--top-k)"
            raise DataError("there are more rows than a sheet has", where=str(path), expected=expected, todo=todo)
        sheet.append([None if cell == "" else guard_cell(cell) if isinstance(cell, str) else cell for cell in row])
        for cell, width in zip(sheet[number], widths.values(), strict=True):
            cell.alignment = wrapped if width > _WIDE else styles.Alignment(vertical="top")
            if isinstance(cell.value, float):
                cell.number_format = "0.00"
    for column, width in zip(sheet.columns, widths.values(), strict=True):
        letter = column[0].column_letter
        column[0].font = styles.Font(bold=True)
        sheet.column_dimensions[letter].width = width
        if chosen := choices.get(column[0].value):
            listed = validation.DataValidation(type="list", formula1=f'"{",".join(chosen)}"', allow_blank=True)
            listed.add(f"{letter}2:{letter}{max(2, sheet.max_row)}")
            sheet.add_data_validation(listed)
    sheet.freeze_panes, sheet.auto_filter.ref = "A2", sheet.dimensions
    book.save(temporary)


_WIDE = 30  # characters


def read_workbook(path: Path) -> list[list[str]]:
    """The rows of the first sheet as texts, that of the header first; `DataError` if it is no workbook."""
    openpyxl = office_package("openpyxl", path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        return [["" if cell is None else str(cell) for cell in row] for row in book.worksheets[0].iter_rows(values_only=True)]
    except Exception as error:  # a damaged archive is refused by zipfile, its parts by the XML reader, each in its own way
        expected, todo = "a workbook (.xlsx) with the table in its first sheet", "save it again as .xlsx or .csv"
        raise DataError("the workbook cannot be read", where=str(path), expected=expected, todo=todo) from error
