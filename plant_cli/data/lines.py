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

from plant_cli.api.errors import ComponentError, DataError, UsageError, first_line
from plant_cli.api.options import DataSection
from plant_cli.data.files import naming_full_disk, replacing

SUFFIXES = (".gz", ".zst")
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


@contextmanager
def open_bytes(path: Path, expected: str = "a file") -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressing it on the way.

    Args:
        path: the file.
        expected: what it should be, for messages.

    Raises:
        DataError: it is missing, no plain file, or turns out to be truncated while it is read.
        ComponentError: it is compressed with zstd, and the package for that is not installed.
    """
    _refuse_what_is_no_file(path, expected)
    head = b""
    try:
        with path.open("rb") as raw:
            head = raw.read(4)
            raw.seek(0)
            with _decompressed(raw, head, path) as stream:
                yield stream
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise damaged("zstd" if head == _ZSTD else "gzip", path, error) from error
    except OSError as error:
        todo = "check its rights, and where it leads"
        raise DataError(f"the file cannot be read: {error.strerror}", where=str(path), expected=expected, todo=todo) from error
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise damaged("zstd", path, error) from error


def read_bytes(path: Path, expected: str = "a file") -> bytes:
    """All of a file, decompressed; see `open_bytes`."""
    with open_bytes(path, expected) as stream:
        return stream.read()


def compress(content: bytes, suffix: str) -> bytes:
    """Bytes as a file of that suffix holds them: compressed for `.gz` and `.zst`, else as they are; equal bytes give equal bytes."""
    if suffix == ".gz":
        return gzip.compress(content, mtime=0)  # no time in the header
    return bytes(_zstandard(f"a file ending in {suffix}").ZstdCompressor().compress(content)) if suffix == ".zst" else content


@contextmanager
def writing_text(path: Path) -> Iterator[IO[str]]:
    """Open a new text file in UTF-8 with line feeds, compressed as its name says; equal texts give equal bytes."""
    with writing_bytes(path) as packed, io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as stream:
        yield stream


@contextmanager
def writing_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, compressed as its name says; equal bytes give equal files."""
    with path.open("wb") as raw, _compressed(raw, path) as packed:
        yield packed


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
    """A whole text; of an encoding that was given, else as `find_encoding` finds.

    Raises:
        DataError: it is not in the encoding; says where.
    """
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


def damaged(kind: str, path: Path, error: Exception) -> DataError:
    """The error for a compressed file that ends too early or was changed."""
    return DataError(
        f"the {kind} file is truncated or damaged: {first_line(error)}",
        where=str(path),
        expected=f"a complete {kind} file",
        todo=f"copy or make the file again; `{kind} -t` tests it",
    )


def _refuse_what_is_no_file(path: Path, expected: str) -> None:
    if not path.exists():
        raise DataError("there is no such file", where=str(path), expected=expected, todo=f"check the path; it starts at {Path.cwd()}")
    if not stat.S_ISREG(path.stat().st_mode):
        raise DataError("this is no plain file", where=str(path), expected=expected, todo="name a file")


@contextmanager
def _decompressed(raw: IO[bytes], head: bytes, path: Path) -> Iterator[IO[bytes]]:
    if head.startswith(_GZIP):
        with gzip.open(raw, "rb") as stream:
            yield cast(IO[bytes], stream)
    elif head == _ZSTD:
        with io.BufferedReader(_ZstdReader(raw, _zstandard(str(path)).ZstdDecompressor()), _BLOCK) as buffered:
            yield buffered
    else:
        yield raw


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


@contextmanager
def _compressed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if path.suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as stream:
            yield cast(IO[bytes], stream)
    elif path.suffix == ".zst":
        with _zstandard(str(path)).ZstdCompressor().stream_writer(raw) as stream:
            yield stream
    else:
        yield raw


