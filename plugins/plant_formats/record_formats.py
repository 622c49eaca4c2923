"""Formats whose files are known by their content: documents of several lines, and JSON in
lines, lists or one object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from plant_cli.api import DataError, DataSection
from plant_cli.kit import unwrap_rows
from plant_formats.corpus_reader import (
    CorpusReader,
    find_example,
    first_lines,
)
from plant_formats.line_formats import (
    Fault,
    Line,
    LineFormat,
    NumberedLabels,
    PassedOver,
)

Numbered = tuple[int, str]  # a line, or a record of several, with the number of its first line
HEAD_LINES = 5_000  # lines in which a first record is looked for
NEAR_LINES = 100  # those among which the first line of a record is looked for
_SHOWN = 3  # labels of an example
_OWN_NAMES = (  # of texts, labels and ids
    ("text", "data", "textContent"),
    (
        "labels",
        "label",
        "cats",
        "accept",
        "entities",
        "annotations",
        "completions",
        "annotation",
        "classificationAnnotations",
    ),
    (None, "id"),
)


@dataclass(frozen=True)
class RecordFormat(LineFormat):
    """A format whose files are known by their content alone; documents may take several lines."""

    cut: Callable[[Iterable[Numbered]], Iterator[Numbered]] = iter  # lines into records
    whole: str = "one complete JSON list"  # what a file is whose records can be told apart
    has_columns: bool = (
        False  # whether it is a table if the user names other columns than it reads itself
    )

    def records(
        self, reader: CorpusReader, path: Path, labels: NumberedLabels
    ) -> Iterator[tuple[int, int, str]]:
        """See `LineFormat.records`."""
        try:
            yield from (
                (number, *record)
                for number, record in enumerate(self.cut(reader.lines(path)), start=1)
            )
        except Fault as fault:  # what follows cannot be told apart
            raise DataError(
                fault.why,
                where=f"{path}, line {fault.line:,}, column {fault.column}",
                expected=self.whole,
                todo="mend the file, or make it again",
            ) from fault

    def recognise(self, data: DataSection) -> str | None:
        """The title of what wrote the file, and the labels of its first document that has any."""
        names = (data.text_column, data.labels_column, data.id_column)
        if self.has_columns and any(
            name not in own for name, own in zip(names, _OWN_NAMES, strict=True)
        ):
            return None
        fits = self.fits or (lambda path, lines: False)
        example = find_example(data, lambda path: bool(fits(path, first_lines(path, HEAD_LINES))))
        if example is None:
            return None
        lines = first_lines(example, HEAD_LINES)
        said = fits(example, lines)
        title = said if isinstance(said, str) else self.title
        line = next((line for line in self._parse_first(lines) if line.labels), None)
        if line is None:
            return title
        shown = ", ".join(
            str(line.titles.get(str(label)) or label) for label in line.labels[:_SHOWN]
        )
        return f"{title} (labels of the first document: {shown})"

    def _parse_first(self, lines: list[str]) -> Iterator[Line]:
        """The documents among the first lines, which may end within one."""
        with suppress(Fault):
            for _, record in islice(self.cut(enumerate(lines, start=1)), NEAR_LINES):
                with suppress(Fault, PassedOver):
                    line = self.parse(record, lines[0])
                    yield from [] if line is None else [line]


def known_by(fits: Callable[[list[str]], object]) -> dict[str, Any]:
    """The two fields of a format that say which files it has, from a function of their first
    lines.
    """
    return {
        "fits": lambda path, lines: bool(lines) and fits(lines),
        "accepts": lambda path: bool((lines := first_lines(path, HEAD_LINES)) and fits(lines)),
    }


_OPENING = re.compile(r'\s*(?:\{\s*"[^"]*"\s*:\s*)?\[')  # of a list, or of an object with a list
_BETWEEN = re.compile(r"[\s,]*")


def json_objects(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """The objects (or lists) of JSON lines, of a list, or of the list that is the only value of
    an object.
    """
    held, place, wait, opened = "", 0, 0, False
    rows = iter(lines)
    for number, line in chain(rows, [(0, "")]):
        if not opened and not held.strip() and _is_row(line):
            yield from _take_rows(number, line, rows)
            return
        place, held = place if held.strip() else number, f"{held}{line}\n"
        opening = None if opened else _OPENING.match(held)
        if (number and len(held) < wait) or not (opened or opening):
            continue  # an object of many lines is not tried at each of them
        opened = True
        held, place = yield from _cut_objects(held, opening.end() if opening else 0, place, number)
        wait = 2 * len(held)
    ended = held.startswith("]") and _ends_object(held[1:])
    if not ended and held.strip(" \t\r\n,]}"):
        yield from _take_rest(held, place, opened)


def _take_rows(number: int, line: str, rows: Iterator[Numbered]) -> Iterator[Numbered]:
    """An object by itself and those on the next lines; the only one may hold a list of them."""
    filled = ((later, text) for later, text in rows if text.strip())
    second = next(filled, None)
    yield from [(number, line), second] if second else _unwrap(number, line)
    yield from filled


def _cut_objects(
    held: str, end: int, place: int, number: int
) -> Generator[Numbered, None, tuple[str, int]]:
    """The objects (or lists) that are whole, the first from line `place` and others from line
    `number`; then what is left behind them, and the line of what comes next.
    """
    while held.startswith(("{", "["), start := _BETWEEN.match(held, end).end()):  # type: ignore[union-attr]
        try:
            _, end = json.JSONDecoder().raw_decode(held, start)
        except (ValueError, RecursionError):
            break
        yield place, held[start:end]
        place = number
    return held[end:].lstrip(" \t\r\n,"), place


def _take_rest(held: str, place: int, opened: bool) -> Iterator[Numbered]:
    """What is left at the end of a file, which may be one object of many lines; `Fault` if it is
    no JSON.
    """
    try:
        objects = [*_decode_all(held.lstrip())]
        alone = not opened and len(objects) == 1
        yield from _unwrap(place, objects[0]) if alone else ((place, one) for one in objects)
    except json.JSONDecodeError as error:
        raise Fault(
            f"the JSON cannot be read: {error.msg}", error.colno, place + error.lineno - 1
        ) from error
    except RecursionError as error:
        raise Fault(
            "the JSON cannot be read: lists within lists beyond measure", 1, place
        ) from error


def _decode_all(text: str) -> Iterator[str]:
    """The values that stand behind one another."""
    decoder, start = json.JSONDecoder(), 0
    while start < len(text):
        end = decoder.raw_decode(text, start)[1]
        yield text[start:end]
        start = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]


def _ends_object(rest: str) -> bool:
    """Whether this ends an object that began with a list: further keys say something of it."""
    try:
        return isinstance(json.loads(f'{{"": 0{rest}'), dict)
    except (ValueError, RecursionError):
        return False


def _unwrap(place: int, record: str) -> Iterator[Numbered]:
    """The objects of a list that stands in an object beside what is said of it; else the object."""
    try:
        value = json.loads(record)
        rows = unwrap_rows(value) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        rows = None
    if rows is None:
        yield place, record
    else:
        yield from ((place, json.dumps(row, ensure_ascii=False)) for row in rows)


def _is_row(line: str) -> bool:
    """Whether a first line is an object by itself: the file is JSON lines."""
    if not line.lstrip().startswith("{"):
        return False
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line.strip() != "{" and not _OPENING.match(line)
    return not (len(value) == 1 and isinstance(next(iter(value.values())), list))
