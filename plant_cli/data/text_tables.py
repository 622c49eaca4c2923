"""Parsing JSON lines, JSON, CSV and TSV from bytes, whole or piece by piece; every error names its line."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api.errors import DataError, first_line
from plant_cli.data.lines import BadRows, open_bytes, refuse_many

_BOM = b"\xef\xbb\xbf"
_SEPARATORS = "\t,;|"
_BLANK_LINE = re.compile(rb"\n\r?\n")
_BARE_RETURN = re.compile(r"\r(?!\n)")
_QUOTED = re.compile('"[^"]*"')
_FIRST_LINE = re.compile(rb'(?:[^"\r\n]|"[^"]*")*+')
_SEPARATOR_LINE = re.compile(rb'"?sep=([^"\r\n\x80-\xff])"?\r?(?:\n|$)', re.IGNORECASE)  # Excel writes and reads such a first line
_SURROGATES = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u[dD][89a-fA-F]..")  # both halves of a character, or one alone
BEYOND = "a number of thousands of digits, or lists within lists beyond measure"
_LONGEST_NAME, _MOST_NAMES = 40, 12


@dataclass(frozen=True)
class Place:
    """Where the content of a table stands in its file, for messages; all 0 for a whole file.

    Args:
        path: the file.
        lines: of the file before the content (before its second line, less one, where a header was set before it).
        rows: of the table before the content.
        bytes: of the file before the content.
    """

    path: Path
    lines: int = 0
    rows: int = 0
    bytes: int = 0

    def line(self, number: int) -> str:
        """The file, and a line of it by its number in the content."""
        return f"{self.path}, line {self.lines + number}"


def shorten(name: str) -> str:
    """A name for a message: cut where it is longer than a column's name should be."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def show_names(names: Iterable[str]) -> str:
    """The first names of columns for a message, each cut to a length that can be read."""
    return ", ".join(shorten(name) for name in islice(names, _MOST_NAMES))


def parse_text(content: bytes, path: Path) -> pl.DataFrame:
    """Parse a table in UTF-8 (a byte order mark is passed over); `path` is only for messages.

    Raises:
        DataError: not UTF-8, empty, not a table, or a row that does not fit; with its line.
    """
    content, place = content.removeprefix(_BOM), Place(path)
    refuse_other_encodings(content, place)
    start = content[:4096].lstrip()
    if not content.strip():
        raise DataError("the file is empty", where=str(path), expected="a header or a JSON object in line 1", todo="make the file again")
    if start.startswith(b"{"):
        return parse_lines(content, place)
    if start.startswith(b"["):
        return _parse_json(content, path)
    return _parse_separated(content, place)


def refuse_other_encodings(content: bytes, place: Place) -> None:
    """`DataError` for what is not UTF-8, or no text."""
    try:
        content.decode("utf-8")
        offset = content.find(b"\0")
        cause: Exception | None = None
    except UnicodeDecodeError as error:
        offset, cause = error.start, error
    if offset < 0:
        return
    if b"\0" in content[:4096]:
        what, todo = "the file is not text", "name a Parquet, JSON lines, CSV or TSV file"
    elif content[offset] == 0:
        what, todo = "the file holds a zero byte", f"remove it: tr -d '\\000' < {place.path} > clean{place.path.suffix}"
    else:
        what, todo = "the file is not UTF-8", "name its encoding, perhaps --encoding windows-1252"
    column = len(content[content.rfind(b"\n", 0, offset) + 1 : offset].decode("utf-8", "replace")) + 1
    line = place.line(content.count(b"\n", 0, offset) + 1)
    where = f"{line}, column {column}, byte {place.bytes + offset} (0x{content[offset]:02x})"
    raise DataError(what, where=where, expected="text in UTF-8", todo=todo) from cause


def parse_lines(content: bytes, place: Place, schema: Mapping[str, pl.DataType] | None = None) -> pl.DataFrame:
    """Parse JSON lines in UTF-8.

    Args:
        content: one JSON object on each line.
        place: where it stands.
        schema: of the columns (default: what all lines together say).

    Raises:
        DataError: a line that is no JSON object, or whose values do not fit those before it.
    """
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")  # the line ends of old Macs
    _refuse_half_characters(content, place)
    try:
        return pl.read_ndjson(content, schema=schema, infer_schema_length=None)
    except PolarsError as error:
        raise _explain_json_lines(content, place) from error


