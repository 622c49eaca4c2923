"""Text tables larger than memory should hold: pieces of whole rows, each parsed as a table of its own, wait in files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api.errors import DataError
from plant_cli.kit.blocks_of_text import Piece, cut_lines, cut_rows, end_of_rows, read_blocks
from plant_cli.kit.rows import BadRows
from plant_cli.kit.salvage import keep_lines, keep_rows
from plant_cli.kit.spool import spool
from plant_cli.kit.text_tables import (
    Place,
    explain_values,
    find_separator_of,
    mend_line_ends,
    parse_lines,
    parse_rows,
    parse_text,
    refuse_other_encodings,
    refuse_repeated_names,
)

Schema = Mapping[str, pl.DataType]


def spool_table(path: Path, codec: str, bad: BadRows | None) -> pl.LazyFrame | None:
    """Read JSON lines, CSV or TSV block by block; what is given, said and refused is what `text_tables` does with the whole file.

    One thing is refused earlier: numbers beside true and false in a column, even if a later piece makes it a column of strings.

    Args:
        path: the file.
        codec: of its text, as `find_encoding` gives it.
        bad: takes the rows that cannot be read; without it the first such row is an error.

    Returns:
        The table, read from files when collected; None for a JSON list, for the line ends of old Macs, for a header
        or a line as large as a block: these are not cut.
    """
    first = next(read_blocks(path, codec), b"")
    start = first[:4096].lstrip()[:1]
    if start == b"[" or mend_line_ends(first) is not first or b"\n" not in first:
        return None
    lenient = None if bad is None or bad.strict else bad
    if start == b"{":
        frames = _spool_lines(partial(cut_lines, path, codec), lenient)
        if not frames:
            raise DataError(
                "no line of the file can be read", where=str(path), expected="a JSON object on each line", todo="make the file again"
            )
        return pl.concat(frames)
    separator, content, skipped = find_separator_of(first)
    if separator is None:
        parse_text(first, path)  # says why it is no table
        return None
    header = content[: end_of_rows(content, separator, keep=1)]
    if not header.endswith(b"\n"):
        return None
    top = Place(path, lines=skipped)
    refuse_other_encodings(header, top)
    refuse_repeated_names(header, top, separator)
    begin = replace(top, lines=skipped + header.count(b"\n"), bytes=len(first) - len(content) + len(header))
    return pl.concat(spool(_parse_rows(cut_rows(path, codec, separator, begin), header, separator, lenient)))


def _parse_rows(pieces: Iterable[Piece], header: bytes, separator: str, bad: BadRows | None) -> Iterator[pl.DataFrame]:
    """The header is set before the rows of each piece."""
    lines, rows, empty = header.count(b"\n"), 0, True
    for place, piece in pieces:
        own = replace(place, lines=place.lines - lines, rows=rows, bytes=place.bytes - len(header))
        frame, _ = _read(
            lambda content, place: parse_rows(content, separator, place),
            lambda content, place, bad: keep_rows(content, separator, place, bad),
            (own, header + piece),
            bad,
        )
        yield frame
        rows, empty = rows + frame.height, False
    if empty:
        yield parse_rows(header, separator, Place(Path()))


def _read(
    parse: Callable[[bytes, Place], pl.DataFrame], keep: Callable[[bytes, Place, BadRows], bytes], piece: Piece, bad: BadRows | None
) -> tuple[pl.DataFrame, bytes]:
    """A piece as a table, and its content; if it cannot be read, without the rows that are to blame."""
    place, content = piece
    try:
        refuse_other_encodings(content, place)
        return parse(content, place), content
    except DataError:
        if bad is None or b"\0" in content:
            raise
        before = len(bad.rows)
        sound = keep(content, place, bad)
        if len(bad.rows) == before:
            raise
    return parse(sound, place) if sound.strip() else pl.DataFrame(), sound


class _Unlike(Exception):
    """A piece has other columns or types than the first."""


def _spool_lines(cut: Callable[[], Iterable[Piece]], bad: BadRows | None) -> Sequence[pl.LazyFrame]:
    """Pieces in one schema. Mostly each says the same; else all are read once more, since only all together say what the types are."""
    before = 0 if bad is None else len(bad.rows)
    try:
        return spool(frame for frame, _, _ in _parse_lines(cut(), bad, alike=True))
    except _Unlike:
        schema = _join_schemas(cut, bad if bad is None else replace(bad, rows=[]))
        if bad is not None:
            del bad.rows[before:]
    return spool(parse_lines(content, place, schema) for _, content, place in _parse_lines(cut(), bad))


def _parse_lines(pieces: Iterable[Piece], bad: BadRows | None, *, alike: bool = False) -> Iterator[tuple[pl.DataFrame, bytes, Place]]:
    """Each piece as a table, its sound content, and its place; `_Unlike` if they shall be `alike` and are not."""
    first: Schema | None = None
    for place, content in pieces:
        if content.strip():
            frame, sound = _read(parse_lines, keep_lines, (place, content), bad)
            if not sound.strip():
                continue
            first = frame.schema if first is None else first
            if alike and frame.schema != first:
                raise _Unlike
            yield frame, sound, place


def _join_schemas(cut: Callable[[], Iterable[Piece]], bad: BadRows | None) -> Schema:
    """The schema that polars finds in all pieces together; `DataError` if there is none."""
    rows = dict.fromkeys(_show_row(frame.schema) for frame, _, _ in _parse_lines(cut(), bad))
    try:
        return _find_schema(rows)
    except PolarsError as error:
        raise _explain(cut(), bad) from error


def _find_schema(rows: Iterable[str]) -> Schema:
    return pl.read_ndjson("\n".join(rows).encode(), infer_schema_length=None).schema


def _explain(pieces: Iterable[Piece], bad: BadRows | None) -> DataError:
    """The error about the first line whose types do not fit those before it."""
    rows: dict[str, None] = {}
    for frame, content, place in _parse_lines(pieces, bad):
        before = list(rows)
        rows[_show_row(frame.schema)] = None
        try:
            _find_schema(rows)
        except PolarsError:
            lines = [line for line in enumerate(content.decode().split("\n"), start=1) if line[1].strip()]
            return explain_values([*((1 - place.lines, row) for row in before), *lines], place)
    raise AssertionError("all pieces together have no schema, so some piece does not fit those before it")


def _show_row(schema: Schema) -> str:
    return json.dumps({name: _show_value(kind) for name, kind in schema.items()})


def _show_value(kind: Any) -> object:
    """A value from which polars takes the type that it is of."""
    if isinstance(kind, pl.List):
        return [] if kind.inner == pl.Null else [_show_value(kind.inner)]
    if isinstance(kind, pl.Struct):
        return {field.name: _show_value(field.dtype) for field in kind.fields}
    if kind == pl.Null:
        return None
    if kind == pl.Boolean:
        return True
    if kind.is_integer():
        return 1
    return 1.5 if kind.is_float() else "x"
