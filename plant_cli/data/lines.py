"""Lines of text files, compressed or not, in any encoding; rows that cannot be read; tables that wait in temporary files."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import IO, Any, cast

import polars as pl

from plant_cli.api import DataError, DataSection, UsageError, first_line, missing_package, near_names
from plant_cli.data.files import naming_full_disk, replacing

SUFFIXES = (".gz", ".zst")
FORMATS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")  # of tables
MARKS = {  # UTF-32 first: its mark begins as that of UTF-16 does
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_BLOCK = 1 << 18  # bytes
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def bare_name(path: Path) -> str:
    """A file's name without the suffix of its compression: `notes.csv` for `notes.csv.gz`."""
    return path.name.removesuffix(path.suffix) if path.suffix in SUFFIXES else path.name


def read_head(path: Path, expected: str) -> bytes:
    """The first four bytes of a plain file; `DataError` if it is missing, is none, or cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "no plain file: a device, a pipe or a socket has no end, or cannot be read twice"
            raise DataError(f"this is {what}", where=str(path), expected=expected, todo="name a file; write what a pipe gives into one")
        with path.open("rb") as stream:
            return stream.read(4)
    except FileNotFoundError as error:
        tables = [p.name for p in path.parent.iterdir() if Path(bare_name(p)).suffix in FORMATS] if path.parent.is_dir() else []
        near = near_names(path.name, tables)
        expected = near if near.startswith("did you mean") else expected
        todo = f"check the path; relative paths start at {Path.cwd()}"
        raise DataError("there is no such file", where=str(path), expected=expected, todo=todo) from error
    except OSError as error:
        raise _unreadable(path, error, expected) from error


@contextmanager
def open_bytes(path: Path, expected: str = "a file") -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressing it on the way.

    Raises:
        DataError: it is missing, no plain file, or turns out to be truncated while it is read; the message says what was `expected`.
        ComponentError: it is compressed with zstd, and the package for that is not installed.
    """
    head = read_head(path, expected)
    kind = "zstd" if head == _ZSTD else "gzip"
    try:
        with path.open("rb") as raw, _unpack(raw, head, path) as stream:
            yield stream
    except OSError as error:
        if not isinstance(error, gzip.BadGzipFile):
            raise _unreadable(path, error, expected) from error
        raise _damaged(kind, path, error) from error
    except Exception as error:
        if not isinstance(error, (EOFError, zlib.error)) and type(error).__name__ != "ZstdError":
            raise
        raise _damaged(kind, path, error) from error


def _unpack(raw: IO[bytes], head: bytes, path: Path) -> IO[bytes]:
    if head == _ZSTD:
        return io.BufferedReader(_ZstdReader(raw, _zstandard(str(path)).ZstdDecompressor()), _BLOCK)
    return cast(IO[bytes], gzip.open(raw, "rb")) if head.startswith(_GZIP) else raw


def _unreadable(path: Path, error: OSError, expected: str) -> DataError:
    todo = "check its rights, and where it leads"
    return DataError(f"the file cannot be read: {error.strerror}", where=str(path), expected=expected, todo=todo)


def _damaged(kind: str, path: Path, error: Exception) -> DataError:
    what, todo = f"the {kind} file is truncated or damaged: {first_line(error)}", f"copy or make the file again; `{kind} -t` tests it"
    return DataError(what, where=str(path), expected=f"a complete {kind} file", todo=todo)


def read_bytes(path: Path, expected: str = "a file") -> bytes:
    """All of a file, decompressed; see `open_bytes`."""
    with open_bytes(path, expected) as stream:
        return stream.read()


@contextmanager
def writing_text(path: Path) -> Iterator[IO[str]]:
    """Open a new text file in UTF-8 with line feeds, compressed as its name says; equal texts give equal bytes."""
    with writing_bytes(path) as packed, io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as stream:
        yield stream


