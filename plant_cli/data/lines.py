"""Lines of text files, compressed or not, in any encoding; rows that cannot be read; tables
that wait in temporary files.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import os
import stat
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from shutil import rmtree
from typing import IO, Any, NamedTuple, cast

import polars as pl

from plant_cli.api import (
    DataError,
    DataSection,
    PlantError,
    UsageError,
    missing_package,
    near_names,
)
from plant_cli.api.errors import first_names
from plant_cli.data.file_kinds import HEAD, refuse_kind, refuse_members
from plant_cli.data.files import naming_full_disk, replacing
from plant_cli.data.object_stores import is_address
from plant_cli.data.quotes import QUOTES_EXPECTED

WRITTEN = (".gz", ".zst", ".bz2", ".xz")  # suffixes of packed files
SUFFIXES = (*WRITTEN, ".zip")  # of those that are read
FORMATS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")  # of tables
MARKS = {  # UTF-32 first: its mark begins as that of UTF-16 does
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
READABLE = (
    "a Parquet, JSON lines, CSV or TSV file (the last three may be packed: gzip, zstd, "
    "bzip2, xz, or alone in a zip archive)"
)
PARQUET = b"PAR1"  # the first and the last bytes of such a file
BYTES_SAMPLED = 1 << 20  # bytes of a file by which its form is found
_BLOCK = 1 << 18  # bytes
_SETTLED = 1_000_000_000  # nanoseconds after which a change of a file changes its time, too
_PACKERS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
}
_MUCH, _TIMES = (
    1 << 28,
    250,
)  # bytes that a packed file may always give, and how many times its own size it may give beyond
_ABOUT = ("readme", "license", "licence")  # names of files that are about others
_TEXT_SUFFIXES = (
    ".txt",
    ".tsv",
    ".csv",
    ".json",
    ".jsonl",
    ".ndjson",
    ".xml",
    ".rdf",
    ".ttl",
    ".nt",
    ".jsonld",
    ".svm",
    ".arff",
)


def bare_name(path: Path) -> str:
    """A file's name without the suffix of its compression: `notes.csv` for `notes.csv.gz`."""
    return path.name.removesuffix(path.suffix) if path.suffix.lower() in SUFFIXES else path.name


def read_head(path: Path, expected: str) -> bytes:
    """The first bytes of a plain file; `DataError` if it is missing, is none, or cannot be read."""
    _require_plain(path, expected)
    try:
        return _take_sample(path, sign_file(path)).head
    except OSError as error:
        raise _unreadable(path, error, expected) from error


def read_start(path: Path) -> bytes:
    """The first megabyte of a file, unpacked; see `open_bytes`."""
    _require_plain(path, READABLE)
    with suppress(OSError):
        start = _take_sample(path, sign_file(path)).start
        if start is not None:
            return start
    with open_bytes(path) as stream:
        return stream.read(BYTES_SAMPLED)


class _Sample(NamedTuple):
    """What a file is known by: read once for all that ask."""

    head: bytes  # the first bytes as they are in the file
    start: bytes | None  # the first megabyte, unpacked; None where `open_bytes` refuses it


Signature = tuple[int, ...]


def sign_file(path: Path) -> Signature:
    """Another one for another file at this path, or for other content."""
    found = path.stat()
    settled = time.time_ns() - found.st_mtime_ns > _SETTLED or time.monotonic_ns()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, settled


@lru_cache(maxsize=8)  # files that a command looks at, one after another
def _take_sample(path: Path, signature: Signature) -> _Sample:
    with path.open("rb") as raw:
        head = raw.peek(HEAD)[:HEAD]
        try:
            with _reading(raw, path, READABLE) as stream:
                return _Sample(
                    head, b"" if head.startswith(PARQUET) else stream.read(BYTES_SAMPLED)
                )
        except PlantError:
            return _Sample(head, None)


