"""Tables of PhysioNet: found by name in any folder and case, read row by row, so that a table of 4 GB is never held."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from plant_cli.api import DataError
from plant_cli.kit import BadRows, find_encoding, open_bytes, refuse_many, show_names
from plant_datasets.formats.documents import Reading

Parsed = TypeVar("Parsed")
_STRAY = re.compile("[\udc80-\udcff]")  # how Python writes a byte that is not in the encoding
_KEPT = 2_000  # characters of a bad row: a note is long


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


def read_rows(reading: Reading, name: str, columns: Sequence[str], parse: Callable[..., Parsed]) -> Iterator[Parsed]:
    """What a function makes of each row of a table; a row that cannot be read goes to the reading's bad rows.

    Args:
        reading: where the folder is, how it is encoded, and what is done with bad rows.
        name: of the table.
        columns: those whose cells `parse` is given as they are written, whatever the case of their names.
        parse: raises `ValueError` for cells that are not as they must be.

    Raises:
        DataError: there is no such table or column, or more than ten rows are not in the encoding.
    """
    path = find_table(reading.path, name)
    reading.files.append(path)
    csv.field_size_limit(2**31 - 1)
    with open_bytes(path, "a table of MIMIC") as stream:
        codec = find_encoding(stream.read(4), reading.data.encoding, str(path))
    lenient = "strict" if codec.startswith(("utf-16", "utf-32")) else "surrogateescape"
    with open_bytes(path, "a table of MIMIC") as stream, io.TextIOWrapper(stream, encoding=codec, errors=lenient, newline="") as text:
        lines = _number(csv.reader(text), path)
        names = [column.strip().lower() for column in next(lines, (1, []))[1]]
        missing = [column for column in columns if column not in names]
        if missing:
            raise DataError(
                f"there is no column {missing[0]}",
                where=f"{path}, line 1: {show_names(names)}",
                expected=f"columns {', '.join(columns)}",
                todo="copy the file again, as PhysioNet hands it out",
            )
        rows = _Rows(path, len(names), reading.bad, codec.removesuffix("-sig").upper())
        places = [names.index(column) for column in columns]
        for line, row in lines:
            if not rows.fits(line, row):
                continue
            try:
                parsed = parse(*(row[place] for place in places))
            except ValueError as error:
                rows.refuse(line, row, str(error))
                continue
            yield parsed


def _number(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line that each begins in: a note has many lines."""
    start = reader.line_num + 1
    try:
        for row in reader:
            if row:
                yield start, row
            start = reader.line_num + 1
    except (UnicodeError, csv.Error) as error:
        raise DataError(
            f"the table cannot be read on: {error}",
            where=f"{path}, line {start:,}",
            expected="rows of CSV, in UTF-8 or in the encoding that --encoding names",
            todo="copy the file again, or name its encoding with --encoding",
        ) from error


@dataclass
class _Rows:
    """Tells the rows of a file that can be read from those that cannot."""

    path: Path
    width: int
    bad: BadRows
    codec: str
    stray: int = 0

    def fits(self, line: int, row: list[str]) -> bool:
        """Whether a row has as many fields as the header, all in the encoding of the file."""
        if len(row) != self.width:
            self.refuse(line, row, f"{len(row)} fields, the header has {self.width}")
            return False
        found = next((match for match in map(_STRAY.search, row) if match), None)
        if found is not None:
            self.refuse(line, row, f"byte 0x{ord(found[0]) - 0xDC00:02x} is not {self.codec} (--encoding names another)")
            self.stray += 1
            refuse_many(self.stray, self.bad.rows[-1], self.codec)
        return found is None

    def refuse(self, line: int, row: list[str], why: str) -> None:
        """Take note of a row that cannot be read."""
        content = ",".join(row)[:_KEPT]
        self.bad.add(self.path, line, why, content.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def read_number(value: str) -> str | None:
    """A whole number that pandas may have written as `100001.0`; None for a blank; `ValueError` for anything else."""
    text = value.strip().removesuffix(".0")
    if not text or text.lower() == "nan":
        return None
    if not text.isdecimal():
        raise ValueError(f"not a whole number: {value[:40]!r}")
    return text
