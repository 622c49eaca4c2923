"""Tables in text: rows of CSV and TSV, objects of JSON lines and of a JSON list, in one pass;
what cannot be read is named by its line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api.errors import DataError
from plant_cli.data.blocks import cut_by_size
from plant_cli.data.file_kinds import TABLE_EXPECTED, refuse_text
from plant_cli.data.lines import (
    LINES_LISTED,
    BadRows,
    damaged_parquet,
    decode_text,
    ends_as_parquet,
    find_encoding,
    read_bytes,
    read_lines,
    read_start,
)
from plant_cli.data.quotes import (
    LINES_TRIED,
    QUOTES_EXPECTED,
    count_parts,
    is_escaped,
    is_row,
    read_bare,
    read_escaped,
    reread,
    swallows,
)

CHARACTERS_PER_BLOCK = 1 << 26  # characters that are parsed together
LONGEST_ROW = 1 << 29  # characters of a row
_SEPARATORS = "\t,;|"
_BARE_RETURN = re.compile(r"\r(?!\n|\Z)")
_QUOTED = re.compile('"[^"]*"')
_EXCEL = re.compile(r'\A"?sep=(.)"?\r?\n')
_SURROGATES = re.compile(
    r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)"
)  # both halves of a character, or one alone
_BEYOND = "a number of thousands of digits, or lists within lists beyond measure"
_NO_TEXT = r"^(?:-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false)$"
_LINES_SEEN = 20  # lines that show what a file holds
_LONGEST_NAME, _MOST_NAMES = 40, 12
Numbered = tuple[int, str]


def shorten(name: str) -> str:
    """A name for a message: cut where it is longer than a column's name should be."""
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def show_names(names: Iterable[str]) -> str:
    """The first names of columns for a message, each cut to a length that can be read."""
    return ", ".join(shorten(name) for name in islice(names, _MOST_NAMES))


def read_text_table(path: Path, encoding: str | None, bad: BadRows) -> Iterator[pl.DataFrame]:
    """A table in text as frames, one for each `CHARACTERS_PER_BLOCK` of it, at least one.

    In CSV and TSV every column is a string (an id `007` keeps its zeros), and an empty cell is
    null. A short row is filled with nulls.
    """
    head = peek_text(path, encoding)
    refuse_text(head, str(path))
    start = head.lstrip()[:1]
    if "\0" in head[:4096] and (path.suffix == ".parquet" or ends_as_parquet(path)):
        raise damaged_parquet(path)
    if "\0" in head[:4096]:
        what, todo = "the file is not text", "name a Parquet, JSON lines, CSV or TSV file"
        zeros = [head[start:4096:2].count("\0") / len(head[start:4096:2]) for start in (1, 0)]
        if max(zeros) > 0.5 > min(zeros):
            wide = "utf-16-le" if zeros[0] > zeros[1] else "utf-16-be"
            what, todo = (
                f"the file is not UTF-8: it looks like {wide} without its mark",
                f"name its encoding: --encoding {wide}",
            )
        raise DataError(
            what,
            where=f"{path}, character {head.index(chr(0)) + 1}",
            expected="text in UTF-8",
            todo=todo,
        )
    if start == "[":
        yield _read_list(path, encoding)
    elif start == "{" and (rows := _read_one_object(path, encoding, head)) is not None:
        yield rows
    elif start == "{" or _hold_objects(head):
        yield from _read_objects(path, encoding, bad)
    else:
        yield from _read_separated(path, encoding, bad, head)


def peek_text(path: Path, encoding: str | None) -> str:
    """The beginning of a text file, without a line `sep=;` of Excel."""
    start = read_start(path)
    return _EXCEL.sub(
        "", start.decode(find_encoding(start[:4], encoding, str(path)), "replace"), count=1
    )


def _hold_objects(head: str) -> bool:
    """Whether the lines after the first are JSON objects: one bad line at the top costs itself."""
    lines = [line for line in head.splitlines()[1:] if line.strip()][:_LINES_SEEN]
    return (
        bool(lines)
        and sum(line.lstrip()[:1] == "{" and _find_fault(line) is None for line in lines)
        > len(lines) / 2
    )


