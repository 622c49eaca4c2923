"""Batches of a table with the labels of their texts: what Ray Data, Dask, Spark and polars map over
a table, a batch at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl

from plant_cli.api import UsageError, near_names

LABELLED = ("labels", "scores", "bands")  # the columns that a batch gets
Columns = Mapping[str, Sequence[Sequence[Any]]]


def read_texts(batch: Any, column: str) -> list[str]:
    """The texts of a batch; one that is missing is empty.

    Raises:
        UsageError: there is no such column, the batch has one of `LABELLED` already, or it is none
            of the kinds that `add_columns` knows.
    """
    if isinstance(batch, str):
        raise _unknown_kind(batch)
    if isinstance(batch, Sequence):
        return [text or "" for text in batch]
    kind = _find_kind(batch)
    names = _name_columns(batch, kind)
    if column not in names:
        raise UsageError(
            f"the batch has no column '{column}'",
            where=f"columns: {', '.join(names)}",
            expected=f"a column of texts; {near_names(column, names)}",
            todo="name it: label(batch, text='…')",
        )
    if taken := [name for name in LABELLED if name in names]:
        raise UsageError(
            f"the batch has a column '{taken[0]}' already",
            where=f"columns: {', '.join(names)}",
            expected=f"a batch without {', '.join(LABELLED)}, which it gets",
            todo="rename or leave out this column first",
        )
    given = batch[column]
    values = given.to_pylist() if kind == "pyarrow" else list(given)
    return [text if isinstance(text, str) else "" for text in values]


def add_columns(batch: Any, columns: Columns) -> Any:
    """The batch with further columns of lists, as the kind that it is: a DataFrame of polars or
    pandas, a Table or RecordBatch of Arrow, or a mapping of columns, as Ray has it. Of a list of
    texts such a mapping is made.
    """
    if isinstance(batch, Sequence):
        return {"text": list(batch), **columns}
    kind = _find_kind(batch)
    if kind == "pandas":
        return batch.assign(**columns)
    if kind == "mapping":
        return {**batch, **{name: _as_objects(values) for name, values in columns.items()}}
    if kind == "polars":
        numbers, words = pl.List(pl.Float64), pl.List(pl.String)
        return batch.with_columns(
            pl.Series(name, values, dtype=numbers if name == "scores" else words)
            for name, values in columns.items()
        )
    arrow: Any = import_module("pyarrow")  # polars would give large lists, which Spark refuses
    for name, values in columns.items():
        item = arrow.float64() if name == "scores" else arrow.string()
        batch = batch.append_column(name, arrow.array(values, arrow.list_(item)))
    return batch


def _as_objects(values: Sequence[Sequence[Any]]) -> Any:
    """A list in each cell [N]; `np.array` would make a matrix of lists of one length."""
    return np.fromiter(values, dtype=object, count=len(values))


def _find_kind(batch: Any) -> str:
    """`polars`, `pandas`, `pyarrow` or `mapping`; nothing is imported to find out."""
    package = type(batch).__module__.partition(".")[0]
    if package in ("polars", "pandas", "pyarrow") and hasattr(batch, "columns"):
        return package
    if isinstance(batch, Mapping):
        return "mapping"
    raise _unknown_kind(batch)


def _name_columns(batch: Any, kind: str) -> list[str]:
    if kind == "mapping":
        return [str(name) for name in batch]
    return [str(name) for name in (batch.schema.names if kind == "pyarrow" else batch.columns)]


def _unknown_kind(batch: Any) -> UsageError:
    return UsageError(
        f"a batch is given as {type(batch).__name__}",
        where="the batch",
        expected="a list of texts, a mapping of columns, a DataFrame of polars or pandas, a Table "
        "or RecordBatch of Arrow",
        todo="make one of these of it",
    )
