"""The texts that `plant suggest` labels: a table, a folder of text files, one text, or standard
input.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import polars as pl

from plant_cli.api import DataError, DataSection, Reporter, UsageError, near_names
from plant_cli.api.errors import ColumnQuestion, first_names
from plant_cli.data.lines import (
    BadRows,
    bare_name,
    decode_text,
    find_fallback,
    read_bytes,
    read_lines,
)
from plant_cli.data.office_files import DOCUMENT_ENDINGS, read_document
from plant_cli.data.shares import Shard
from plant_cli.data.tables import collect, count_rows, join_columns, scan_table
from plant_cli.data.text_tables import peek_names, shorten, show_names

STDIN, STREAM = "-", "standard input"
PEEKED = 1 << 16  # characters in which the first line of a table is looked for
_OBJECTS = re.compile(r'\s*(?:\[\s*)?\{\s*"')
LONG_TEXT = 1_000_000  # characters from which a text is perhaps a collection: a book has fewer
IDS_NAMED = 5  # ids in a message
USUAL_TEXT = DataSection.model_fields["text_column"].default
_ENDINGS_SHOWN = ".txt, .pdf, .docx and .html"

NumberedBytes = tuple[int, bytes]  # a line and its number, from 1
Pair = tuple[str, str]  # id and text of a document

Block = tuple[list[str], list[str]]
"""Ids and texts of some documents."""


@dataclass(frozen=True, kw_only=True)
class NewTexts:
    """Texts to label, some at a time."""

    blocks: Iterator[Block]
    total: int | None  # how many there are; None: a stream, which is answered as it comes

    def take(self, shard: Shard) -> NewTexts:
        """Those of one share: consecutive ones, so that the answers to all shares, one after the
        other, are those to all texts. `UsageError` for a stream.
        """
        if self.total is None:
            raise UsageError(
                "a stream has no shares, since nobody knows how many texts will come",
                where=f"--shard {shard}",
                expected="a table, or a folder of texts",
                todo="write the texts into a table first, or leave --shard out",
            )
        part = shard.part(self.total)
        return NewTexts(blocks=_keep_rows(self.blocks, part), total=len(part))


def _keep_rows(blocks: Iterator[Block], rows: range) -> Iterator[Block]:
    first = 0
    for ids, texts in blocks:
        kept = slice(max(0, rows.start - first), max(0, rows.stop - first))
        first += len(ids)
        if ids[kept]:
            yield ids[kept], texts[kept]
        if first >= rows.stop:
            return


@dataclass(frozen=True, kw_only=True)
class TextReader:
    """Reads texts that are to be labelled."""

    # how the corpus of the run was read: the names of its columns hold, and its encoding where
    # texts are not UTF-8
    data: DataSection
    reporter: Reporter  # takes warnings of what is odd but not fatal
    text_column: str | None = (
        None  # another name for the column of texts, or several joined by commas
    )
    id_column: str | None = None  # another name for the column of ids
    encoding: str | None = (
        None  # of the texts; None: UTF-8, or that of the run's corpus where they are not UTF-8
    )
    lines: bool = False  # whether each line of a text is a document
    recursive: bool = False  # whether the folders in a folder are read, too
    guess: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})
    """The options `text_column` and `id_column` of a table that has not those of the run's corpus;
    one that nobody knows is left out.
    """

    @property
    def _texts(self) -> str:
        return self.text_column or self.data.text_column

    def read(self, path: str) -> Block:
        """Ids and texts of all documents."""
        ids, texts = zip(*self.open(path).blocks, strict=True)
        return list(chain(*ids)), list(chain(*texts))

    def open(self, path: str, size: int = 1000) -> NewTexts:
        """The documents, at most `size` at a time."""
        file = Path(path)
        if path == STDIN:
            found = self._open_stream(sys.stdin.buffer, size)
        elif self.lines and _is_text(file):
            found = NewTexts(
                blocks=_cut(_number(read_lines(file, BadRows(strict=True), self.encoding)), size),
                total=None,
            )
        elif file.is_dir() or _is_document(file):
            files = self._find_texts(file) if file.is_dir() else [file]
            stems = [Path(bare_name(one)).stem for one in files]
            counts, names = (
                Counter(stems),
                [str(one.relative_to(file)) if file.is_dir() else one.name for one in files],
            )
            ids = [
                stem if counts[stem] == 1 else name for stem, name in zip(stems, names, strict=True)
            ]
            texts = (self._read_file(one, alone=not file.is_dir()) for one in files)
            found = NewTexts(blocks=_cut(zip(ids, texts, strict=True), size), total=len(files))
        else:
            found = self._open_rows(path, size)
        return replace(found, blocks=self._warn_of_odd(found.blocks))

    def _warn_of_odd(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The same blocks, and then a warning of empty texts, and of those that are perhaps
        many.
        """
        empty = total = long = 0
        for ids, texts in blocks:
            empty, total = empty + sum(not text.strip() for text in texts), total + len(texts)
            long += sum(len(text) > LONG_TEXT for text in texts)
            yield ids, texts
        if empty:
            self.reporter.warn(f"{empty} of {total} texts are empty: nothing is suggested for them")
        if long:
            self.reporter.warn(
                f"{long} of {total} texts have more than {LONG_TEXT:,} characters; with --lines "
                "each line is a text"
            )

    def _find_texts(self, folder: Path) -> list[Path]:
        """The texts of a folder; a warning names what else is in it, and a level below."""
        below = folder.rglob("[!.]*") if self.recursive else folder.glob("[!.]*/[!.]*")
        present = sorted({path for path in (*folder.glob("[!.]*"), *below) if path.is_file()})
        texts = [
            path
            for path in present
            if (self.recursive or path.parent == folder) and _is_document(path)
        ]
        kept = set(texts)
        others = [str(path.relative_to(folder)) for path in present if path not in kept]
        if others and texts:
            shown = first_names(others, IDS_NAMED)
            where = (
                ""
                if self.recursive
                else " in the folder itself; --recursive reads those below, too"
            )
            self.reporter.warn(
                f"{len(others):,} files of {folder} are passed over: {shown} (texts are "
                f"{_ENDINGS_SHOWN} files{where})"
            )
        if not texts:
            todo = (
                "name a table, or the folder in which the texts are; write texts of other "
                "documents into .txt files first"
            )
            names = sorted(one.name for one in folder.iterdir())
            shown = f"{folder}: {first_names(names, IDS_NAMED)}" if names else str(folder)
            expected = f"files such as report.txt in it ({_ENDINGS_SHOWN})"
            raise DataError(
                "the folder holds no .txt files", where=shown, expected=expected, todo=todo
            )
        return texts

    def _read_file(self, path: Path, *, alone: bool) -> str:
        """The text of a file; of several files one that cannot be read is empty, with a warning."""
        try:
            if path.suffix.lower() in DOCUMENT_ENDINGS:
                return read_document(path, lambda content: self._decode(content, str(path)))
            return self._decode(read_bytes(path, "a text file"), str(path))
        except DataError as error:
            if alone:
                raise
            self.reporter.warn(f"{path} is not read: {error.what}")
            return ""

    def _decode(self, content: bytes, where: str) -> str:
        return decode_text(
            content, self.encoding or find_fallback(content, self.data.encoding), "the text", where
        )

    def _open_stream(self, stream: BinaryIO, size: int) -> NewTexts:
        """JSON lines, answered as they come; a table: a JSON list, or a first line that names
        the column of texts; else one text.
        """
        lines = _Arriving(stream)
        if self.lines:
            return NewTexts(blocks=self._answer(lines, size, self._read_plain), total=None)
        first = _parse_object(lines.first)[0]
        if first and set(DataSection.named(self._texts, list(first))) <= set(first):
            self.reporter.note(f"{STREAM} is read as JSON lines, a document in each")
            return NewTexts(blocks=self._answer(lines, size, self._read_objects), total=None)
        text = self._decode(b"".join(chain.from_iterable(lines)), STREAM)
        names = peek_names(text[:PEEKED])
        if not (_OBJECTS.match(text) or set(DataSection.named(self._texts, names)) <= set(names)):
            count = sum(1 for line in text.splitlines() if line.strip())
            if count > 1:
                self.reporter.note(
                    f"{STREAM} is read as one text of {count} lines; with --lines each line is a "
                    "text; JSON lines work, too"
                )
            return NewTexts(blocks=iter([(["text"], [text])]), total=1)
        with TemporaryDirectory() as folder:
            file = Path(folder) / STREAM
            file.write_text(text, "utf-8")
            try:
                found = replace(self, encoding=None)._open_rows(str(file), size)
                found = replace(found, blocks=iter(list(found.blocks)))  # before the file is gone
            except DataError as error:
                where = error.where.replace(f"{folder}/", "")
                raise DataError(
                    error.what, where=where, expected=error.expected, todo=error.todo
                ) from error
        self.reporter.note(f"{STREAM} is read as a table of {found.total} texts")
        return found

    def _answer(
        self, lines: _Arriving, size: int, read: Callable[[Iterable[NumberedBytes]], Iterator[Pair]]
    ) -> Iterator[Block]:
        """The documents of the lines that have come, without waiting for more."""
        number = 0
        for arrived in lines:
            numbered = list(enumerate(arrived, start=number + 1))
            number += len(arrived)
            yield from _cut(read(numbered), size)

    def _read_plain(self, lines: Iterable[NumberedBytes]) -> Iterator[Pair]:
        return _number(
            (number, self._decode(line, f"{STREAM}, line {number}").rstrip("\r\n"))
            for number, line in lines
        )

    def _read_objects(self, lines: Iterable[NumberedBytes]) -> Iterator[Pair]:
        """A line that cannot be read is an empty document, since whoever sends the lines waits
        for an answer to each.
        """
        ids = self.id_column or self.data.id_column or "doc_id"
        for number, line in lines:
            if not line.strip():
                continue
            entry, why = _parse_object(line)
            names = DataSection.named(self._texts, list(entry))
            cells = [entry.get(name) for name in names]
            if not why and not set(names) <= set(entry):
                why = (
                    "there is no "
                    f"'{shorten(next(name for name in names if name not in entry))}'; it has: "
                    f"{show_names(entry)}"
                )
            elif not why and not all(isinstance(cell, str | int | float | None) for cell in cells):
                why = "its text is a list or an object"
            if why:
                self.reporter.warn(f"{STREAM}, line {number} cannot be read: {why}")
            one, parts = (
                entry.get(ids),
                [] if why else [str(cell) for cell in cells if cell is not None],
            )
            text = "\n".join(
                parts if len(cells) == 1 else filter(None, map(str.strip, parts))
            )  # as `join_columns` does
            yield str(number) if one is None or isinstance(one, list | dict) else str(one), text

    def _open_rows(self, path: str, size: int) -> NewTexts:
        usual = (
            None
            if self.encoding or not self.data.encoding
            else find_fallback(read_bytes(Path(path), "a table"), self.data.encoding)
        )
        if usual:
            self.reporter.note(
                f"{path} is not UTF-8: it is read in {usual}, as the run's corpus was (--encoding "
                "names another)"
            )
        frame = scan_table(Path(path), encoding=self.encoding or usual)
        schema = frame.collect_schema()
        names = self._name_texts(path, list(schema))
        for text in names:
            if text not in schema:
                near = near_names(text, map(shorten, schema))
                raise DataError(
                    f"there is no column '{shorten(text)}'",
                    where=path,
                    expected="a column of texts, called as in the run's corpus; the table has: "
                    f"{show_names(schema)}",
                    todo=f"name it with --text-column: {near} (the first line of a table names "
                    "its columns)",
                )
        total = count_rows(frame, path)
        if not total:
            raise DataError(
                "the table has no rows",
                where=path,
                expected="at least one text",
                todo="check the file",
            )
        _refuse_unreadable(schema, names, path)
        ids, texts = (
            self._identify(frame, names, path, total),
            frame.select(join_columns(names).alias("text")),
        )

        def read() -> Iterator[Block]:
            for start in range(0, total, size):
                yield (
                    ids[start : start + size],
                    collect(texts.slice(start, size), path)["text"]
                    .cast(str)
                    .fill_null("")
                    .to_list(),
                )

        return NewTexts(blocks=read(), total=total)

    def _name_texts(self, path: str, columns: Sequence[str]) -> list[str]:
        """The columns of texts: those of the run's corpus, else found as `train` finds them."""
        names = DataSection.named(self._texts, columns)
        if self.text_column is not None or set(names) <= set(columns):
            return names
        found = USUAL_TEXT if USUAL_TEXT in columns else self.guess(path).get("text_column")
        if found is None:
            return names
        self.reporter.note(
            f"{path} has no column '{next(name for name in names if name not in columns)}': texts "
            f"are the column {found.replace(',', ' and ')} (--text-column)"
        )
        return DataSection.named(found, columns)

    def _name_ids(self, path: str, columns: Sequence[str]) -> str | None:
        """The column of ids: that of the run's corpus, else found as `train` finds it; None for
        `doc_id`, and where there is none.
        """
        name = self.data.id_column
        if (name or "doc_id") in columns:
            return name
        found = "doc_id" if "doc_id" in columns else None
        if found is None:
            with suppress(ColumnQuestion):  # about texts, which are known
                found = self.guess(path).get("id_column")
        if found is None:
            return name
        self.reporter.note(
            f"{path} has no column '{name or 'doc_id'}': ids are the column {found} (--id-column)"
        )
        return found

    def _identify(
        self, frame: pl.LazyFrame, texts: Sequence[str], path: str, total: int
    ) -> list[str]:
        """The id of each row: its cell in the column of ids, else its number, which is never
        taken in silence where there may be ids.
        """
        rows, schema = [str(row) for row in range(1, total + 1)], frame.collect_schema()
        wanted = self.id_column or self._name_ids(path, list(schema))
        column = wanted or "doc_id"
        if column not in schema:
            if wanted is not None:
                said = "as --id-column says" if self.id_column else "as in the corpus of the run"
                raise DataError(
                    f"there is no column '{column}'",
                    where=path,
                    expected=f"the ids of the texts, {said}; "
                    + near_names(column, map(shorten, schema)),
                    todo="name the column of the ids with --id-column, or rename it",
                )
            others = [name for name in schema if name not in (*texts, self.data.labels_column)]
            if others:
                plain = [name for name in others if not schema[name].is_nested()]
                counts = (
                    collect(frame.select(pl.col(plain).n_unique()), path).row(0) if plain else ()
                )
                unlike = [name for name, count in zip(plain, counts, strict=True) if count == total]
                named = ", ".join(f"'{shorten(name)}'" for name in unlike or others)
                self.reporter.warn(
                    "there is no column 'doc_id': the texts are numbered by row; --id-column "
                    f"names their ids, perhaps {named}"
                )
            return rows
        _refuse_unreadable(schema, [column], path)
        cells = collect(frame.select(column), path)[column].cast(str).to_list()
        missing = sum(not cell for cell in cells)
        if missing:
            self.reporter.warn(
                f"{missing} of {total} texts have no id in '{column}': the number of the row is "
                "taken instead"
            )
        ids = [cell or row for cell, row in zip(cells, rows, strict=True)]
        repeated = {name: count for name, count in Counter(ids).items() if count > 1}
        if repeated:
            shown = first_names([f"'{name}'" for name in repeated], IDS_NAMED)
            self.reporter.warn(
                f"{sum(repeated.values())} of {total} texts share their id with another: {shown}"
            )
        return ids