def peek_names(head: str) -> list[str]:
    """The columns of a table that begins so; none for a JSON list and for what is no table."""
    if "\0" in head or head.lstrip()[:1] == "[":
        return []
    first = next((line for line in head.splitlines() if line.strip()), "")
    if _hold_objects(head):
        first = next(line for line in head.splitlines() if line.lstrip().startswith("{"))
    if first.lstrip().startswith("{"):
        return [] if _find_fault(first) else list(json.loads(first))
    separator = find_separator(head)
    return [] if separator is None else next(_parse_rows(first, separator), [])


class _Lines:
    """The lines of a file for `csv`, a carriage return alone as NUL; those of a row are held,
    since they may be read again.
    """

    def __init__(self, path: Path, encoding: str | None, bad: BadRows) -> None:
        self.path, self.encoding, self.bad = path, encoding, bad
        self.source = read_lines(path, bad, encoding, ends=True, surrogates=True)
        self.waiting: deque[Numbered] = deque()  # lines that were given, and will be again
        self.held: list[Numbered] = []  # lines since the last row
        self.broken: set[int] = set()  # those that went to `bad`
        self.size = 0  # characters of the lines that are held
        self.returns = False

    def __iter__(self) -> Iterator[str]:
        while True:
            while self.waiting and self.size <= LONGEST_ROW:
                yield self._hold(*self.waiting.popleft())
            known = len(self.bad.rows)
            for number, line in self.source if self.size <= LONGEST_ROW else ():
                if len(self.bad.rows) > known:
                    known = len(self.bad.rows)
                    self.broken.update(
                        row.line
                        for row in self.bad.rows[-1:]
                        if (row.path, row.line) == (self.path, number)
                    )
                if "\0" in line:
                    expected, todo = (
                        "text",
                        f"remove it: tr -d '\\000' < {self.path} > clean{self.path.suffix}",
                    )
                    raise DataError(
                        "the file holds a zero byte",
                        where=f"{self.path}, line {number}",
                        expected=expected,
                        todo=todo,
                    )
                if "\r" in line and _BARE_RETURN.search(line):
                    self.returns = True
                    line = _BARE_RETURN.sub("\0", line)
                yield self._hold(number, line)
                if self.waiting or self.size > LONGEST_ROW:
                    break
            else:
                return

    def _hold(self, number: int, line: str) -> str:
        self.held.append((number, line))
        self.size += len(line)
        return line

    def breaks(self, held: Iterable[Numbered]) -> bool:
        """Whether one of these lines went to `bad`."""
        return not self.broken.isdisjoint(number for number, _ in held)

    def begin_row(self, back: int | None = None) -> None:
        """Forget the lines of the last row; those after the first `back` are given again."""
        if back is not None:
            self.waiting.extendleft(reversed(self.held[back:]))
        self.held, self.size = [], 0