def _require_plain(path: Path, expected: str) -> None:
    """`DataError` for a path at which no plain file is."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            what = (
                "a folder"
                if path.is_dir()
                else "no plain file: a device, a pipe or a socket has no end, or cannot be read "
                "twice"
            )
            raise DataError(
                f"this is {what}",
                where=str(path),
                expected=expected,
                todo="name a file; write what a pipe gives into one",
            )
    except FileNotFoundError as error:
        tables = (
            [p.name for p in path.parent.iterdir() if Path(bare_name(p)).suffix.lower() in FORMATS]
            if path.parent.is_dir()
            else []
        )
        near = near_names(path.name, tables)
        expected = near if near.startswith("did you mean") else expected
        todo = (
            "copy it to this machine first; texts of `plant suggest` alone are read from an "
            "object store"
            if is_address(path)
            else f"check the path; relative paths start at {Path.cwd()}"
        )
        raise DataError(
            "there is no such file", where=str(path), expected=expected, todo=todo
        ) from error
    except OSError as error:
        raise _unreadable(path, error, expected) from error


@contextmanager
def open_bytes(path: Path, expected: str = READABLE) -> Iterator[io.BufferedReader]:
    """Open a file for reading; one packed by gzip, zstd, bzip2 or xz, or alone in a zip archive, is
    unpacked on the way.

    Raises:
        DataError: it is missing, no plain file, of a kind that holds no text, gives very many times
            its size, or turns out to be truncated while it is read; the message says what was
            `expected`.
        ComponentError: it is compressed with zstd, and the package for that is not installed.
    """
    _require_plain(path, expected)
    try:
        with path.open("rb") as raw, _reading(raw, path, expected) as stream:
            yield stream
    except OSError as error:
        raise _unreadable(path, error, expected) from error


@contextmanager
def _reading(raw: io.BufferedReader, path: Path, expected: str) -> Iterator[io.BufferedReader]:
    """What an open file gives, unpacked; errors as of `open_bytes`."""
    kind = _packer(raw.peek(HEAD)[:HEAD])
    try:
        with _unpack(raw, kind, path, expected) as stream:
            start = stream.peek(HEAD)[:HEAD]
            refuse_kind(start, str(path), expected, "" if kind is None else f" in a {kind} file")
            if kind is not None and (start.startswith(PARQUET) or _packer(start) is not None):
                what = (
                    f"in this {kind} file is another packed one"
                    if _packer(start)
                    else f"in this {kind} file is Parquet"
                )
                raise DataError(
                    what,
                    where=str(path),
                    expected=expected,
                    todo="unpack it, and name what was in it",
                )
            yield stream
    except PlantError:
        raise
    except Exception as error:
        if kind is not None and _is_damage(error):
            test = {"zip": "unzip"}.get(kind, kind)
            what, todo = (
                f"the {kind} file is truncated or damaged",
                f"copy or make the file again; `{test} -t` tests it",
            )
            raise DataError(
                what, where=str(path), expected=f"a complete {kind} file", todo=todo
            ) from error
        raise


def _is_damage(error: Exception) -> bool:
    """Whether a packed file is damaged; gzip and bzip2 say so by an error of the system without
    a number.
    """
    known = (
        isinstance(error, (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile))
        or type(error).__name__ == "ZstdError"
    )
    return known or (isinstance(error, OSError) and error.errno is None)


def _packer(head: bytes) -> str | None:
    return next((kind for mark, kind in _PACKERS.items() if head.startswith(mark)), None)


def _unpack(
    raw: io.BufferedReader, kind: str | None, path: Path, expected: str
) -> io.BufferedReader:
    if kind is None:
        return raw
    if kind == "zip":
        packed = _open_member(zipfile.ZipFile(raw), path, expected)
    elif kind == "zstd":
        packed = io.BufferedReader(
            _ZstdReader(raw, _zstandard(str(path)).ZstdDecompressor()), _BLOCK
        )
    else:
        packed = cast(
            IO[bytes],
            gzip.GzipFile(fileobj=raw)
            if kind == "gzip"
            else (bz2.BZ2File if kind == "bzip2" else lzma.LZMAFile)(raw),
        )
    return io.BufferedReader(_Limited(packed, path, kind), _BLOCK)


def _open_member(archive: zipfile.ZipFile, path: Path, expected: str) -> IO[bytes]:
    """The one file with text in a zip archive."""
    refuse_members(archive.namelist(), str(path), expected)
    files = [member.filename for member in archive.infolist() if _is_content(member)]
    texts = [name for name in files if Path(name).suffix.lower() in _TEXT_SUFFIXES]
    named = [name for name in texts if not Path(name).stem.lower().startswith(_ABOUT)]
    chosen = next((names for names in (named, texts, files) if len(names) == 1), None)
    if chosen is None:
        listed = f": {', '.join(files[:6])}{', …' if len(files) > 6 else ''}" if files else ""
        what, todo = (
            f"the zip archive holds {len(files):,} files{listed}",
            f"unpack it, and name a file or the folder: unzip {path}",
        )
        raise DataError(
            what, where=str(path), expected="an archive with one file of data", todo=todo
        )
    member = archive.getinfo(chosen[0])
    if member.flag_bits & 1 or member.compress_type not in (0, 8, 12, 14):
        what = (
            "has a password"
            if member.flag_bits & 1
            else "is packed in a way that is not known here"
        )
        raise DataError(
            f"the zip archive {what}",
            where=str(path),
            expected=expected,
            todo="unpack it, and name what was in it",
        )
    return archive.open(member)


def _is_content(member: zipfile.ZipInfo) -> bool:
    """Whether it is a file, and none that systems add unseen."""
    parts = member.filename.split("/")
    return not member.is_dir() and not any(part.startswith((".", "__MACOSX")) for part in parts)


class _Limited(io.RawIOBase):
    """What a packed file gives, as long as it is not very many times its own size."""

    def __init__(self, packed: IO[bytes], path: Path, kind: str) -> None:
        self._packed, self._path, self._kind, self._given = packed, path, kind, 0
        self._most = max(_MUCH, _TIMES * path.stat().st_size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._packed.read(len(buffer))
        self._given += len(content)
        if self._given > self._most:
            raise DataError(
                f"the {self._kind} file gives more than {_TIMES} times its own size",
                where=f"{self._path} ({self._path.stat().st_size:,} bytes)",
                expected="texts, which are packed to a tenth or so",
                todo="look into it; if it is right, unpack it and name what was in it",
            )
        buffer[: len(content)] = content
        return len(content)


def _unreadable(path: Path, error: OSError, expected: str) -> DataError:
    todo = "check its rights, and where it leads"
    return DataError(
        f"the file cannot be read: {error.strerror}", where=str(path), expected=expected, todo=todo
    )


def read_bytes(path: Path, expected: str = READABLE) -> bytes:
    """All of a file, unpacked; see `open_bytes`."""
    with open_bytes(path, expected) as stream:
        return stream.read()


@contextmanager
def writing_text(path: Path) -> Iterator[IO[str]]:
    """Open a new text file in UTF-8 with line feeds, compressed as its name says; equal texts
    give equal bytes.
    """
    with (
        writing_bytes(path) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as stream,
    ):
        yield stream


@contextmanager
def writing_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, compressed as its name says; equal bytes give equal files."""
    suffix = path.suffix.lower()
    with path.open("wb") as raw:
        if suffix == ".gz":
            with gzip.GzipFile(
                filename="", mode="wb", fileobj=raw, mtime=0
            ) as zipped:  # no name and no time in the header
                yield cast(IO[bytes], zipped)
        elif suffix == ".zst":
            with _zstandard(str(path)).ZstdCompressor().stream_writer(raw) as packed:
                yield packed
        elif suffix in WRITTEN:
            with bz2.open(raw, "wb") if suffix == ".bz2" else lzma.open(raw, "wb") as other:
                yield cast(IO[bytes], other)
        else:
            yield raw


