"""CSV and TSV that are not as they should be: rows whose quotes do not fit, and cells that
would be formulas.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

QUOTES_EXPECTED = 'fields with quotes written as "…", and quotes inside them doubled'
LINES_TRIED = 1000  # lines that a row whose quotes do not fit may have
_LONGEST, _WIDEST = 1 << 17, 20  # its characters and fields: every way to cut it is tried
_FEWEST = 3  # lines of a field that swallowed rows
_FEW = 5  # of more lines, some may be no rows by themselves
_MOST = 0.8  # of the lines of a field are rows by themselves: it swallowed them
_RECURRING = 0.5  # of the parts of cells of such rows are in other rows, too
_WAYS = (
    (r'(?:[^"\\]|\\.|"")*', r"quotes within a field are written as \""),
    (".*?", "quotes within a field are not doubled, or blanks stand beside quotes"),
)
_BACKSLASH = "separators and line ends within a field stand behind a backslash"
_BARE = "quotes are part of the text"


@cache
def _row_pattern(separator: str, width: int, text: str) -> re.Pattern[str]:
    """A row of so many fields, each with this `text` in quotes, or bare."""
    mark = re.escape(separator)
    return re.compile(mark.join([rf'(?: *"({text})" *|((?! *")[^{mark}\n]*))'] * width), re.DOTALL)


def reread(lines: Sequence[str], separator: str, width: int) -> tuple[list[str], int, str] | None:
    r"""A row whose quotes do not fit, from its first line on: its fields, how many lines it has,
    and how its quotes are meant.

    It is read with `\"` for a quote, if that occurs; else with quotes that are not doubled, over as
    few lines as make all its fields; else without quoting, which comes first between tabs. None: in
    no way has it as many fields as the header.
    """
    bare = None if width != len(row := read_bare(lines[0], separator)) else (row, 1, _BARE)
    for text, how in _WAYS if width <= _WIDEST else ():
        if text == _WAYS[0][0] and not any('\\"' in line for line in lines):
            continue
        if text == _WAYS[1][0] and separator == "\t" and bare is not None:
            break
        found = _match_row(lines, _row_pattern(separator, width, text))
        if found is not None:
            match, count = found
            pairs = [match.group(2 * place + 1, 2 * place + 2) for place in range(width)]
            cells = [plain if quoted is None else _unquote(quoted) for quoted, plain in pairs]
            return cells, count, how
    return bare


def _match_row(lines: Sequence[str], pattern: re.Pattern[str]) -> tuple[re.Match[str], int] | None:
    """As few lines as make a row, and how many; None if no number of them does."""
    text = ""
    for count, line in enumerate(lines[:LINES_TRIED], start=1):
        text += line
        if len(text) > _LONGEST:
            break
        if '"' in line and (match := pattern.fullmatch(text.rstrip("\r\n"))):
            return match, count
    return None


def is_escaped(line: str, separator: str) -> bool:
    r"""Whether a line holds `\,` (its separator) or ends in a backslash, as MySQL writes
    separators and line ends within a field.
    """
    return f"\\{separator}" in line or line.rstrip("\r\n").endswith("\\")


def read_escaped(
    lines: Sequence[str], separator: str, width: int
) -> tuple[list[str], int, str] | None:
    """A row with backslashes before separators and line ends within its fields, as `reread`
    gives it.
    """
    mark = re.escape(separator)
    pattern, text = re.compile(mark.join([rf"((?:\\.|[^\\{mark}\n])*)"] * width), re.DOTALL), ""
    for count, line in enumerate(lines[:LINES_TRIED], start=1):
        text += line
        if match := pattern.fullmatch(text.rstrip("\r\n")):
            return (
                [re.sub(rf'\\([{mark}"\\\n])', r"\1", cell) for cell in match.groups()],
                count,
                _BACKSLASH,
            )
        if not line.rstrip("\r\n").endswith("\\"):
            return None
    return None


def read_bare(line: str, separator: str) -> list[str]:
    """The fields of a line without quoting."""
    return line.rstrip("\r\n").split(separator)


def _unquote(text: str) -> str:
    return (
        re.sub(r'\\(["\\])', r"\1", text).replace('""', '"')
        if '\\"' in text
        else text.replace('""', '"')
    )


def is_row(line: str, separator: str, width: int) -> bool:
    """Whether a line is a row by itself, with quotes that fit."""
    try:
        return len(next(csv.reader([line], delimiter=separator, strict=True), [])) == width
    except csv.Error:
        return False


def swallows(
    lines: Sequence[str], separator: str, width: int, others: Sequence[Counter[str]]
) -> bool:
    """Whether a quoted field swallowed rows, by the lines of its row.

    They have as many fields as the header, and half of the parts of their cells are among those of
    other rows (see `count_parts`), with at least two characters for each row that is whole in it.
    Of many lines between tabs, which texts seldom have, that number is enough.
    """
    rows = [read_bare(line, separator) for line in lines]
    whole = sum(len(row) == width for row in rows)
    least = len(rows) if len(rows) <= _FEW else _MOST * len(rows)
    if width < 2 or len(rows) < _FEWEST or whole < least:
        return False
    if separator == "\t" and _FEW < len(rows) == whole:
        return True
    parts = [
        (place, part)
        for place, cell in _cells_inside(rows)
        if place < width
        for part in _split_parts(cell)
    ]
    known = [part for place, part in parts if others[place][part]]
    enough = len("".join(known)) >= max(3, 2 * (len(rows) - 2))
    return enough and len(known) >= _RECURRING * len(parts)


def _cells_inside(rows: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """The cells that a quote within the first row took in, with their columns: those behind it,
    and on the last line those before its column.
    """
    opened = next((place for place, cell in enumerate(rows[0]) if cell.lstrip().startswith('"')), 0)
    inside = [
        (place, cell) for row in rows[1:-1] for place, cell in enumerate(row) if place != opened
    ]
    return inside + [*enumerate(rows[0])][opened + 1 :] + [*enumerate(rows[-1])][:opened]


def _split_parts(cell: str) -> list[str]:
    """What recurs in cells of labels: a label, in quotes or not."""
    return [part for part in re.split(r"[;|]", cell.strip('"')) if part]


def count_parts(head: str, separator: str, width: int) -> list[Counter[str]]:
    """By column: what is in rows of a single line at the beginning of a table, and how often."""
    parts: list[Counter[str]] = [Counter() for _ in range(width)]
    rows, last = csv.reader(head.splitlines(keepends=True), delimiter=separator), 0
    for row in rows:
        if len(row) == width and rows.line_num == last + 1:
            for place, cell in enumerate(row):
                parts[place].update(_split_parts(cell))
        last = rows.line_num
    return parts


_FORMULA = re.compile(r"[=+\-@\t\r]")
_SIGNED = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?%?|[-+]?(?:inf|nan)")
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def guard_cell(text: str) -> str:
    """A cell for a file that people open: `'` before what a spreadsheet would take for a
    formula, control characters written out.
    """
    shown = _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    return f"'{shown}" if _FORMULA.match(text) and not _SIGNED.fullmatch(text) else shown


def unguard_cells(labels: Iterable[str]) -> dict[str, str]:
    """Labels by the cells that `guard_cell` makes of them, where these are others."""
    return {guarded: label for label in labels if (guarded := guard_cell(label)) != label}
