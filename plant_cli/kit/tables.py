"""Tables on disk: Parquet, JSON lines, CSV and TSV (also gzipped), recognised by their content and not by their name."""

from __future__ import annotations

import gzip
import io
import json
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from plant_cli.api.errors import DataError, near_names
from plant_cli.base.files import replacing
from plant_cli.kit.text_tables import parse_text

FORMATS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")
READABLE = "a Parquet, JSON lines, CSV or TSV file (the last three may be gzipped)"
_PARQUET = b"PAR1"
_REFUSED = {
    b"\xff\xfe\x00\x00": ("in UTF-32", "convert it: iconv -f UTF-32 -t UTF-8 {path} > {stem}.utf8"),  # begins as UTF-16 does
    b"\x00\x00\xfe\xff": ("in UTF-32", "convert it: iconv -f UTF-32 -t UTF-8 {path} > {stem}.utf8"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "unpack it first: zstd -d {path}"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    b"\xff\xfe": ("in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 {path} > {stem}.utf8"),
    b"\xfe\xff": ("in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 {path} > {stem}.utf8"),
}


def scan_table(path: Path) -> pl.LazyFrame:
    """A table as a lazy frame; Parquet is read when collected, the text formats now.

    In CSV and TSV every column is a string (an id `007` keeps its zeros), and an empty cell is null.

    Raises:
        DataError: the file is missing, empty, truncated, not UTF-8 or no table; with the line where there is one.
    """
    data = _head(path)
    if data == _PARQUET:
        return _scan_parquet(path)
    for magic, (what, todo) in _REFUSED.items():
        if data.startswith(magic):
            todo = todo.format(path=path, stem=path.with_suffix(""))
            raise DataError(f"the file is {what}", where=str(path), expected=READABLE, todo=todo)
    content = path.read_bytes()
    return parse_text(_gunzip(content, path) if content.startswith(b"\x1f\x8b") else content, path).lazy()


def table_format(path: Path) -> str | None:
    """The format that a file's name promises, such as `.csv` (for `x.csv.gz` too); None when it promises no table."""
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    return suffixes[-1] if suffixes and suffixes[-1] in FORMATS else None


def base_name(path: Path) -> str:
    """The file's name without the suffixes of its format: `notes` for `notes.csv.gz`."""
    return path.name.removesuffix(".gz").removesuffix(table_format(path) or "")


def name_beside(corpus: Path, what: str) -> Path:
    """Where a table that belongs to a corpus file stands: for `notes.csv` and "labels" that is `notes.labels.csv`."""
    base = base_name(corpus)
    return corpus.with_name(f"{base}.{what}{corpus.name.removeprefix(base)}")


def collect(frame: pl.LazyFrame, where: str) -> pl.DataFrame:
    """Read a lazy frame; a file that turns out to be damaged half way becomes a `DataError` that names `where`."""
    try:
        return frame.collect()
    except PolarsError as error:
        raise DataError(
            f"the table cannot be read: {_first_line(error)}",
            where=where,
            expected="a complete, undamaged table",
            todo="make the file again",
        ) from error


def whole_numbers(column: str) -> pl.Expr:
    """A column as whole numbers; null for what is none, fractions among it."""
    value = pl.col(column).cast(pl.Float64, strict=False)
    return pl.when(value == value.floor()).then(pl.col(column)).cast(pl.Int64, strict=False).alias(column)


def output_format(path: Path) -> str:
    """The format in which `write_table` writes a file of that name; ask before long work for the table.

    Raises:
        DataError: the name promises none of the formats.
    """
    form = table_format(path)
    if form is None or (form == ".parquet" and path.suffix == ".gz"):
        raise DataError(
            f"no table format goes by the name '{path.name}'",
            where=str(path),
            expected=f"a name that ends in {', '.join(FORMATS)} (.gz may follow, except after .parquet)",
            todo="choose such a name for the output, for example data.parquet",
        )
    return form


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table atomically, in the format that the name promises; lists become JSON in the cells of CSV and TSV.

    Raises:
        DataError: the name promises none of the formats.
    """
    content = _encode(frame, output_format(path))
    with replacing(path) as temporary:
        # no time in gzip's header: equal tables give equal bytes
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def _encode(frame: pl.DataFrame, form: str) -> bytes:
    stream = io.BytesIO()
    if form == ".parquet":
        frame.write_parquet(stream, compression="zstd")
    elif form in (".csv", ".tsv"):
        lists = [name for name, dtype in frame.schema.items() if dtype.base_type() is pl.List]
        as_json = [pl.col(name).map_elements(_to_json, return_dtype=pl.String) for name in lists]
        frame.with_columns(as_json).write_csv(stream, separator="," if form == ".csv" else "\t")
    elif form == ".json":
        frame.write_json(stream)
    else:
        frame.write_ndjson(stream)
    return stream.getvalue()


def _to_json(values: Iterable[object]) -> str:
    return json.dumps(list(values), ensure_ascii=False)


def _head(path: Path) -> bytes:
    if path.is_dir():
        raise DataError("this is a folder, not a table", where=str(path), expected=READABLE, todo="name a file in it")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(
                "this is no plain file: a device, a pipe or a socket has no end, or cannot be read twice",
                where=str(path),
                expected=READABLE,
                todo="write what it gives into a file, and name that",
            )
        with path.open("rb") as stream:
            head = stream.read(4)
    except FileNotFoundError as error:
        beside = [p.name for p in path.parent.iterdir() if table_format(p)] if path.parent.is_dir() else []
        raise DataError(
            "there is no such file",
            where=str(path),
            expected=near_names(path.name, beside) if beside else READABLE,
            todo=f"check the path; relative paths start at {Path.cwd()}",
        ) from error
    except OSError as error:
        raise DataError(
            f"the file cannot be read: {error.strerror}", where=str(path), expected=READABLE, todo="check its rights, and where it leads"
        ) from error
    if not head:
        raise DataError("the file is empty", where=str(path), expected=READABLE, todo="make the file again")
    return head


def _scan_parquet(path: Path) -> pl.LazyFrame:
    with path.open("rb") as stream:
        stream.seek(-len(_PARQUET), 2)
        complete = stream.read() == _PARQUET and stream.tell() > 2 * len(_PARQUET)
    frame = pl.scan_parquet(path, glob=False)
    try:
        if complete:
            frame.collect_schema()
            return frame
        reason: Exception | None = None
    except PolarsError as error:
        reason = error
    raise DataError(
        "the Parquet file is truncated or damaged",
        where=f"{path} ({path.stat().st_size:,} bytes)",
        expected="a Parquet file with its footer",
        todo="copy or make the file again; a download may have stopped half way",
    ) from reason


def _gunzip(content: bytes, path: Path) -> bytes:
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"the gzip file is truncated or damaged: {error}",
            where=str(path),
            expected="a complete gzip file",
            todo="copy or make the file again; `gzip -t` tests it",
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
