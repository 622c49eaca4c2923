"""Parquet files: damage as an error instead of a panic, and files written piece by piece."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import ComputeError, PanicException
from polars.io.plugins import register_io_source

from plant_cli.data.files import replacing

_SHORTAGE = re.compile(
    r"out of memory|memory alloc|not allocate|spawn|ThreadPoolBuild|too many open "
    r"files|temporarily unavailable",
    re.I,
)


def speaks_of_shortage(panic: BaseException) -> bool:
    """Whether a panic is for want of memory, threads or open files, not for what was read."""
    return _SHORTAGE.search(str(panic)) is not None


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn a panic inside into polars' `ComputeError`; one for want of memory, threads or open
    files goes through.
    """
    try:
        yield
    except PanicException as panic:
        if speaks_of_shortage(panic):
            raise
        reason = (str(panic).strip().splitlines() or ["it does not say why"])[0]
        raise ComputeError(f"its structure makes no sense: {reason[:120]}") from panic


def write_parquet(
    frame: pl.DataFrame, path: Path, metadata: Mapping[str, str] | None = None
) -> None:
    """Write a frame that is in memory, atomically."""
    with replacing(path) as temporary:
        frame.write_parquet(temporary, metadata=None if metadata is None else dict(metadata))


ROW_GROUP = 1 << 18


def write_frames(
    path: Path,
    frames: Iterable[pl.DataFrame],
    schema: Mapping[str, pl.DataType],
    metadata: Mapping[str, str],
    row_group: int = ROW_GROUP,
) -> None:
    """Write frames of one schema below one another, atomically; they are taken one at a time,
    from another thread.
    """
    failures: list[Exception] = []

    def read(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield from frames
        except Exception as error:
            failures.append(error)
            raise

    with (
        replacing(path) as temporary,
        temporary.open("wb") as file,
    ):  # opened here: polars may open it after what failed is cleared away
        try:
            rows = register_io_source(read, schema=dict(schema))
            rows.sink_parquet(
                file, metadata=dict(metadata), row_group_size=row_group, engine="streaming"
            )
        except Exception:
            if failures:  # some versions of polars wrap it in an error of their own
                raise failures[0] from None
            raise