def read_rows(
    path: Path,
    bad: BadRows,
    encoding: str | None = None,
    separator: str = ",",
    *,
    exact: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table with the line on which each begins, the header first; blank lines are
    left out.

    A row that has more fields than the header, or bytes that are not in the encoding, goes to
    `bad`. A row with fewer fields is filled up with empty ones; it goes to `bad` too where rows
    must be as long as the header (`exact`). A row whose quotes do not fit is read as it was meant,
    of which `bad` takes note. `DataError` if the header is not in the encoding, or a quoted field
    of it is not closed.
    """
    csv.field_size_limit(2**31 - 1)
    lines, width = _Lines(path, encoding, bad), 0
    for line, row, wrong in _split_rows(lines, separator):
        if line == 1 and separator.join(row) in (f"sep={separator}", f'"sep={separator}"'):
            continue
        if _is_blank(row, width):
            continue
        if wrong and not width:
            todo = "name its encoding, such as --encoding windows-1252"
            where = bad.rows[-1].place
            raise DataError(
                "the header is not in the encoding of the file",
                where=where,
                expected="text in its encoding",
                todo=todo,
            )
        if lines.returns:
            row = [cell.replace("\0", "\r") for cell in row]
        width = width or len(row)
        if len(row) > width or (exact and len(row) < width):
            expected = f"{width} fields, those that contain {separator!r} in double quotes"
            bad.add(
                path,
                line,
                f"{len(row)} fields, the header has {width}",
                separator.join(row),
                expected=expected,
            )
        elif not wrong:
            yield line, _fill(row, width, bad, path, line)


def _is_blank(row: Sequence[str], width: int) -> bool:
    """Whether a row is a blank line: above the header (width 0), one without any text; below it,
    one without fields, unless a row has a single one.
    """
    return not any(map(str.strip, row)) if not width else not row and width != 1


def _fill(row: list[str], width: int, bad: BadRows, path: Path, line: int) -> list[str]:
    """A row with as many fields as the header, of which `bad` takes note if some are added."""
    if len(row) == width:
        return row
    what = f"fewer than the {width} fields of the header: the others are empty"
    bad.note(path, line, what, read=True)
    return row + [""] * (width - len(row))


def _split_rows(lines: _Lines, separator: str) -> Iterator[tuple[int, list[str], bool]]:
    """Rows, with the line on which each begins and whether one of its lines went to `bad`;
    where quotes do not fit, a row is read again.
    """
    rows, width = csv.reader(lines, delimiter=separator, strict=True), 0
    while True:
        try:
            row, fits = next(rows, None), True
        except csv.Error:  # a quoted field is not closed, or there is more behind its end
            row, fits = None, False
        if not lines.held:
            return
        held, count = lines.held, None
        if not fits and not width:
            expected, todo = (
                "names in quotes that are closed, with quotes inside them doubled",
                "close the quotes",
            )
            raise DataError(
                "a quoted field of the header is not closed",
                where=f"{lines.path}, line {held[0][0]}",
                expected=expected,
                todo=todo,
            )
        if width and (not fits or len(held) > 1 or _is_odd(held[0][1], row, separator, width)):
            row, count = _mend_row(lines, row, separator, width)
            rows = rows if count is None else csv.reader(lines, delimiter=separator, strict=True)
        lines.begin_row(count)
        width = width or (0 if row is None else _measure_header(row))
        if row is not None:
            yield held[0][0], row, bool(lines.broken) and lines.breaks(held[:count])


def _measure_header(row: Sequence[str]) -> int:
    """The fields of a first row; 0 of a blank one, and of one that names the separator."""
    return len(row) if any(map(str.strip, row)) and row[0] != "sep=" else 0


def _is_odd(line: str, row: Sequence[str] | None, separator: str, width: int) -> bool:
    """Whether a line has too many or too few fields, and may be meant otherwise."""
    if not row or len(row) == width:
        return False
    return f'{separator} "' in line or is_escaped(line, separator)


def _mend_row(
    lines: _Lines, row: list[str] | None, separator: str, width: int
) -> tuple[list[str] | None, int | None]:
    """What a row of several lines is, or one whose quotes do not fit (None): its fields, and of
    how many lines; None: all of them.
    """
    own = len(lines.held)
    found = _read_again(lines, row, separator, width)
    line, texts = lines.held[0][0], [text for _, text in lines.held]
    taken = texts[: found[1]] if found is not None else [] if row is None else texts[:own]
    if len(taken) > 1 and _are_rows(lines, taken, separator, width):
        lines.bad.note(
            lines.path,
            line,
            f"a quote without an end took in {len(taken):,} lines, which are rows by themselves",
        )
        return read_bare(texts[0], separator), 1
    if found is not None:
        lines.bad.note(lines.path, line, found[2])
        return found[0], found[1]
    if row is not None:
        return row, own
    further = (place for place in range(1, len(texts)) if is_row(texts[place], separator, width))
    end = next(further, len(texts))
    lines.bad.add(
        lines.path, line, "its quotes do not close", "".join(texts[:end]), expected=QUOTES_EXPECTED
    )
    return None, end


def _read_again(
    lines: _Lines, row: list[str] | None, separator: str, width: int
) -> tuple[list[str], int, str] | None:
    """The row as `read_escaped` or `reread` finds it, with lines behind it where those are needed,
    which are held then; None where it is as it was read, or cannot be read.
    """
    odd = row is None or len(row) != width
    escaped = odd and is_escaped(lines.held[0][1], separator)
    if row is None or escaped:
        for _ in islice(lines, max(0, LINES_TRIED - len(lines.held))):
            pass
    texts = [text for _, text in lines.held]
    found = read_escaped(texts, separator, width) if escaped else None
    if found is None and (row is None or len(row) > width):
        return reread(texts, separator, width)
    return found


def _are_rows(lines: _Lines, taken: Sequence[str], separator: str, width: int) -> bool:
    """Whether the lines that a quoted field took in are rows by themselves."""
    if taken[1].count(separator) != width - 1:
        return False
    others = count_parts(peek_text(lines.path, lines.encoding), separator, width)
    return swallows(taken, separator, width, others)


def _read_separated(
    path: Path, encoding: str | None, bad: BadRows, head: str
) -> Iterator[pl.DataFrame]:
    separator = find_separator(head)
    first = next((line for line in head.split("\n") if line.strip()), None)
    if first is None:
        raise DataError(
            "the file is empty",
            where=str(path),
            expected="a header or a JSON object in line 1",
            todo="make the file again",
        )
    if separator is None or not any(_parse_rows(head, separator)):
        what, expected = (
            "the file is not a table: nothing parts its first line into columns",
            TABLE_EXPECTED,
        )
        todo = "name a table, or write the texts and their labels as one"
    elif "\r" in first.strip():
        what, expected = (
            "the lines end in carriage returns alone",
            "line feeds, as all systems of today write them",
        )
        todo = f"convert them: tr '\\r' '\\n' < {path} > converted.csv"
    else:
        rows = read_rows(path, bad, encoding, separator)
        line, header = next(rows)
        names = _check_names(header, f"{path}, line {line}")
        blocks = cut_by_size(
            (row for _, row in rows), lambda row: sum(map(len, row)), CHARACTERS_PER_BLOCK
        )
        for block in chain([next(blocks, [])], blocks):
            cells = pl.DataFrame(block, schema=dict.fromkeys(names, pl.String), orient="row")
            yield cells.with_columns(pl.when(pl.all() != "").then(pl.all()))
        return
    raise DataError(what, where=f"{path}, line 1", expected=expected, todo=todo)


def _check_names(row: Sequence[str], where: str) -> list[str]:
    """The names of the columns; refuses two of one name, since it could not be said which of
    them is meant.
    """
    row = [name.strip() for name in row]
    repeated = sorted({name for name in row if name and row.count(name) > 1})
    if repeated:
        what, todo = (
            f"{row.count(repeated[0])} columns are called '{shorten(repeated[0])}'",
            "rename or remove all but one of them",
        )
        raise DataError(
            what, where=f"{where}: {show_names(row)}", expected="each name once", todo=todo
        )
    return [name or "_" * row[:place].count("") for place, name in enumerate(row)]


def find_separator(head: str) -> str | None:
    """The separator with which the first row has as many fields as the header; of several the
    one that makes most columns.
    """
    first = next((line for line in head.splitlines() if line.strip()), "")
    bare = _QUOTED.sub("", first)
    counts = {separator: bare.count(separator) for separator in _SEPARATORS if separator in bare}
    if not counts and first.strip('" ').isidentifier():
        return "\t"  # one column, such as texts to be labelled: commas in it part nothing

    def rank(separator: str) -> tuple[bool, int]:
        widths = [len(row) for row in islice(_parse_rows(head, separator), 2)]
        return len(widths) == 2 and widths[0] == widths[1], counts[separator]

    return max(counts, key=rank, default=None)


def _parse_rows(text: str, separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(io.StringIO(_BARE_RETURN.sub(" ", text), newline="\n"), delimiter=separator)
    return (row for row in rows if any(map(str.strip, row)))


def _read_objects(path: Path, encoding: str | None, bad: BadRows) -> Iterator[pl.DataFrame]:
    lines = (line for line in read_lines(path, bad, encoding) if line[1].strip())
    frames = (
        _parse_objects(path, block, bad)
        for block in cut_by_size(lines, lambda line: len(line[1]), CHARACTERS_PER_BLOCK)
    )
    empty = True
    for frame in frames:
        if frame is not None:
            yield frame
            empty = False
    if empty:
        expected, todo = "a JSON object on each line", "make the file again"
        raise DataError(
            "no line of the file can be read", where=str(path), expected=expected, todo=todo
        )


def _parse_objects(path: Path, lines: Sequence[Numbered], bad: BadRows) -> pl.DataFrame | None:
    """Lines as a table, without those that are no JSON objects; None if none is left."""
    halves = any(
        match[1] for _, line in lines for match in _SURROGATES.finditer(line)
    )  # polars reads half a character as zero
    if (
        not halves
        and (frame := _read_ndjson(lines)) is not None
        and not _repeat_keys(lines, frame.columns)
    ):
        return _note_numbers(path, lines, frame, bad)
    sound = []
    for number, line in lines:
        fault = _find_fault(line)
        if fault is None:
            sound.append((number, line))
        else:
            bad.add(
                path,
                number,
                fault[0],
                line,
                column=fault[1],
                expected="one JSON object on each line",
            )
    errors: list[DataError] = []
    while sound and (frame := _read_ndjson(sound)) is None:
        errors.append(_explain_values(sound, path))
        if len(errors) > min(LINES_LISTED, len(lines) // 10):  # a few among many cost themselves
            raise errors[0]
        number, line = sound.pop(_find_odd(sound))
        bad.add(
            path, number, errors[-1].what.partition(": ")[2], line, expected=errors[-1].expected
        )
    return _note_numbers(path, sound, frame, bad) if sound and frame is not None else None


def _note_numbers(
    path: Path, lines: Sequence[Numbered], frame: pl.DataFrame, bad: BadRows
) -> pl.DataFrame:
    """The frame; numbers in a few lists of texts, which polars takes for texts, are told."""
    for name in (name for name, dtype in frame.schema.items() if dtype == pl.List(pl.String)):
        likely = (
            frame[name]
            .list.eval(pl.element().str.contains(_NO_TEXT))
            .list.any()
            .fill_null(False)
            .arg_true()
        )
        for place in likely if len(likely) <= frame.height / _LINES_SEEN else ():
            number, line = lines[place]
            if any(
                value is not None and not isinstance(value, str) for value in json.loads(line)[name]
            ):
                bad.note(
                    path,
                    number,
                    f"numbers among the texts of '{shorten(name)}' are read as text",
                    read=True,
                )
    return frame


def _find_odd(lines: Sequence[Numbered]) -> int:
    """The position of the first of JSON objects with which polars does not read those so far."""
    return bisect_left(
        range(len(lines) - 1), True, key=lambda place: _read_ndjson(lines[: place + 1]) is None
    )


def _repeat_keys(lines: Sequence[Numbered], names: Sequence[str]) -> bool:
    """Whether some object has a key twice, of which polars takes the last."""
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    return any(
        _find_fault(line) is not None
        for _, line in lines
        if any(line.count(key) > 1 for key in keys)
    )


def _read_ndjson(lines: Sequence[Numbered]) -> pl.DataFrame | None:
    """Lines as a table; None where polars does not read them."""
    try:
        return pl.read_ndjson(
            "\n".join(line for _, line in lines).encode(), infer_schema_length=None
        )
    except PolarsError:
        return None


def _find_fault(line: str) -> tuple[str, int | None] | None:
    """What is wrong with a line that should be a JSON object, and in which column."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON: null stands for a number that is not there")

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            raise ValueError(
                f"the key '{shorten(next(name for name in names if names.count(name) > 1))}' "
                "stands twice in an object"
            )
        return dict(pairs)

    try:
        value = json.loads(line, parse_constant=refuse, object_pairs_hook=once)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return "not JSON", error.colno
    except UnicodeEncodeError:
        return "a string holds half a character", None
    except (ValueError, RecursionError) as error:
        return (str(error) if re.search("is no JSON|stands twice", str(error)) else _BEYOND), None
    return (
        None if isinstance(value, dict) else (f"a JSON {type(value).__name__}, not an object", None)
    )