def ends_as_parquet(path: Path) -> bool:
    """Whether the last bytes of a file are those of a Parquet file."""
    with path.open("rb") as stream:
        stream.seek(-min(len(PARQUET), path.stat().st_size), os.SEEK_END)
        return stream.read() == PARQUET and stream.tell() > 2 * len(PARQUET)


def damaged_parquet(path: Path) -> DataError:
    """The error for a Parquet file whose beginning or end is missing."""
    return DataError(
        "the Parquet file is truncated or damaged",
        where=f"{path} ({path.stat().st_size:,} bytes)",
        expected="a Parquet file with its footer",
        todo="copy or make the file again; a download may have stopped half way",
    )


def _not_lines(path: Path) -> DataError:
    return DataError(
        "this is a Parquet file",
        where=str(path),
        expected="a text file",
        todo="name no format: Parquet is read as a table",
    )


def find_fallback(content: bytes, usual: str | None) -> str | None:
    """The usual encoding for a text that neither is UTF-8 nor begins with a byte order mark;
    None for others, and for Parquet.
    """
    if usual is None or content.startswith((*MARKS, PARQUET)):
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
            where=f"{where}, line {before.count(chr(10)) + 1}, column "
            f"{len(before) - before.rfind(chr(10))}",
            expected="text in its encoding",
            todo="name another file, or the encoding, perhaps utf-16: this one holds zeros, as "
            "files do that are no text"
            if b"\0" in content
            else "name its encoding, perhaps --encoding windows-1252",
        ) from error


