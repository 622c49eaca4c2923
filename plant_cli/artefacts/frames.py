"""Parquet files written piece by piece, so that no more than a few pieces are in memory at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from plant_cli.base.files import replacing

ROW_GROUP = 1 << 18


def write_frames(
    path: Path,
    frames: Iterable[pl.DataFrame],
    schema: Mapping[str, pl.DataType],
    metadata: Mapping[str, str],
    row_group: int = ROW_GROUP,
) -> None:
    """Write frames of one schema below one another, atomically; they are taken one at a time, from another thread.

    Args:
        path: the file.
        frames: what goes into it.
        schema: of all frames.
        metadata: of the file.
        row_group: rows that are written, and later read, together.

    Raises:
        Exception: whatever `frames` raised; the file is then not there.
    """
    failures: list[Exception] = []

    def read(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield from frames
        except Exception as error:
            failures.append(error)
            raise

    with replacing(path) as temporary, temporary.open("wb") as file:  # opened here: polars may open it after what failed is cleared away
        try:
            rows = register_io_source(read, schema=dict(schema))
            rows.sink_parquet(file, metadata=dict(metadata), row_group_size=row_group, engine="streaming")
        except Exception:
            if failures:  # some versions of polars wrap it in an error of their own
                raise failures[0] from None
            raise
