"""A table of text (CSV, TSV, JSON lines) with some cells replaced and rows added, in which every
other byte stays as it is: separator, quotes, ends of lines, byte order mark, blanks in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from plant_cli.data.text_tables import find_separator

BOM = "\ufeff"

_Cell = str | list[str]
_Rows = Sequence[Mapping[str, Any]]  # rows that are added: cells by column


def replace_cells(
    text: str, name: str, before: Sequence[str | None], cells: Mapping[int, str], added: _Rows
) -> str | None:
    """A table with separators, whose column `name` has these cells before, with others in some
    rows, and with rows at its end; None where the text is not read back as those cells.
    """
    separator = find_separator(text.removeprefix(BOM)[:100_000])
    header, *rows = (separator and _split(text, separator)) or [[]]
    names = [_unquote(text[start:end]) for start, end in header]
    if separator is None or names.count(name) != 1 or {*map(len, rows)} - {len(names)}:
        return None
    spans = [row[names.index(name)] for row in rows]
    if [_unquote(text[start:end]) for start, end in spans] != [cell or "" for cell in before]:
        return None
    always = all(text[start : start + 1] == '"' for start, _ in chain(header, *rows[:1]))
    lines = [_write_row(row, names, separator, always=always) for row in added]
    return _append(_put(text, spans, cells, separator), lines)


def _write_row(
    row: Mapping[str, Any], names: Sequence[str], separator: str, *, always: bool
) -> str:
    cells = [str(row.get(name) or "") for name in names]
    return separator.join(_quote(cell, separator, always=always and bool(cell)) for cell in cells)


def _put(
    text: str, spans: Sequence[tuple[int, int]], cells: Mapping[int, str], separator: str
) -> str:
    """A text with other cells in some of the spans; what was quoted stays so."""
    parts, done = [], 0
    for row in sorted(cells):
        start, end = spans[row]
        quoted = text[start : start + 1] == '"'
        parts += [text[done:start], _quote(cells[row], separator, always=quoted)]
        done = end
    return "".join([*parts, text[done:]])


def replace_values(
    text: str, name: str, before: Sequence[Any], cells: Mapping[int, _Cell], added: _Rows
) -> str | None:
    """JSON lines whose key `name` has these values before, with others in some rows, and with
    rows at the end; None where a line that changes is not read back as its value.
    """
    lines = text.splitlines(keepends=True)
    filled = [number for number, line in enumerate(lines) if line.strip(f"{BOM} \t\r\n")]
    if len(filled) != len(before):
        return None
    for row, cell in cells.items():
        replaced = _replace_value(lines[filled[row]], name, before[row], cell)
        if replaced is None:
            return None
        lines[filled[row]] = replaced
    first = lines[filled[0]] if filled else "{}"
    names = list(json.loads(first.strip(f"{BOM} \t\r\n")))
    between = (", ", ": ") if '": ' in first else (",", ":")
    more = [
        json.dumps(
            {one: row.get(one) for one in names}, ensure_ascii="\\u" in text, separators=between
        )
        for row in added
    ]
    return _append("".join(lines), more)


def _replace_value(line: str, name: str, before: Any, cell: _Cell) -> str | None:
    """A line of JSON with another value for a key; None if the key has not this value before."""
    bare = line.removeprefix(BOM)
    known = json.loads(bare)
    if known.get(name) != before:
        return None
    wanted = {**known, name: cell}
    for found in re.finditer(rf"{re.escape(json.dumps(name, ensure_ascii=False))}\s*:(\s*)", bare):
        try:
            _, end = json.JSONDecoder().raw_decode(bare, found.end())
        except ValueError:
            continue
        blank = " " if "," not in (old := bare[found.end() : end]) or ", " in old else ""
        value = json.dumps(cell, ensure_ascii="\\u" in bare, separators=(f",{blank}", ": "))
        replaced = bare[: found.end()] + value + bare[end:]
        if json.loads(replaced) == wanted:
            return line[: len(line) - len(bare)] + replaced
    return None


def _split(text: str, separator: str) -> list[list[tuple[int, int]]] | None:
    """Where the cells of each row stand; None if a quote is not closed. Empty lines are no rows."""
    cell = re.compile(
        rf'"(?:[^"]|"")*"(?=[{re.escape(separator)}\r\n]|\Z)|[^{re.escape(separator)}\r\n]*'
    )
    rows, row, place = [], list[tuple[int, int]](), int(text.startswith(BOM))
    while place < len(text):
        found = cell.match(text, place)
        assert found is not None  # it takes nothing, too
        if found[0][:1] == '"' and (len(found[0]) < 2 or found[0][-1] != '"'):
            return None
        row.append(found.span())
        place = found.end()
        if text[place : place + 1] == separator:
            place += 1
            if place == len(text):
                row.append((place, place))
        else:
            place += 2 if text[place : place + 2] == "\r\n" else 1
            if row != [(row[0][0], row[0][0])]:
                rows.append(row)
            row = []
    return [*rows, row] if row else rows


def _append(text: str, lines: Sequence[str]) -> str:
    """A text with further lines, ended as its first one is."""
    if not lines:
        return text
    end = "\r\n" if text.split("\n", 1)[0].endswith("\r") else "\n"
    closed = text.endswith("\n") or not text
    return text + ("" if closed else end) + end.join(lines) + (end if closed else "")


def _quote(cell: str, separator: str, *, always: bool) -> str:
    if always or any(sign in cell for sign in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _unquote(cell: str) -> str:
    quoted = len(cell) > 1 and cell[0] == cell[-1] == '"'
    return cell[1:-1].replace('""', '"') if quoted else cell
