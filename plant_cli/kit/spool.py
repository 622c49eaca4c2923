"""Documents that memory should not hold: they wait in Parquet files, which vanish when the process ends."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from shutil import rmtree

import polars as pl

from plant_cli.base.files import naming_full_disk

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