def _refuse_half_characters(content: bytes, place: Place) -> None:
    """Refuse lone surrogates: polars silently reads them as zero."""
    for found in _SURROGATES.finditer(content):
        if len(found[0]) == len(r"\ud83d"):
            start, end = content.rfind(b"\n", 0, found.start()) + 1, content.find(b"\n", found.end())
            half = _half_character(_loads(content[start : end if end >= 0 else None]))
            if half:
                raise _explain_half(half, place.line(content.count(b"\n", 0, start) + 1))


def _half_character(value: object) -> str | None:
    """The first lone surrogate in the strings of a JSON value, as JSON writes it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        return f"\\u{ord(error.object[error.start]):04x}"
    return None


def _loads(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _explain_half(half: str, where: str) -> DataError:
    return DataError(
        f"a string holds half a character: {half} without its other half, which UTF-8 cannot write",
        where=where,
        expected="whole characters, such as \\ud83d\\ude00 or the character itself",
        todo="make the file again without cutting characters in two, or write \\ufffd in place of the half",
    )


def _explain_json_lines(content: bytes, place: Place) -> DataError:
    """Find the line that polars could not read: it is no JSON object, or its values do not fit those before it."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(content.decode("utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        constants: list[str] = []
        try:
            row = json.loads(line, parse_constant=constants.append)
        except json.JSONDecodeError as bad:
            return _bad_line(place.line(number), f"not JSON: {bad.msg} at column {bad.colno}", "one JSON object on each line")
        except (ValueError, RecursionError):
            return _bad_line(place.line(number), BEYOND, "numbers of fewer than 20 digits, and lists within lists only a few levels deep")
        if constants:
            return DataError(
                f"a line cannot be read: {constants[0]} is no JSON",
                where=place.line(number),
                expected="a number, or null where there is none",
                todo=f"write null in place of {constants[0]}, or leave that key out",
            )
        if not isinstance(row, dict):
            return _bad_line(place.line(number), f"a JSON {type(row).__name__}, not an object", "one JSON object on each line")
        lines.append((number, line))
    return explain_values(lines, place)


def explain_values(lines: list[tuple[int, str]], place: Place) -> DataError:
    """The first line of JSON objects, each right in itself, with which polars does not read the lines so far."""
    texts = [text for _, text in lines]
    last = bisect_left(range(len(texts) - 1), True, key=lambda i: not _is_readable(texts[: i + 1]))
    number, text = lines[last]
    if not _is_readable([text]):
        return _bad_line(place.line(number), "a value does not fit into a table", "numbers of fewer than 20 digits and below 1e308")
    for key, value in json.loads(text).items():
        kinds = ((first, json.loads(earlier).get(key)) for first, earlier in lines[:last])
        first, seen = next(((first, seen) for first, seen in kinds if seen is not None), (number, value))
        if value is not None and type(seen) is not type(value):
            expected = f"{type(seen).__name__}, as in line {place.lines + first}"
            return _bad_line(place.line(number), f"'{shorten(key)}' is of type {type(value).__name__}", expected)
    return _bad_line(place.line(number), "its values are of other types than those before it", "objects with the same types in every line")


def _is_readable(lines: list[str]) -> bool:
    try:
        pl.read_ndjson("\n".join(lines).encode(), infer_schema_length=None)
    except PolarsError:
        return False
    return True


def _bad_line(where: str, what: str, expected: str) -> DataError:
    return DataError(f"a line cannot be read: {what}", where=where, expected=expected, todo="mend or remove that line")


def _parse_json(content: bytes, path: Path) -> pl.DataFrame:
    cause: Exception | None = None
    try:
        rows = json.loads(content)
        if rows and all(isinstance(row, dict) for row in rows):
            return pl.DataFrame(rows, infer_schema_length=None)
        what, where = "the JSON list does not hold objects", str(path)
    except json.JSONDecodeError as error:
        what, where, cause = f"the JSON cannot be read: {error.msg}", f"{path}, line {error.lineno}, column {error.colno}", error
    except (RecursionError, ValueError) as error:
        if isinstance(error, UnicodeEncodeError):
            row, half = next((row, half) for row, half in enumerate(map(_half_character, rows), start=1) if half)
            raise _explain_half(half, f"{path}, row {row}") from error
        what, where, cause = f"the JSON cannot be read: {BEYOND}", str(path), error
    except (PolarsError, TypeError, OverflowError) as error:
        raise DataError(
            f"the objects of the JSON list do not fit one table: {first_line(error)}",
            where=str(path),
            expected="the same types in every object",
            todo="mend the objects that differ",
        ) from error
    raise DataError(what, where=where, expected='a list of objects: [{"text": …, "labels": […]}, …]', todo="mend the file") from cause