@contextmanager
def writing_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, compressed as its name says; equal bytes give equal files."""
    with path.open("wb") as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as zipped:  # no name and no time in the header
                yield cast(IO[bytes], zipped)
        elif path.suffix == ".zst":
            with _zstandard(str(path)).ZstdCompressor().stream_writer(raw) as packed:
                yield packed
        else:
            yield raw


def find_fallback(content: bytes, usual: str | None) -> str | None:
    """The usual encoding for a text that neither is UTF-8 nor begins with a byte order mark; None for others, and for Parquet."""
    if usual is None or content.startswith((*MARKS, b"PAR1")):
        return None
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return usual
    return None


def decode_text(content: bytes, encoding: str | None, what: str, where: str) -> str:
    """A whole text; of an encoding that was given, else as `find_encoding` finds."""
    codec = find_encoding(content[:4], encoding, where)
    try:
        return content.decode(codec)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(codec, "replace")
        raise DataError(
            f"{what} is not {codec.removesuffix('-sig').upper()}",
            where=f"{where}, line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}",
            expected="text in its encoding",
            todo="name its encoding, perhaps --encoding windows-1252",
        ) from error


def find_encoding(head: bytes, given: str | None, where: str) -> str:
    """The codec of a text that begins so: that of its byte order mark, else the one that was given, else UTF-8.

    Raises:
        DataError: there is no encoding of that name.
    """
    if given is not None:
        try:
            name = codecs.lookup(given).name
        except LookupError as error:
            raise DataError(
                f"there is no encoding named '{given}'",
                where=f"--encoding, for {where}",
                expected="a name such as utf-8, windows-1252, iso-8859-1 or utf-16",
                todo="correct the name, or leave --encoding out for UTF-8",
            ) from error
        if not any(head.startswith(mark) for mark in MARKS):
            return "utf-8-sig" if name == "utf-8" else name
    return next((codec for mark, codec in MARKS.items() if head.startswith(mark)), "utf-8-sig")


class _ZstdReader(io.RawIOBase):
    """Decompresses frame after frame, and notices where the last one is cut off, which the library's own reader does not."""

    def __init__(self, raw: IO[bytes], decompressor: Any) -> None:
        self._raw, self._decompressor = raw, decompressor
        self._frame: Any = None
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = self._raw.read(_BLOCK)
            if not chunk:
                if self._frame is not None:
                    raise EOFError("it ends too early")
                return 0
            self._ready = self._expand(chunk)
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _expand(self, chunk: bytes) -> bytes:
        parts = []
        while chunk:
            self._frame = self._frame or self._decompressor.decompressobj()
            parts.append(self._frame.decompress(chunk))
            chunk = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        return b"".join(parts)


def _zstandard(where: str) -> Any:
    try:
        import zstandard
    except ImportError as error:
        instead = ", or a file without such compression (`zstd -d` unpacks it)"
        raise missing_package("zstandard", "which reads and writes zstd", "zstd", where=where, otherwise=instead) from error
    return zstandard


_LEVEL = 1  # of the compression: these files are read a few times, and then gone
_WATCH: ContextVar[Callable[[int], None]] = ContextVar("_WATCH", default=lambda rows: None)


@contextmanager
def watching(advance: Callable[[int], None]) -> Iterator[None]:
    """Let `advance` know of the rows of every frame that is spooled in the block, since readers of formats have no reporter."""
    token = _WATCH.set(advance)
    try:
        yield
    finally:
        _WATCH.reset(token)


def spool(frames: Iterable[pl.DataFrame]) -> Sequence[pl.LazyFrame]:
    """Write frames of one schema to files (in `TMPDIR`, or where the system has temporary files), one at a time.

    Returns:
        The same frames, read when they are collected; no file is left if `frames` raises an error.
    """
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    parts = []
    try:
        for number, frame in enumerate(frames):
            path = folder / f"{number:06d}.parquet"
            empty = [pl.lit(None).alias(name) for name, dtype in frame.schema.items() if _holds_empty(dtype)]
            with naming_full_disk(path):
                frame.with_columns(empty).write_parquet(path, compression="zstd", compression_level=_LEVEL)
            parts.append(pl.scan_parquet(path, glob=False))
            _WATCH.get()(frame.height)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    return parts


def _holds_empty(dtype: pl.DataType) -> bool:
    """Whether a type has objects without any key, which Parquet cannot hold."""
    if isinstance(dtype, pl.Struct):
        return not dtype.fields or any(_holds_empty(field.dtype) for field in dtype.fields)  # type: ignore[arg-type]
    return isinstance(dtype, pl.List) and _holds_empty(dtype.inner)  # type: ignore[arg-type]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """One folder for all files of the process, removed when it ends."""
    return tempfile.TemporaryDirectory(prefix="plant-", ignore_cleanup_errors=True)


LINES_LISTED = 10
HEADER = ("file", "line", "column", "reason", "content")  # of rejects
ADVICE = "mend these rows, or leave --strict out to read without them"


@dataclass(frozen=True, kw_only=True)
class BadRow:
    """A row that cannot be read."""

    path: Path  # its file
    line: int  # counted from 1
    column: int | None  # character within the line, counted from 1; None where the fault has no position
    why: str  # what is wrong with it
    content: str  # the row as it is in the file

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"

    @property
    def place(self) -> str:
        """File, line and column."""
        return f"{self.path}, line {self.line:,}" + ("" if self.column is None else f", column {self.column:,}")


