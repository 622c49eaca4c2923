"""Tables of PhysioNet: found by name in any folder and case, read row by row, so that a table of 4 GB is never held."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from plant_cli.api import DataError
from plant_cli.kit.compression import open_bytes


def find_table(root: Path, name: str) -> Path:
    """The file of a table, `.csv` or compressed, at most three folders down; `DataError` if there is none or several."""
    wanted = {f"{name}.csv{suffix}".lower() for suffix in ("", ".gz", ".zst")}
    patterns = ("*", "*/*", "*/*/*", "*/*/*/*")
    found = [path for pattern in patterns for path in sorted(root.glob(pattern)) if path.name.lower() in wanted and path.is_file()]
    if len(found) != 1:
        raise DataError(
            f"{len(found)} files are the table {name}",
            where=", ".join(map(str, found)) or str(root),
            expected=f"{name}.csv or {name}.csv.gz below the folder that was named",
            todo="name the folder that PhysioNet hands out (for MIMIC-IV one that holds both hosp and note)",
        )
    return found[0]


def read_rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Rows of a table with some of its columns as they are written, whatever the case of their names.

    Raises:
        DataError: a column is missing, a row has another number of fields, or the file is no UTF-8.
    """
    csv.field_size_limit(2**31 - 1)
    with open_bytes(path, "a table of MIMIC") as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        names = [name.strip().lower() for name in next(reader, [])]
        missing = [name for name in columns if name not in names]
        if missing:
            raise _wrong(f"there is no column {missing[0]}", path, 1, f"columns {', '.join(columns)}")
        places = [names.index(name) for name in columns]
        try:
            for row in reader:
                _require_width(row, len(names), path, reader.line_num)
                yield tuple(row[place] for place in places)
        except UnicodeDecodeError as error:
            raise _wrong(f"the file is not UTF-8: {error.reason}", path, reader.line_num + 1, "UTF-8") from error


def _require_width(row: list[str], width: int, path: Path, line: int) -> None:
    if len(row) != width:
        raise _wrong(f"a row has {len(row)} fields", path, line, f"{width} fields")


def read_number(value: str) -> str | None:
    """A whole number that pandas may have written as `100001.0`; None for a blank."""
    text = value.strip()
    return text.removesuffix(".0") if text and text.lower() != "nan" else None


def _wrong(what: str, path: Path, line: int, expected: str) -> DataError:
    return DataError(
        what, where=f"{path}, line {line:,}", expected=expected, todo="copy the file again; a download may have stopped half way"
    )