def _parse_separated(content: bytes, place: Place) -> pl.DataFrame:
    separator, content, skipped = find_separator_of(content)
    place = replace(place, lines=place.lines + skipped)
    header = content.split(b"\n", 1)[0].decode("utf-8").rstrip("\r")
    if separator is None:
        raise DataError(
            "the file is not a table",
            where=f"{place.line(1)}: {header[:60]!r}",
            expected="a header with at least two columns, separated by tabs, commas or semicolons",
            todo="add a header line such as text,labels",
        )
    refuse_repeated_names(content, place, separator)
    return parse_rows(content, separator, place)


def parse_rows(content: bytes, separator: str, place: Place) -> pl.DataFrame:
    """Parse CSV or TSV in UTF-8, a header and rows; `DataError` for a row that does not fit."""
    try:
        return _parse_rows(content, separator)
    except PolarsError as error:
        mended = _requote(content, separator)
        if mended is None:
            raise _explain_separated(content, place, separator, error) from error
    return _parse_rows(mended, separator)


def _parse_rows(content: bytes, separator: str) -> pl.DataFrame:
    # every column is read as text, because an id such as 007 is not a number
    frame = pl.read_csv(content, separator=separator, infer_schema=False, raise_if_empty=False)
    if frame.width > 1 and _BLANK_LINE.search(content):  # polars makes a row of it
        return frame.filter(pl.any_horizontal(pl.all().is_not_null()))
    return frame


def _requote(content: bytes, separator: str) -> bytes | None:
    """The same table with quotes around every field that holds one: polars takes a quote amid a field for the begin of a quoted part.

    None where quotes are not what is wrong.
    """
    if b'"' not in content or b"\0" in content:
        return None
    try:
        rows = [row for _, row in number_records(content.decode("utf-8"), separator, strict=True)]
    except (csv.Error, UnicodeDecodeError):
        return None
    if max(map(len, rows)) > len(rows[0]):
        return None
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def find_separator_of(content: bytes) -> tuple[str | None, bytes, int]:
    """The separator of a CSV or TSV table (None: it is none), its content from the header on, and the lines before that."""
    content = mend_line_ends(content)
    given = _SEPARATOR_LINE.match(content)
    content = content[given.end() :] if given else content
    blank = re.match(rb"(?:[ \t]*\r?\n)*", content)
    skipped = blank[0].count(b"\n") if blank else 0
    content = content[blank.end() :] if blank else content
    header = content.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
    separator = given[1].decode() if given and header.strip() else _choose_separator(header, content)
    if separator is None and header.strip('" ').isidentifier():
        separator = "\t"  # one column, such as texts to be labelled: commas in it part nothing
    return separator, content, skipped + bool(given)


def refuse_repeated_names(content: bytes, place: Place, separator: str) -> None:
    """Refuse two columns of one name: it could not be said which of them is meant."""
    names: list[str] = next(filter(None, _read_rows(io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline=""), separator)), [])
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise DataError(
            f"{names.count(repeated[0])} columns are called '{shorten(repeated[0])}'",
            where=f"{place.line(1)}: {show_names(names)}",
            expected="each name once",
            todo="rename or remove all but one of them",
        )


def mend_line_ends(content: bytes) -> bytes:
    """A table whose lines end in a carriage return alone (old Mac), with line feeds instead."""
    first = _FIRST_LINE.match(content)
    end = first.end() if first else 0
    if b"\r" in content and (b"\n" not in content or re.compile(rb"\r(?![\r\n])").match(content, end)):
        return re.sub(rb"\r(?!\n)", b"\n", content)
    return content


def _choose_separator(header: str, content: bytes) -> str | None:
    """The separator with which the first row has as many fields as the header; of several the one that makes most columns."""
    bare = _QUOTED.sub("", header)
    counts = {separator: bare.count(separator) for separator in _SEPARATORS if separator in bare}
    return max(counts, key=lambda separator: (_agrees(content, separator), counts[separator]), default=None)


