"""Text files read block by block, in UTF-8, and cut into pieces of whole rows."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from plant_cli.api.errors import DataError
from plant_cli.kit.compression import open_bytes
from plant_cli.kit.text_tables import Place

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