@dataclass
class BadRows:
    """All rows of a corpus that cannot be read."""

    strict: bool = False  # the first is an error
    rejects: Path | None = None  # where `close` writes them
    todo: str = ADVICE  # what to do about the first one, where it is an error
    rows: list[BadRow] = field(default_factory=list)

    @classmethod
    def of(cls, data: DataSection) -> BadRows:
        """What the section `data` says of such rows; `UsageError` where rejects would replace a file that is something else."""
        rejects = None if data.rejects is None else Path(data.rejects)
        if rejects is not None and rejects.is_file() and rejects.stat().st_size:  # it may be the corpus itself
            with rejects.open("rb") as stream:
                first = stream.readline().rstrip()
            if first != "\t".join(HEADER).encode():
                what, expected = "the rejects would replace another file", "a new file, or rejects of an earlier command"
                raise UsageError(what, where=f"--rejects {rejects}", expected=expected, todo="choose another name")
        return cls(strict=data.strict, rejects=rejects)

    def add(self, path: Path, line: int, why: str, content: str, *, column: int | None = None, expected: str = "a row that fits") -> None:
        """Take note of one; `DataError` if none is allowed."""
        row = BadRow(path=path, line=line, column=column, why=why, content=content)
        if self.strict:
            raise DataError(f"a row cannot be read: {why}", where=row.place, expected=expected, todo=self.todo)
        self.rows.append(row)

    def close(self) -> list[str]:
        """Write the file of rejects, if there is to be one; the remark that says what was left out (none if nothing was)."""
        if self.rejects is not None:
            with replacing(self.rejects) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
                writer.writerow(HEADER)
                writer.writerows((row.path, row.line, row.column, row.why, row.content) for row in self.rows)
        if not self.rows:
            return []
        listed = "; ".join(map(str, self.rows[:LINES_LISTED])) + ("; …" if len(self.rows) > LINES_LISTED else "")
        kept = "--rejects FILE keeps them" if self.rejects is None else f"they are in {self.rejects}"
        return [f"{len(self.rows):,} rows cannot be read and are left out ({kept}; --strict stops instead): {listed}"]


def read_lines(
    path: Path, bad: BadRows, encoding: str | None = None, *, ends: bool = False, surrogates: bool = False
) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, counted from 1, without their ends; a byte order mark is passed over.

    A line that is not in the encoding goes to `bad`, with the column of its first wrong byte; more than ten of them say that the whole
    file is of another encoding, which is a `DataError`.

    Args:
        path: the file, perhaps compressed.
        bad: takes lines that cannot be decoded.
        encoding: of the file (default: UTF-8, or UTF-16 or UTF-32 if the file begins with their mark).
        ends: whether lines keep their ends.
        surrogates: whether lines that go to `bad` are also given, with surrogates for their wrong bytes: rows of several lines then
            begin and end where they do.
    """
    wrong = 0
    with open_bytes(path, "a text file") as stream:
        codec = find_encoding(stream.read(4), encoding, str(path))
    if codec.startswith(("utf-16", "utf-32")):
        yield from _read_wide(path, codec, ends=ends)
        return
    name = codec.removesuffix("-sig").upper()
    with open_bytes(path, "a text file") as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw if ends else raw.removesuffix(b"\n").removesuffix(b"\r")
            exact = codec if number == 1 or codec != "utf-8-sig" else "utf-8"
            try:
                yield number, line.decode(exact)
            except UnicodeDecodeError as error:
                column = len(error.object[: error.start].decode(codec, "replace")) + 1
                why = f"byte 0x{error.object[error.start]:02x} is not {name} (--encoding names another)"
                bad.add(path, number, why, line.decode(codec, "replace"), column=column, expected="text in its encoding")
                wrong += 1
                refuse_many(wrong, bad.rows[-1], name)
                yield from [(number, line.decode(exact, "surrogateescape"))] if surrogates else []


def refuse_many(wrong: int, row: BadRow, codec: str, *, texts: bool = False) -> None:
    """Refuse a file of which more than ten rows (or `texts` of a folder) are not in the encoding; `row` is the last of them."""
    if wrong > LINES_LISTED:
        raise DataError(
            f"not {codec}: more than {LINES_LISTED} {'texts' if texts else 'rows'} cannot be decoded",
            where=row.place,
            expected=f"text in {codec}",
            todo="name its encoding, such as --encoding latin-1 or cp1252, or convert it: iconv -f LATIN1 -t UTF-8 FILE",
        )


def _read_wide(path: Path, codec: str, *, ends: bool) -> Iterator[tuple[int, str]]:
    with open_bytes(path, "a text file") as stream, io.TextIOWrapper(stream, encoding=codec, newline="\n") as text:
        number = 0
        try:
            for number, line in enumerate(text, start=1):
                yield number, line if ends else line.removesuffix("\n").removesuffix("\r")
        except UnicodeError as error:
            raise DataError(
                f"the file is not {codec.upper()}: {error}",
                where=f"{path}, line {number + 1:,}",
                expected=f"text in {codec.upper()}, as its first bytes or --encoding say",
                todo="make the file again, or name its encoding with --encoding",
            ) from error