def _agrees(content: bytes, separator: str) -> bool:
    stream = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", errors="replace", newline="")
    widths = [len(row) for row in islice(filter(None, _read_rows(stream, separator)), 2)]
    return len(widths) == 2 and widths[0] == widths[1]


def _read_rows(stream: io.TextIOBase, separator: str) -> Any:
    csv.field_size_limit(2**31 - 1)
    return csv.reader(stream, delimiter=separator)


def number_records(text: str, separator: str, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV or TSV table that are not blank, each with the line on which it begins; a carriage return alone ends none.

    Args:
        text: without NUL.
        separator: of fields.
        strict: whether `csv.Error` is raised for a quoted field that is not closed, or that goes on behind its quote.
    """
    csv.field_size_limit(2**31 - 1)
    held = _BARE_RETURN.sub("\0", text)
    reader, start = csv.reader(io.StringIO(held, newline=""), delimiter=separator, strict=strict), 1
    for record in reader:
        if record:
            yield start, [field.replace("\0", "\r") for field in record] if held != text else record
        start = reader.line_num + 1


def _explain_separated(content: bytes, place: Place, separator: str, error: PolarsError) -> DataError:
    columns, line = 0, 1
    for number, (line, row) in enumerate(number_records(content.decode("utf-8").replace("\0", " "), separator)):
        columns = columns or len(row)
        if len(row) > columns:
            return DataError(
                f"a row has {len(row)} fields, the header {columns}",
                where=f"{place.line(line)}, row {place.rows + number}",
                expected=f"{columns} fields, those that contain {separator!r} in double quotes",
                todo="put the field into double quotes, or write the table as JSON lines or Parquet",
            )
    return DataError(
        "a quoted field is not closed" if content.count(b'"') % 2 else first_line(error),
        where=place.line(line),
        expected='fields with quotes written as "…", and quotes inside them doubled',
        todo="close the quotes, or write the table as JSON lines or Parquet",
    )


BLOCK = 1 << 25  # bytes that are read, and parsed, together
LONGEST = 1 << 29  # bytes of a row
Piece = tuple[Place, bytes]


def read_blocks(path: Path, codec: str) -> Iterator[bytes]:
    """A text file in UTF-8, without its byte order mark.

    Args:
        path: the file, perhaps compressed.
        codec: of its text, as `find_encoding` gives it; UTF-8 is passed on as it is.

    Raises:
        DataError: text that is not in another codec, with line and column.
    """
    with open_bytes(path, "a text file") as stream:
        blocks = iter(partial(stream.read, BLOCK), b"")
        for number, block in enumerate(blocks if codec == "utf-8-sig" else _recode(blocks, codec, path)):
            yield block.removeprefix(codecs.BOM_UTF8) if number == 0 else block


def _recode(blocks: Iterable[bytes], codec: str, path: Path) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(codec)()
    line, column = 1, 1
    for block in chain(blocks, [b""]):
        state = decoder.getstate()
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            lenient = codecs.getincrementaldecoder(codec)("ignore")
            lenient.setstate(state)
            line, column = _walk(lenient.decode(block[: max(0, error.start - len(state[0]))]), line, column)
            raise DataError(
                f"the file is not {codec.upper()}: {error.reason}",
                where=f"{path}, line {line}, column {column}",
                expected=f"text in {codec.upper()}, as its first bytes or --encoding say",
                todo="name its encoding with --encoding, or make the file again",
            ) from error
        line, column = _walk(text, line, column)
        if text:
            yield text.encode()


def _walk(text: str, line: int, column: int) -> tuple[int, int]:
    """Line and column behind a text."""
    end = text.rfind("\n")
    return line + text.count("\n"), column + len(text) if end < 0 else len(text) - end


def cut_lines(path: Path, codec: str) -> Iterator[Piece]:
    """Pieces of whole lines."""
    return _cut(read_blocks(path, codec), lambda content: content.rfind(b"\n") + 1, Place(path))


def cut_rows(path: Path, codec: str, separator: str, start: Place) -> Iterator[Piece]:
    """Pieces of whole rows of CSV or TSV.

    Args:
        path: the file.
        codec: see `read_blocks`.
        separator: of its fields.
        start: where the rows begin: behind the header, within the first block.
    """
    blocks = read_blocks(path, codec)
    first = next(blocks)[start.bytes :]
    return _cut(chain([first], blocks), partial(end_of_rows, separator=separator), start)


def _cut(blocks: Iterable[bytes], find_end: Callable[[bytes], int], place: Place) -> Iterator[Piece]:
    rest = b""
    for block in blocks:
        rest += block
        if len(rest) > LONGEST:
            raise DataError(
                f"a row has more than {LONGEST:,} bytes: perhaps a quoted field is not closed",
                where=place.line(1),
                expected='fields with quotes written as "…", and quotes inside them doubled',
                todo="close the quotes, or write the table as JSON lines or Parquet",
            )
        end = find_end(rest)
        if end:
            yield place, rest[:end]
            place = replace(place, lines=place.lines + rest.count(b"\n", 0, end), bytes=place.bytes + end)
            rest = rest[end:]
    if rest:
        yield place, rest


def end_of_rows(content: bytes, separator: str, keep: int | None = None) -> int:
    """Where the last row begins, which may go on behind the content; or where the first `keep` rows end; in bytes."""
    csv.field_size_limit(2**31 - 1)
    place, before, last = 0, 0, 0

    def lines() -> Iterator[str]:
        nonlocal place
        for line in io.BytesIO(content):
            place += len(line)
            yield line.decode("latin-1").replace("\r", " ")  # the signs of CSV are ASCII; a carriage return alone ends no row

    for number, _ in enumerate(csv.reader(lines(), delimiter=separator), start=1):
        before, last = last, place
        if number == keep:
            return last
    return before


_STRAY = re.compile("[\udc80-\udcff]")  # how Python writes a byte that is no UTF-8


def salvage(content: bytes, path: Path, bad: BadRows) -> bytes | None:
    """The same table without the rows that cannot be read.

    Args:
        content: JSON lines, CSV or TSV, not compressed.
        path: for messages.
        bad: takes these rows.

    Returns:
        The other rows; None if it is not single rows that are wrong (it is no table, or a quote is never closed).

    Raises:
        DataError: more than ten rows are not UTF-8: the whole file is in another encoding.
    """
    before = len(bad.rows)
    content = content.removeprefix(_BOM)
    if content.lstrip()[:1] == b"[" or b"\0" in content:
        return None
    if content.lstrip()[:1] == b"{":
        sound = keep_lines(content, Place(path), bad)
    else:
        separator, content, skipped = find_separator_of(content)
        if separator is None:
            return None
        sound = keep_rows(content, separator, Place(path, lines=skipped), bad)
    return sound if len(bad.rows) > before else None


def keep_lines(content: bytes, place: Place, bad: BadRows) -> bytes:
    """The JSON objects among lines; the others go to `bad`."""
    kept, wrong = [], 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        fault = _find_fault(line) if line.strip() else None
        if fault is None:
            kept.append(line)
        else:
            bad.add(place.path, place.lines + number, fault[0], line.decode("utf-8", "replace"), column=fault[1])
            wrong += fault[0].endswith("is not UTF-8")
            refuse_many(wrong, bad.rows[-1], "UTF-8")
    return b"\n".join(kept)


def _find_fault(line: bytes) -> tuple[str, int | None] | None:
    """What is wrong with a line that should be a JSON object, and in which column."""
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        return f"byte 0x{line[error.start]:02x} is not UTF-8", len(line[: error.start].decode("utf-8", "replace")) + 1
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg}", error.colno
    except UnicodeEncodeError:
        return "a string holds half a character", None
    except (ValueError, RecursionError) as error:
        return (str(error) if "is no JSON" in str(error) else "a number or lists within lists beyond measure"), None
    return None if isinstance(value, dict) else (f"a JSON {type(value).__name__}, not an object", None)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def keep_rows(content: bytes, separator: str, place: Place, bad: BadRows) -> bytes:
    """A header and those rows that fit it; the others go to `bad`."""
    text = content.decode("utf-8", "surrogateescape")
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    columns = wrong = 0
    for line, record in number_records(text, separator):
        columns = columns or len(record)
        raw = separator.join(record)
        stray = _STRAY.search(raw)
        if stray:
            why = f"byte 0x{ord(stray[0]) - 0xDC00:02x} is not UTF-8 (--encoding names another)"
            shown = raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            bad.add(place.path, place.lines + line, why, shown, column=stray.start() + 1)
            wrong += 1
            refuse_many(wrong, bad.rows[-1], "UTF-8")
        elif len(record) > columns:
            bad.add(place.path, place.lines + line, f"{len(record)} fields, the header has {columns}", raw)
        else:
            writer.writerow(record)
    return out.getvalue().encode()
