"""Tables of every format: read lazily, written atomically; cells that hold lists."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import polars as pl
from polars.exceptions import ComputeError, PolarsError

from plant_cli.api.errors import DataError, first_line
from plant_cli.data.files import replacing
from plant_cli.data.lines import (
    FORMATS,
    PARQUET,
    READABLE,
    SUFFIXES,
    WRITTEN,
    BadRows,
    bare_name,
    damaged_parquet,
    ends_as_parquet,
    find_fallback,
    read_bytes,
    read_head,
    spool,
    writing_bytes,
)
from plant_cli.data.parquet import panics_as_errors
from plant_cli.data.quotes import guard_cell
from plant_cli.data.text_tables import peek_names, peek_text, read_text_table

_BLANKS = r"^\s+|\s+$"


def trim(labels: pl.Expr) -> pl.Expr:
    """Labels without the blanks around them."""
    return labels.str.replace_all(_BLANKS, "")


LARGE_TABLE = 1 << 26  # bytes of a table; a larger one in text is not held


def scan_table(
    path: Path,
    *,
    encoding: str | None = None,
    fallback: str | None = None,
    bad: BadRows | None = None,
) -> pl.LazyFrame:
    """A table as a lazy frame; Parquet is read when collected, the text formats now: large ones
    wait in files then.

    In CSV and TSV every column is a string (an id `007` keeps its zeros), and an empty cell is
    null.

    Args:
        encoding: of a text format (default: UTF-8, or UTF-16 or UTF-32 if the file begins with
            their mark).
        fallback: its encoding, if it neither is UTF-8 nor begins with such a mark.
        bad: takes the rows that cannot be read; without it the first such row is an error.

    Raises:
        DataError: the file is missing, empty, truncated, not in its encoding or no table; with the
            line where there is one.
    """
    if read_head(path, READABLE).startswith(PARQUET):
        return _scan_parquet(path)
    if fallback is not None:
        encoding = find_fallback(read_bytes(path, "a table"), fallback)
    frames = read_text_table(
        path, encoding, BadRows(strict=True, todo="mend or remove this row") if bad is None else bad
    )
    held: list[pl.DataFrame] = []
    for frame in frames:
        held.append(frame)
        if sum(one.estimated_size() for one in held) > LARGE_TABLE:
            return pl.concat(spool(chain(held, frames)), how="diagonal_relaxed")
    return pl.concat(held, how="diagonal_relaxed").lazy()


def peek_columns(path: Path, encoding: str | None = None) -> list[str]:
    """The columns of a table, from its first lines; none for a JSON list and for what is no
    table.
    """
    if read_head(path, READABLE).startswith(PARQUET):
        return _scan_parquet(path).collect_schema().names()
    return peek_names(peek_text(path, encoding))


def join_columns(names: Sequence[str]) -> pl.Expr:
    """The texts of several columns as one, each on a line of its own, empty ones left out; one
    column is left as it is.
    """
    if len(names) == 1:
        return pl.col(names[0])
    cells = [pl.col(name).cast(pl.String).str.strip_chars() for name in names]
    return pl.concat_str(
        [pl.when(cell != "").then(cell) for cell in cells], separator="\n", ignore_nulls=True
    )


def table_format(path: Path) -> str | None:
    """The format that a file's name promises, such as `.csv` (for `x.csv.gz` too); None when it
    promises no table.
    """
    suffix = Path(bare_name(path)).suffix.lower()
    return suffix if suffix in FORMATS else None


def base_name(path: Path) -> str:
    """The file's name without the suffixes of its format: `notes` for `notes.csv.gz`."""
    return Path(bare_name(path)).stem if table_format(path) else bare_name(path)


def name_beside(corpus: Path, what: str) -> Path:
    """Where a table that belongs to a corpus file stands: for `notes.csv` and "labels" that is
    `notes.labels.csv`.
    """
    base = base_name(corpus)
    return corpus.with_name(f"{base}.{what}{corpus.name.removeprefix(base)}")


def collect(frame: pl.LazyFrame, where: str) -> pl.DataFrame:
    """Read a lazy frame; a file that turns out to be damaged half way becomes a `DataError`
    that names `where`.
    """
    try:
        with panics_as_errors():
            return frame.collect()
    except PolarsError as error:
        what, todo = f"the table cannot be read: {first_line(error)}", "make the file again"
        raise DataError(
            what, where=where, expected="a complete, undamaged table", todo=todo
        ) from error