def _zstandard(where: str) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ComponentError(
            "the package zstandard, which reads and writes zstd, is not installed",
            where=where,
            expected="the extra `zstd`, or a file without such compression",
            todo="pip install 'plant-cli[zstd]', or unpack the file with `zstd -d`",
        ) from error
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

    Args:
        frames: each becomes a file, and should be small enough to be held.

    Returns:
        The same frames, read when they are collected.

    Raises:
        Exception: whatever `frames` raised; no file is left then.
    """
    folder = Path(tempfile.mkdtemp(dir=_folder().name))
    parts = []
    try:
        for number, frame in enumerate(frames):
            path = folder / f"{number:06d}.parquet"
            with naming_full_disk(path):
                _fill_empty(frame).write_parquet(path, compression="zstd", compression_level=_LEVEL)
            parts.append(pl.scan_parquet(path, glob=False))
            _WATCH.get()(frame.height)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    return parts


def _fill_empty(frame: pl.DataFrame) -> pl.DataFrame:
    """Nulls in place of columns of objects without any key, which Parquet cannot hold."""
    return frame.with_columns(pl.lit(None).alias(name) for name, dtype in frame.schema.items() if _holds_empty(dtype))


def _holds_empty(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Struct):
        return not dtype.fields or any(_holds_empty(field.dtype) for field in dtype.fields)  # type: ignore[arg-type]
    return isinstance(dtype, pl.List) and _holds_empty(dtype.inner)  # type: ignore[arg-type]


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """One folder for all files of the process, removed when it ends."""
    return tempfile.TemporaryDirectory(prefix="plant-", ignore_cleanup_errors=True)


LISTED = 10
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
        if rejects is not None:
            _require_rejects(rejects)
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
            _write(self.rows, self.rejects)
        if not self.rows:
            return []
        listed = "; ".join(map(str, self.rows[:LISTED])) + ("; …" if len(self.rows) > LISTED else "")
        kept = "--rejects FILE keeps them" if self.rejects is None else f"they are in {self.rejects}"
        return [f"{len(self.rows):,} rows cannot be read and are left out ({kept}; --strict stops instead): {listed}"]


def read_lines(
    path: Path, bad: BadRows, encoding: str | None = None, *, ends: bool = False, surrogates: bool = False
) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, counted from 1, without their ends; a byte order mark is passed over.

    A line that is not in the encoding goes to `bad`, with the column of its first wrong byte; more than ten of them say that the whole
    file is of another encoding.

    Args:
        path: the file, perhaps compressed.
        bad: takes lines that cannot be decoded.
        encoding: of the file (default: UTF-8, or UTF-16 or UTF-32 if the file begins with their mark).
        ends: whether lines keep their ends.
        surrogates: whether lines that go to `bad` are given, too, with surrogates for their wrong bytes: rows of several lines then
            begin and end where they do.

    Raises:
        DataError: more than ten lines are not in the encoding.
    """
    wrong = 0
    with open_bytes(path, "a text file") as stream:
        codec = find_encoding(stream.read(4), encoding, str(path))
    if codec.startswith(("utf-16", "utf-32")):
        yield from _read_wide(path, codec, ends=ends)
        return
    with open_bytes(path, "a text file") as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw if ends else raw.removesuffix(b"\n").removesuffix(b"\r")
            own = codec if number == 1 or codec != "utf-8-sig" else "utf-8"
            try:
                yield number, line.decode(own)
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(codec, "replace")
                why = f"byte 0x{error.object[error.start]:02x} is not {codec.removesuffix('-sig').upper()} (--encoding names another)"
                bad.add(path, number, why, line.decode(codec, "replace"), column=len(before) + 1, expected="text in its encoding")
                wrong += 1
                refuse_many(wrong, bad.rows[-1], codec.removesuffix("-sig").upper())
                yield from [(number, line.decode(own, "surrogateescape"))] if surrogates else []


def refuse_many(wrong: int, row: BadRow, codec: str, *, texts: bool = False) -> None:
    """More than ten rows that are not in the encoding: the file is in another one.

    Args:
        wrong: how many there are.
        row: the last of them.
        codec: the encoding.
        texts: whether they are texts of a folder, each in a file of its own.

    Raises:
        DataError: there are more than ten.
    """
    if wrong <= LISTED:
        return
    raise DataError(
        f"not {codec}: more than {LISTED} {'texts' if texts else 'rows'} cannot be decoded",
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


def _require_rejects(path: Path) -> None:
    """Refuse to replace what does not look like earlier rejects: it may be the corpus itself."""
    if not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb") as stream:
        first = stream.readline().rstrip()
    if first != "\t".join(HEADER).encode():
        raise UsageError(
            "the rejects would replace a file that holds something else",
            where=f"--rejects {path}",
            expected="a new file, or rejects of an earlier command",
            todo="choose another name",
        )


def _write(rows: list[BadRow], path: Path) -> None:
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows((row.path, row.line, row.column, row.why, row.content) for row in rows)
