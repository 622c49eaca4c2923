"""Files that may be compressed with gzip or zstd, which their first bytes tell, and text in any encoding."""

from __future__ import annotations

import codecs
import gzip
import io
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from plant_cli.api.errors import ComponentError, DataError, first_line

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

    Args:
        content: the text, not compressed.
        encoding: that was given for it, or None.
        what: it is, for the message.
        where: it stands, for the message.

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
        DataError: nobody knows an encoding of the given name.
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