class _Arriving:
    """The lines of a stream, as many at a time as have come."""

    def __init__(self, stream: BinaryIO) -> None:
        self._chunks = iter(lambda: stream.read1(PEEKED), b"")  # type: ignore[attr-defined]
        parts = [next(self._chunks, b"")]
        while b"\n" not in parts[-1] and (more := next(self._chunks, b"")):
            parts.append(more)
        self._waiting = b"".join(parts)
        self.first = self._waiting.partition(b"\n")[0]

    def __iter__(self) -> Iterator[list[bytes]]:
        """Whole lines with their ends; the last one may have none."""
        parts: list[bytes] = []
        for chunk in chain([self._waiting], self._chunks):
            parts.append(chunk)
            if b"\n" in chunk:
                whole, end, rest = b"".join(parts).rpartition(b"\n")
                yield re.findall(b"[^\n]*\n", whole + end)
                parts = [rest]
        if last := b"".join(parts):
            yield [last]


def _cut(documents: Iterable[Pair], size: int) -> Iterator[Block]:
    rest = iter(documents)
    while some := list(islice(rest, size)):
        yield [one for one, _ in some], [text for _, text in some]


def _parse_object(line: bytes) -> tuple[dict[str, Any], str]:
    """A JSON object, and what is wrong with the line; the object is then empty."""
    try:
        entry = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}, "it is not JSON in UTF-8"
    return (entry, "") if isinstance(entry, dict) else ({}, "it is no JSON object")


def _number(lines: Iterable[tuple[int, str]]) -> Iterator[Pair]:
    return ((str(number), line) for number, line in lines if line.strip())


def _is_document(path: Path) -> bool:
    return _is_text(path) or path.suffix.lower() in DOCUMENT_ENDINGS


def _is_text(path: Path) -> bool:
    return Path(bare_name(path)).suffix.lower() == ".txt"


def _refuse_unreadable(schema: pl.Schema, names: Sequence[str], where: str) -> None:
    for name in names:
        dtype = schema[name]
        if dtype.is_nested() or str(dtype).startswith(("Binary", "Duration")):
            raise DataError(
                f"the column '{name}' holds "
                f"{'lists or objects' if dtype.is_nested() else 'bytes or times'}",
                where=f"{where}, column {name}",
                expected="a text or a number in each row",
                todo="write them as text; --id-column names another column of ids",
            )