def find_encoding(head: bytes, given: str | None, where: str) -> str:
    """The codec of a text that begins so: that of its byte order mark, else the one that was given,
    else UTF-8.

    `DataError` if there is no encoding of that name.
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
    """Decompresses frame after frame, and notices where the last one is cut off, which the
    library's own reader does not.
    """

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
        raise missing_package(
            "zstandard", "which reads and writes zstd", "zstd", where=where, otherwise=instead
        ) from error
    return zstandard


_LEVEL = 1  # of the compression: these files are read a few times, and then gone
_WATCH: ContextVar[Callable[[int], None]] = ContextVar("_WATCH", default=lambda rows: None)


@contextmanager
def watching(advance: Callable[[int], None]) -> Iterator[None]:
    """Let `advance` know of the rows of every frame that is spooled in the block, since readers
    of formats have no reporter.
    """
    token = _WATCH.set(advance)
    try:
        yield
    finally:
        _WATCH.reset(token)


def spool(frames: Iterable[pl.DataFrame]) -> Sequence[pl.LazyFrame]:
    """Write frames of one schema to files (in `TMPDIR`, or where the system has temporary
    files), one at a time; the same frames, read when they are collected. No file is left if
    `frames` raises an error.
    """
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    parts = []
    try:
        for number, frame in enumerate(frames):
            path = folder / f"{number:06d}.parquet"
            empty = [
                pl.lit(None).alias(name)
                for name, dtype in frame.schema.items()
                if _holds_empty(dtype)
            ]
            with naming_full_disk(path):
                frame.with_columns(empty).write_parquet(
                    path, compression="zstd", compression_level=_LEVEL
                )
            parts.append(pl.scan_parquet(path.absolute(), glob=False))
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
    column: (
        int | None
    )  # character within the line, counted from 1; None where the fault has no position
    why: str  # what is wrong with it
    content: str  # the row as it is in the file
    unit: str = "line"  # what `line` counts: lines of the file, or rows of its table

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"

    @property
    def place(self) -> str:
        """File, line and column."""
        return f"{self.path}, {self.unit} {self.line:,}" + (
            "" if self.column is None else f", column {self.column:,}"
        )


@dataclass
class BadRows:
    """All rows of a corpus that cannot be read."""

    strict: bool = False  # the first is an error
    rejects: Path | None = None  # where `close` writes them
    todo: str = ADVICE  # what to do about the first one, where it is an error
    literal: bool = False  # a row that must be guessed at is an error, too
    rows: list[BadRow] = field(default_factory=list)
    notes: dict[tuple[Path, str], list[int]] = field(
        default_factory=dict
    )  # lines of rows that were read in another way, by file and why

    @classmethod
    def of(cls, data: DataSection) -> BadRows:
        """What the section `data` says of such rows; `UsageError` where rejects would replace a
        file that is something else.
        """
        rejects = None if data.rejects is None else Path(data.rejects)
        if (
            rejects is not None and rejects.is_file() and rejects.stat().st_size
        ):  # it may be the corpus itself
            with rejects.open("rb") as stream:
                first = stream.readline().rstrip()
            if first != "\t".join(HEADER).encode():
                what, expected = (
                    "the rejects would replace another file",
                    "a new file, or rejects of an earlier command",
                )
                raise UsageError(
                    what,
                    where=f"--rejects {rejects}",
                    expected=expected,
                    todo="choose another name",
                )
        return cls(strict=data.strict, rejects=rejects, literal=data.strict)

    def add(
        self,
        path: Path,
        line: int,
        why: str,
        content: str,
        *,
        column: int | None = None,
        unit: str = "line",
        expected: str = "a row that fits",
    ) -> None:
        """Take note of one; `DataError` if none is allowed."""
        row = BadRow(path=path, line=line, column=column, why=why, content=content, unit=unit)
        if self.strict:
            raise DataError(
                f"a row cannot be read: {why}", where=row.place, expected=expected, todo=self.todo
            )
        self.rows.append(row)

    def note(self, path: Path, line: int, why: str, *, read: bool = False) -> None:
        """Take note of a row whose quotes do not fit, and that was read in another way; `DataError`
        if none is allowed.

        One that is `read` as it is has no such error.
        """
        if self.literal and not read:
            raise DataError(
                f"the quotes of a row do not fit: {why}",
                where=f"{path}, line {line:,}",
                expected=QUOTES_EXPECTED,
                todo=self.todo,
            )
        self.notes.setdefault((path, why), []).append(line)

    def refuse_many(self, wrong: int, codec: str, what: str = "rows") -> None:
        """Refuse a file of which more than ten rows (or texts of a folder) are not in the
        encoding; the last of them was the last that was added.
        """
        if wrong > LINES_LISTED:
            raise DataError(
                f"not {codec}: more than {LINES_LISTED} {what} cannot be decoded",
                where=self.rows[-1].place,
                expected=f"text in {codec}",
                todo="name its encoding, such as --encoding latin-1 or cp1252, or convert it: "
                "iconv -f LATIN1 -t UTF-8 FILE",
            )

    def close(self) -> list[str]:
        """Write the file of rejects, if there is to be one; remarks on what was left out and
        what was read in another way.
        """
        if self.rejects is not None:
            with (
                replacing(self.rejects) as temporary,
                temporary.open("w", encoding="utf-8", newline="") as stream,
            ):
                writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
                writer.writerow(HEADER)
                writer.writerows(
                    (row.path, row.line, row.column, row.why, row.content) for row in self.rows
                )
        remarks = [
            f"{path}: {why} ({'line' if len(lines) == 1 else f'{len(lines):,} rows, lines'} "
            f"{first_names(lines, LINES_LISTED)})"
            for (path, why), lines in self.notes.items()
        ]
        if not self.rows:
            return remarks
        listed = first_names(self.rows, LINES_LISTED, "; ")
        kept = (
            "--rejects FILE keeps them" if self.rejects is None else f"they are in {self.rejects}"
        )
        return [
            *remarks,
            f"{len(self.rows):,} rows cannot be read and are left out ({kept}; --strict stops "
            f"instead): {listed}",
        ]


def read_lines(
    path: Path,
    bad: BadRows,
    encoding: str | None = None,
    *,
    ends: bool = False,
    surrogates: bool = False,
) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, counted from 1, without their ends; a byte order
    mark is passed over.

    A line that is not in the encoding goes to `bad`, with the column of its first wrong byte; more
    than ten of them say that the whole file is of another encoding, which is a `DataError`.

    Args:
        bad: takes lines that cannot be decoded.
        encoding: of the file (default: UTF-8, or UTF-16 or UTF-32 if the file begins with their
            mark).
        ends: whether lines keep their ends.
        surrogates: whether lines that go to `bad` are also given, with surrogates for their wrong
            bytes: rows of several lines then begin and end where they do.
    """
    wrong = 0
    with open_bytes(path, "a text file") as stream:
        start = stream.peek(4)[:4]
        if start == PARQUET:
            raise damaged_parquet(path) if not ends_as_parquet(path) else _not_lines(path)
        codec = find_encoding(start, encoding, str(path))
        if codec.startswith(("utf-16", "utf-32")):
            yield from _read_wide(path, stream, codec, ends=ends)
            return
        name = codec.removesuffix("-sig").upper()
        for number, raw in enumerate(stream, start=1):
            line = raw if ends else raw.removesuffix(b"\n").removesuffix(b"\r")
            exact = codec if number == 1 or codec != "utf-8-sig" else "utf-8"
            try:
                yield number, line.decode(exact)
            except UnicodeDecodeError as error:
                column = len(error.object[: error.start].decode(codec, "replace")) + 1
                why = (
                    f"byte 0x{error.object[error.start]:02x} is not {name} (--encoding names "
                    "another)"
                )
                bad.add(
                    path,
                    number,
                    why,
                    line.decode(codec, "replace"),
                    column=column,
                    expected="text in its encoding",
                )
                wrong += 1
                bad.refuse_many(wrong, name)
                yield from [(number, line.decode(exact, "surrogateescape"))] if surrogates else []


def read_utf8_lines(path: Path) -> list[str]:
    """The lines of a file in UTF-8, which end at line feeds alone: a label may hold what else
    parts lines.
    """
    bad = BadRows()
    lines = [line for _, line in read_lines(path, bad)]
    if bad.rows:
        raise DataError(
            "the file is not UTF-8",
            where=bad.rows[0].place,
            expected="text in UTF-8",
            todo="convert it with iconv",
        )
    return lines


def _read_wide(
    path: Path, stream: io.BufferedReader, codec: str, *, ends: bool
) -> Iterator[tuple[int, str]]:
    with io.TextIOWrapper(stream, encoding=codec, newline="\n") as text:
        number = 0
        try:
            for number, line in enumerate(text, start=1):
                yield number, line if ends else line.removesuffix("\n").removesuffix("\r")
        except UnicodeError as error:
            raise DataError(
                f"the file is not {codec.upper()}",
                where=f"{path}, line {number + 1:,}",
                expected=f"text in {codec.upper()}, as its first bytes or --encoding say",
                todo="make the file again, or name its encoding with --encoding",
            ) from error
