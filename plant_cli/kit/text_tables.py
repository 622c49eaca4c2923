"""Parsing JSON lines, JSON, CSV and TSV from bytes, with the line in every complaint."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api.errors import DataError

_BOM = b"\xef\xbb\xbf"
_SEPARATORS = "\t,;|"


def parse_text(content: bytes, path: Path) -> pl.DataFrame:
    """Parse a table in UTF-8 (a byte order mark is passed over); `path` is only for messages.

    Raises:
        DataError: not UTF-8, empty, not a table, or a row that does not fit; with its line.
    """
    content = content.removeprefix(_BOM)
    _refuse_other_encodings(content, path)
    start = content[:4096].lstrip()
    if not content.strip():
        raise DataError("the file is empty", where=str(path), expected="a header or a JSON object in line 1", todo="make the file anew")
    if start.startswith(b"{"):
        return _parse_json_lines(content, path)
    if start.startswith(b"["):
        return _parse_json(content, path)
    return _parse_separated(content, path)


def _refuse_other_encodings(content: bytes, path: Path) -> None:
    try:
        content.decode("utf-8")
        offset = content.find(b"\0")
        cause: Exception | None = None
    except UnicodeDecodeError as error:
        offset, cause = error.start, error
    if offset < 0:
        return
    line = content.count(b"\n", 0, offset) + 1
    if b"\0" in content[:4096]:
        what, todo = "the file is not text", "name a Parquet, JSON lines, CSV or TSV file"
    elif content[offset] == 0:
        what, todo = "the file holds a zero byte", f"remove it: tr -d '\\000' < {path} > clean{path.suffix}"
    else:
        what, todo = "the file is not UTF-8", f"convert it: iconv -f WINDOWS-1252 -t UTF-8 {path} > utf8{path.suffix}"
    raise DataError(
        what, where=f"{path}, line {line}, byte {offset} (0x{content[offset]:02x})", expected="text in UTF-8", todo=todo
    ) from cause


def _parse_json_lines(content: bytes, path: Path) -> pl.DataFrame:
    try:
        return pl.read_ndjson(content, infer_schema_length=None)
    except PolarsError as error:
        raise _explain_json_lines(content, path, error) from error


def _explain_json_lines(content: bytes, path: Path, error: PolarsError) -> DataError:
    """Find the line that polars stumbled over: one that is no JSON object, or whose types differ from those before it."""
    types: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(content.decode("utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as bad:
            return _bad_line(path, number, f"not JSON: {bad.msg} at column {bad.colno}", "one JSON object on each line")
        if not isinstance(row, dict):
            return _bad_line(path, number, f"a JSON {type(row).__name__}, not an object", "one JSON object on each line")
        for key, value in row.items():
            kind, first = types.setdefault(key, (type(value).__name__, number))
            if value is not None and kind != type(value).__name__:
                return _bad_line(path, number, f"'{key}' is of type {type(value).__name__}", f"{kind}, as in line {first}")
    return _bad_line(path, 1, str(error).splitlines()[0], "objects with the same types in every line")


def _bad_line(path: Path, line: int, what: str, expected: str) -> DataError:
    return DataError(f"a line cannot be read: {what}", where=f"{path}, line {line}", expected=expected, todo="mend or remove that line")


def _parse_json(content: bytes, path: Path) -> pl.DataFrame:
    try:
        rows = json.loads(content)
        if rows and all(isinstance(row, dict) for row in rows):
            return pl.DataFrame(rows, infer_schema_length=None)
        what, where, cause = "the JSON list does not hold objects", str(path), None
    except json.JSONDecodeError as error:
        what, where, cause = f"the JSON cannot be read: {error.msg}", f"{path}, line {error.lineno}, column {error.colno}", error
    except (PolarsError, TypeError) as error:
        raise DataError(
            f"the objects of the JSON list do not fit one table: {error}",
            where=str(path),
            expected="the same types in every object",
            todo="mend the objects that differ",
        ) from error
    raise DataError(what, where=where, expected='a list of objects: [{"text": …, "labels": […]}, …]', todo="mend the file") from cause


def _parse_separated(content: bytes, path: Path) -> pl.DataFrame:
    header = content.split(b"\n", 1)[0].decode("utf-8").rstrip("\r")
    separator = next((s for s in _SEPARATORS if s in header), None)
    if separator is None and header.strip('" ').isidentifier():
        separator = "\t"  # one column, such as texts to be labelled: commas in it part nothing
    if separator is None:
        raise DataError(
            "the file is not a table",
            where=f"{path}, line 1: {header[:60]!r}",
            expected="a header with at least two columns, separated by tabs, commas or semicolons",
            todo="add a header line such as text,labels",
        )
    try:
        # every column is read as text, because an id such as 007 is not a number
        return pl.read_csv(content, separator=separator, infer_schema=False, raise_if_empty=False)
    except PolarsError as error:
        raise _explain_separated(content, path, separator, error) from error


def _explain_separated(content: bytes, path: Path, separator: str, error: PolarsError) -> DataError:
    csv.field_size_limit(2**31 - 1)
    reader = csv.reader(io.StringIO(content.decode("utf-8"), newline=""), delimiter=separator)
    columns = len(next(reader))
    start = reader.line_num + 1
    for number, row in enumerate(reader, start=1):
        if len(row) > columns:
            return DataError(
                f"a row has {len(row)} fields, the header {columns}",
                where=f"{path}, line {start}, row {number}",
                expected=f"{columns} fields, those that contain {separator!r} in double quotes",
                todo="put the field into double quotes, or write the table as JSON lines or Parquet",
            )
        last, start = start, reader.line_num + 1
    return DataError(
        "a quoted field is not closed" if content.count(b'"') % 2 else str(error).splitlines()[0],
        where=f"{path}, line {last}",
        expected='fields with quotes written as "…", and quotes inside them doubled',
        todo="close the quotes, or write the table as JSON lines or Parquet",
    )
