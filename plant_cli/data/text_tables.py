"""Tables in text: rows of CSV and TSV, objects of JSON lines and of a JSON list, in one pass; what cannot be read is named by its line."""

from __future__ import annotations

import csv
import io
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api.errors import DataError, first_line
from plant_cli.data.lines import BadRows, decode_text, find_encoding, open_bytes, read_bytes, read_lines

BLOCK = 1 << 26  # characters that are parsed together
LONGEST = 1 << 29  # characters of a row
_PEEK = 1 << 20  # bytes
_SEPARATORS = "\t,;|"
_BARE_RETURN = re.compile(r"\r(?!\n|\Z)")
_QUOTED = re.compile('"[^"]*"')
_SURROGATES = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)")  # both halves of a character, or one alone
_BEYOND = "a number of thousands of digits, or lists within lists beyond measure"
_LONGEST_NAME, _MOST_NAMES = 40, 12
Numbered = tuple[int, str]


def shorten(name: str) -> str:
    """A name for a message: cut where it is longer than a column's name should be."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def show_names(names: Iterable[str]) -> str:
    """The first names of columns for a message, each cut to a length that can be read."""
    return ", ".join(shorten(name) for name in islice(names, _MOST_NAMES))


def read_text_table(path: Path, encoding: str | None, bad: BadRows) -> Iterator[pl.DataFrame]:
    """A table in text as frames, one for each `BLOCK` of it, at least one.

    In CSV and TSV every column is a string (an id `007` keeps its zeros), and an empty cell is null. A short row is filled with nulls.

    Raises:
        DataError: it is empty, no text or no table, a quoted field is not closed, or the objects do not fit one table.
    """
    head = peek_text(path, encoding)
    start = head.lstrip()[:1]
    if "\0" in head[:4096]:
        where = f"{path}, character {head.index(chr(0)) + 1}"
        raise DataError("the file is not text", where=where, expected="text in UTF-8", todo="name a Parquet, JSON lines, CSV or TSV file")
    if start == "[":
        yield _read_list(path, encoding)
    elif start == "{":
        yield from _read_objects(path, encoding, bad)
    else:
        yield from _read_separated(path, encoding, bad, head)


def peek_text(path: Path, encoding: str | None) -> str:
    """The beginning of a text file."""
    with open_bytes(path) as stream:
        start = stream.read(_PEEK)
    return start.decode(find_encoding(start[:4], encoding, str(path)), "replace")


def peek_names(head: str) -> list[str]:
    """The columns of a table that begins so; none for a JSON list and for what is no table."""
    if "\0" in head or head.lstrip()[:1] == "[":
        return []
    first = next((line for line in head.splitlines() if line.strip()), "")
    if first.lstrip().startswith("{"):
        return [] if _find_fault(first) else list(json.loads(first))
    separator = _find_separator(head)
    return [] if separator is None else next(_parse_rows(first, separator), [])


class _Lines:
    """The lines of a file for `csv`, which takes a carriage return alone for an end: it is given NUL in its place."""

    def __init__(self, path: Path, encoding: str | None, bad: BadRows) -> None:
        self.path, self.encoding, self.bad = path, encoding, bad
        self.number = self.size = 0  # of the last line that was given, and characters since the last row
        self.returns = self.ended = False

    def __iter__(self) -> Iterator[str]:
        for number, line in read_lines(self.path, self.bad, self.encoding, ends=True, surrogates=True):
            self.number, self.size = number, self.size + len(line)
            if "\0" in line:
                raise DataError(
                    "the file holds a zero byte",
                    where=f"{self.path}, line {self.number}",
                    expected="text",
                    todo=f"remove it: tr -d '\\000' < {self.path} > clean{self.path.suffix}",
                )
            if self.size > LONGEST:
                return
            if "\r" in line and _BARE_RETURN.search(line):
                self.returns = True
                line = _BARE_RETURN.sub("\0", line)
            yield line
        self.ended = True

    def rows(self, separator: str) -> Iterator[tuple[int, list[str]]]:
        """The rows, each with the line on which it begins; blank lines are rows without fields."""
        csv.field_size_limit(2**31 - 1)
        start = 1
        for row in csv.reader(self, delimiter=separator):
            if self.ended or self.size > LONGEST:  # only a quoted field asks for a line beyond the last one
                raise DataError(
                    "a quoted field is not closed",
                    where=f"{self.path}, line {start}",
                    expected='fields with quotes written as "…", and quotes inside them doubled',
                    todo="close the quotes, or write the table as JSON lines or Parquet",
                )
            yield start, row
            start, self.size = self.number + 1, 0


def _read_separated(path: Path, encoding: str | None, bad: BadRows, head: str) -> Iterator[pl.DataFrame]:
    separator = _find_separator(head)
    first = next((line for line in head.split("\n") if line.strip()), None)
    if first is None:
        raise DataError("the file is empty", where=str(path), expected="a header or a JSON object in line 1", todo="make the file again")
    if separator is None or "\r" in first.strip():
        raise DataError(
            "the file is not a table" if separator is None else "the lines end in carriage returns alone",
            where=f"{path}, line 1: {first.strip()[:60]!r}",
            expected="a header with at least two columns, separated by tabs, commas or semicolons"
            if separator is None
            else "line feeds, as all systems of today write them",
            todo="add a header line such as text,labels" if separator is None else f"convert them: tr '\\r' '\\n' < {path} > converted.csv",
        )
    lines, before = _Lines(path, encoding, bad), len(bad.rows)
    names: list[str] = []
    rows: list[list[str]] = []
    size, given = 0, False
    for line, row in lines.rows(separator):
        wrong, before = len(bad.rows) > before, len(bad.rows)
        if not names:
            if any(map(str.strip, row)):
                names = _check_names(row, bad.rows[-1].place if wrong else "", f"{path}, line {line}")
        elif wrong:  # bytes of it are not in the encoding
            continue
        elif len(row) > len(names):
            content = separator.join(row).replace("\0", "\r")
            expected = f"{len(names)} fields, those that contain {separator!r} in double quotes"
            bad.add(path, line, f"{len(row)} fields, the header has {len(names)}", content, expected=expected)
            before = len(bad.rows)
        elif row or len(names) == 1:
            rows.append(row + [""] * (len(names) - len(row)))
            size += sum(map(len, row))
            if size > BLOCK:
                yield _make_frame(names, rows, lines.returns)
                rows, size, given = [], 0, True
    if rows or not given:
        yield _make_frame(names, rows, lines.returns)


def _make_frame(names: Sequence[str], rows: Sequence[Sequence[str]], returns: bool) -> pl.DataFrame:
    columns = dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))
    frame = pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))
    if returns:
        frame = frame.with_columns(pl.all().str.replace_all("\0", "\r", literal=True))
    return frame.with_columns(pl.when(pl.all() != "").then(pl.all()))


def _check_names(row: Sequence[str], wrong: str, where: str) -> list[str]:
    """The names of the columns; refuses two of one name, since it could not be said which of them is meant."""
    if wrong:
        todo = "name its encoding, such as --encoding windows-1252"
        raise DataError("the header is not in the encoding of the file", where=wrong, expected="text in its encoding", todo=todo)
    repeated = sorted({name for name in row if name and row.count(name) > 1})
    if repeated:
        raise DataError(
            f"{row.count(repeated[0])} columns are called '{shorten(repeated[0])}'",
            where=f"{where}: {show_names(row)}",
            expected="each name once",
            todo="rename or remove all but one of them",
        )
    return [name or "_" * row[:place].count("") for place, name in enumerate(row)]


def _find_separator(head: str) -> str | None:
    """The separator with which the first row has as many fields as the header; of several the one that makes most columns."""
    first = next((line for line in head.splitlines() if line.strip()), "")
    bare = _QUOTED.sub("", first)
    counts = {separator: bare.count(separator) for separator in _SEPARATORS if separator in bare}
    if not counts and first.strip('" ').isidentifier():
        return "\t"  # one column, such as texts to be labelled: commas in it part nothing
    return max(counts, key=lambda separator: (_agrees(head, separator), counts[separator]), default=None)


def _agrees(head: str, separator: str) -> bool:
    widths = [len(row) for row in islice(_parse_rows(head, separator), 2)]
    return len(widths) == 2 and widths[0] == widths[1]


def _parse_rows(text: str, separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(io.StringIO(_BARE_RETURN.sub(" ", text), newline="\n"), delimiter=separator)
    return (row for row in rows if any(map(str.strip, row)))


def _read_objects(path: Path, encoding: str | None, bad: BadRows) -> Iterator[pl.DataFrame]:
    lines: list[Numbered] = []
    size, given = 0, False
    for line in read_lines(path, bad, encoding):
        if line[1].strip():
            lines.append(line)
            size += len(line[1])
        if size > BLOCK and (frame := _parse_objects(path, lines, bad)) is not None:
            yield frame
            given = True
        if size > BLOCK:
            lines, size = [], 0
    if (frame := _parse_objects(path, lines, bad)) is not None:
        yield frame
    elif not given:
        todo = "make the file again"
        raise DataError("no line of the file can be read", where=str(path), expected="a JSON object on each line", todo=todo)


def _parse_objects(path: Path, lines: Sequence[Numbered], bad: BadRows) -> pl.DataFrame | None:
    """Lines as a table, without those that are no JSON objects; None if none is left."""
    try:
        if lines and not any(
            match[1] for _, line in lines for match in _SURROGATES.finditer(line)
        ):  # polars reads half a character as zero
            return _read_ndjson(lines)
    except PolarsError:
        pass
    sound = []
    for number, line in lines:
        fault = _find_fault(line)
        if fault is None:
            sound.append((number, line))
        else:
            bad.add(path, number, fault[0], line, column=fault[1], expected="one JSON object on each line")
    try:
        return _read_ndjson(sound) if sound else None
    except PolarsError as error:
        raise _explain_values(sound, path) from error


def _read_ndjson(lines: Sequence[Numbered]) -> pl.DataFrame:
    return pl.read_ndjson("\n".join(line for _, line in lines).encode(), infer_schema_length=None)


def _find_fault(line: str) -> tuple[str, int | None] | None:
    """What is wrong with a line that should be a JSON object, and in which column."""
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg}", error.colno
    except UnicodeEncodeError:
        return "a string holds half a character", None
    except (ValueError, RecursionError) as error:
        return (str(error) if "is no JSON" in str(error) else _BEYOND), None
    return None if isinstance(value, dict) else (f"a JSON {type(value).__name__}, not an object", None)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON: null stands for a number that is not there")


def _explain_values(lines: Sequence[Numbered], path: Path) -> DataError:
    """The first of JSON objects, each right in itself, with which polars does not read the lines so far."""
    last = bisect_left(range(len(lines) - 1), True, key=lambda i: not _is_readable(lines[: i + 1]))
    number, text = lines[last]
    what, expected = "its values are of other types than those before it", "objects with the same types in every line"
    if not _is_readable([lines[last]]):
        what, expected = "a value does not fit into a table", "numbers of fewer than 20 digits and below 1e308"
    else:
        for key, value in json.loads(text).items():
            kinds = ((first, json.loads(earlier).get(key)) for first, earlier in lines[:last])
            first, seen = next(((first, seen) for first, seen in kinds if seen is not None), (number, value))
            if value is not None and type(seen) is not type(value):
                what, expected = f"'{shorten(key)}' is of type {type(value).__name__}", f"{type(seen).__name__}, as in line {first}"
                break
    return DataError(f"a line cannot be read: {what}", where=f"{path}, line {number}", expected=expected, todo="mend or remove that line")


def _is_readable(lines: Sequence[Numbered]) -> bool:
    try:
        _read_ndjson(lines)
    except PolarsError:
        return False
    return True


def _read_list(path: Path, encoding: str | None) -> pl.DataFrame:
    text = decode_text(read_bytes(path), encoding, "the file", str(path))
    cause: Exception | None = None
    try:
        rows = json.loads(text)
        if rows and all(isinstance(row, dict) for row in rows):
            return pl.DataFrame(rows, infer_schema_length=None)
        what, where = "the JSON list does not hold objects", str(path)
    except json.JSONDecodeError as error:
        what, where, cause = f"the JSON cannot be read: {error.msg}", f"{path}, line {error.lineno}, column {error.colno}", error
    except (RecursionError, ValueError) as error:
        why = "a string holds half a character" if isinstance(error, UnicodeEncodeError) else _BEYOND
        what, where, cause = f"the JSON cannot be read: {why}", str(path), error
    except (PolarsError, TypeError, OverflowError) as error:
        raise DataError(
            f"the objects of the JSON list do not fit one table: {first_line(error)}",
            where=str(path),
            expected="the same types in every object",
            todo="mend the objects that differ",
        ) from error
    raise DataError(what, where=where, expected='a list of objects: [{"text": …, "labels": […]}, …]', todo="mend the file") from cause