def string_type(dtype: pl.DataType) -> pl.DataType:
    """A type with strings in place of categories and enums, lists in place of arrays."""
    if isinstance(dtype, (pl.Categorical, pl.Enum)):
        return pl.String()
    if isinstance(dtype, (pl.List, pl.Array)):
        return pl.List(string_type(dtype.inner))  # type: ignore[arg-type]
    return dtype


def count_rows(frame: pl.LazyFrame, where: str) -> int:
    """How many rows a lazy frame has, without holding them."""
    return int(collect(frame.select(pl.len()), where).item())


def whole_numbers(column: str) -> pl.Expr:
    """A column as whole numbers; null for what is none, fractions among it."""
    value = pl.col(column).cast(pl.Float64, strict=False)
    return (
        pl.when(value == value.floor())
        .then(pl.col(column))
        .cast(pl.Int64, strict=False)
        .alias(column)
    )


def output_format(path: Path) -> str:
    """The format in which `write_table` writes a file of that name; ask before long work for
    the table.
    """
    form = table_format(path)
    packed = path.suffix.lower() if path.suffix.lower() in SUFFIXES else None
    if form is None or (packed and (form == ".parquet" or packed not in WRITTEN)):
        raise DataError(
            f"no table format goes by the name '{path.name}'",
            where=str(path),
            expected=f"a name that ends in {', '.join(FORMATS)} (.gz or .zst may follow, except "
            "after .parquet)",
            todo="choose such a name for the output, for example data.parquet",
        )
    return form


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table atomically, in the format that the name promises; lists become JSON in the
    cells of CSV and TSV.

    `DataError` if the name promises none of the formats.
    """
    form = output_format(path)
    with replacing(path) as temporary:
        if form == ".parquet":
            frame.write_parquet(temporary, compression="zstd")
        else:
            write_text_batches([frame], temporary)


def write_text_batches(frames: Iterable[pl.DataFrame], path: Path) -> None:
    """Write frames of one schema below one another, as `write_table` writes one, in a text
    format (any but Parquet), not atomically.
    """
    form = output_format(path)
    with writing_bytes(path) as stream:
        if form == ".json":
            stream.write(b"[")
        written = 0
        for number, frame in enumerate(frames):
            content = _encode(frame, form, header=number == 0)
            if form == ".json":
                content = (b"," if written and frame.height else b"") + content.strip()[1:-1]
            stream.write(content)
            written += frame.height
        if form == ".json":
            stream.write(b"]")


def guard_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts are guarded by `guard_cell`."""
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    odd = [
        name
        for name in texts
        if frame[name].str.contains(r"^[=+\-@\t\r]|[\x00-\x08\x0b-\x1f\x7f-\x9f]").any()
    ]
    return frame.with_columns(pl.col(name).map_elements(guard_cell, pl.String) for name in odd)


def _encode(frame: pl.DataFrame, form: str, *, header: bool) -> bytes:
    stream = io.BytesIO()
    if form in (".csv", ".tsv"):
        lists = [name for name, dtype in frame.schema.items() if dtype.base_type() is pl.List]
        as_json = (
            pl.col(name).map_elements(
                lambda cell: json.dumps(list(cell), ensure_ascii=False), pl.String
            )
            for name in lists
        )
        frame.with_columns(as_json).write_csv(
            stream, separator="," if form == ".csv" else "\t", include_header=header
        )
    elif form == ".json":
        frame.write_json(stream)
    else:
        frame.write_ndjson(stream)
    return stream.getvalue()


def _scan_parquet(path: Path) -> pl.LazyFrame:
    frame = pl.scan_parquet(path.absolute(), glob=False)
    try:
        with panics_as_errors():
            if not ends_as_parquet(path):
                raise ComputeError("the footer is missing")
            schema = frame.collect_schema()
            texts = {
                name: kind
                for name, dtype in schema.items()
                if (kind := string_type(dtype)) != dtype
            }
            return frame.cast(texts) if texts else frame  # type: ignore[arg-type]
    except PolarsError as error:
        raise damaged_parquet(path) from error