def _explain_values(lines: Sequence[Numbered], path: Path, place: str = "line") -> DataError:
    """The first of JSON objects, each right in itself, with which polars does not read the
    lines (or the objects of a list) so far.
    """
    last = _find_odd(lines)
    number, text = lines[last]
    what, expected = (
        "its values are of other types than those before it",
        f"objects with the same types in every {place}",
    )
    if _read_ndjson([lines[last]]) is None:
        what, expected = (
            "a value does not fit into a table",
            "numbers of fewer than 20 digits and below 1e308",
        )
    else:
        for key, value in json.loads(text).items():
            kinds = ((first, json.loads(earlier).get(key)) for first, earlier in lines[:last])
            first, seen = next(
                ((first, seen) for first, seen in kinds if seen is not None), (number, value)
            )
            if value is not None and type(seen) is not type(value):
                what, expected = (
                    f"'{shorten(key)}' is of type {type(value).__name__}",
                    f"{type(seen).__name__}, as in {place} {first}",
                )
                break
    where, todo = f"{path}, {place} {number}", f"mend or remove that {place}"
    return DataError(
        f"{place} {number} cannot be read: {what}", where=where, expected=expected, todo=todo
    )


def _read_one_object(path: Path, encoding: str | None, head: str) -> pl.DataFrame | None:
    """The table in a file that is one JSON object; None if its lines are objects, or the object
    is a row.
    """
    filled = [line for line in head.splitlines() if line.strip()]
    if len(filled) > 1 and filled[0].rstrip().endswith("}"):
        return None
    try:
        rows = unwrap_rows(
            json.loads(decode_text(read_bytes(path), encoding, "the file", str(path)))
        )
        return None if rows is None else pl.DataFrame(rows, infer_schema_length=None)
    except (ValueError, RecursionError, PolarsError, TypeError, OverflowError, DataError):
        return None


