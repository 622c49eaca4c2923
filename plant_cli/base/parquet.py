"""Parquet that polars cannot read: where it panics instead of refusing, the panic becomes an error like that of any other damage."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from polars.exceptions import ComputeError, PanicException

_SHORTAGE = re.compile(r"out of memory|memory alloc|not allocate|spawn|ThreadPoolBuild|too many open files|temporarily unavailable", re.I)


def speaks_of_shortage(panic: BaseException) -> bool:
    """Whether a panic is for want of memory, threads or open files, not for what was read."""
    return _SHORTAGE.search(str(panic)) is not None


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Turn a panic inside into polars' `ComputeError`; one for want of memory, threads or open files goes through."""
    try:
        yield
    except PanicException as panic:
        if speaks_of_shortage(panic):
            raise
        reason = (str(panic).strip().splitlines() or ["it does not say why"])[0]
        raise ComputeError(f"its structure makes no sense: {reason[:120]}") from panic