def unwrap_rows(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rows in a JSON object: its list of objects, columns (lists, or objects by row), or
    objects by id; None if it is a row itself.
    """
    ways = (_take_only_list, _take_split_table, _take_columns, _take_rows_by_name)
    return next((rows for find in ways if (rows := find(value)) is not None), None)


def _take_only_list(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The only list of objects, if it is longer than all that stands beside it."""
    lists = [
        part
        for part in value.values()
        if isinstance(part, list) and part and all(isinstance(row, dict) for row in part)
    ]
    if len(lists) != 1:
        return None
    beside = [part for part in value.values() if part is not lists[0]]
    return lists[0] if _measure(lists) > _measure(beside) else None


def _measure(part: Any) -> int:
    """The length of the longest text in nested lists and objects."""
    if isinstance(part, str):
        return len(part)
    parts = part if isinstance(part, list) else part.values() if isinstance(part, dict) else ()
    return max(map(_measure, parts), default=0)


def _take_split_table(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Names of columns, and rows of values, as pandas writes them (`orient="split"`)."""
    names, rows = value.get("columns"), value.get("data")
    if not isinstance(names, list) or not isinstance(rows, list):
        return None
    return [dict(zip(names, row, strict=True)) for row in rows]


def _take_columns(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Columns of equal lengths."""
    parts = list(value.values())
    if len(parts) < 2 or not all(
        isinstance(part, list) and len(part) == len(parts[0]) > 1 for part in parts
    ):
        return None
    return [dict(zip(value, row, strict=True)) for row in zip(*parts, strict=True)]


def _take_rows_by_name(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Columns as objects by the number of a row, or rows by their ids, which share a key."""
    parts = list(value.values())
    if len(parts) < 2 or not all(isinstance(part, dict) and part for part in parts):
        return None
    keys = list(parts[0])
    if all(map(str.isdecimal, keys)) and all(part.keys() == parts[0].keys() for part in parts):
        return [{name: column[key] for name, column in value.items()} for key in keys]
    if set.intersection(*map(set, parts)):
        return [{"doc_id": key, **row} for key, row in value.items()]
    return None


def _read_list(path: Path, encoding: str | None) -> pl.DataFrame:
    text = decode_text(read_bytes(path), encoding, "the file", str(path))
    cause: Exception | None = None
    try:
        rows = json.loads(text)
        if rows and all(isinstance(row, dict) for row in rows):
            return pl.DataFrame(rows, infer_schema_length=None)
        what, where = "the JSON list does not hold objects", str(path)
    except json.JSONDecodeError as error:
        what, where, cause = (
            "the JSON cannot be read",
            f"{path}, line {error.lineno}, column {error.colno}",
            error,
        )
    except (RecursionError, ValueError) as error:
        why = (
            "a string holds half a character" if isinstance(error, UnicodeEncodeError) else _BEYOND
        )
        what, where, cause = f"the JSON cannot be read: {why}", str(path), error
    except (PolarsError, TypeError, OverflowError) as error:
        objects = [(number, json.dumps(row)) for number, row in enumerate(rows, start=1)]
        if (frame := _read_ndjson(objects)) is None:
            raise _explain_values(objects, path, "object") from error
        return frame
    raise DataError(
        what,
        where=where,
        expected='a list of objects: [{"text": …, "labels": […]}, …]',
        todo="mend the file",
    ) from cause
