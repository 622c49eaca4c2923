"""The corpus schema: what any dataset yields, read into frames of `doc_id: str, text: str, labels: list[str]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import polars as pl

from plant_cli.api.corpus import SPLITS, Dataset, Pieces, SplitName
from plant_cli.api.errors import DataError, near_names
from plant_cli.kit.labels import trim
from plant_cli.kit.tables import collect, count_rows

Table = TypeVar("Table", pl.DataFrame, pl.LazyFrame)
Frames = Mapping[SplitName, pl.DataFrame]
COLUMNS = ("doc_id", "text", "labels")
BATCH = 2_000  # documents that are in memory together where a split is read in batches


def read_frames(dataset: Dataset) -> dict[SplitName, pl.DataFrame]:
    """All splits of a dataset, in the order train, validation, test; `DataError` if there is none."""
    return {name: read_frame(dataset, name) for name in find_splits(dataset)}


def find_splits(dataset: Dataset) -> list[SplitName]:
    """The splits that a dataset has, in the order train, validation, test; `DataError` if there is none."""
    if not dataset.splits:
        raise DataError(
            "the corpus holds no documents",
            where=", ".join(dataset.files) or "the dataset",
            expected="at least one labelled training document",
            todo="look into the file: it may hold a header and no rows",
        )
    return [name for name in SPLITS if name in dataset.splits]


def read_frame(dataset: Dataset, split: SplitName) -> pl.DataFrame:
    """One split: the three columns with their types, missing texts as "", missing label lists as []; labels still as written.

    Raises:
        DataError: a column is missing or of a type that cannot hold what it should.
    """
    where = _locate(dataset, split)
    return _conform(collect(dataset.splits[split], where), where)


def read_batches(dataset: Dataset, split: SplitName, rows: range | None = None) -> Iterator[pl.DataFrame]:
    """One split as `read_frame` gives it, some documents at a time; at least one batch.

    Where the dataset has the split in pieces, its texts are never all in memory.

    Args:
        dataset: what the dataset plugin gave.
        split: which split.
        rows: only these documents; the texts of others are not read.
    """
    where, parts = _locate(dataset, split), _parts_of(dataset, split)
    empty = True
    for part in parts if rows is None else _cut_parts(parts, rows, where):
        source = collect(part, where)
        for first in range(0, source.height, BATCH):
            yield _conform(source.slice(first, BATCH), where)
            empty = False
    if empty:
        yield _conform(collect(dataset.splits[split].head(0), where), where)


def _parts_of(dataset: Dataset, split: SplitName) -> Sequence[pl.LazyFrame]:
    """A split in pieces, or whole."""
    whole, cut = dataset.splits[split], dataset.pieces.get(split)
    return [whole] if cut is None or cut.whole is not whole else cut.parts


def _cut_parts(parts: Sequence[pl.LazyFrame], rows: range, where: str) -> Iterator[pl.LazyFrame]:
    """Those rows of consecutive parts."""
    start = 0
    for part in parts:
        stop = start + count_rows(part, where)
        first, last = max(rows.start, start), min(rows.stop, stop)
        if first < last:
            yield part.slice(first - start, last - first)
        start = stop


def count_documents(dataset: Dataset, split: SplitName) -> int:
    """How many documents a split has, without reading their texts."""
    return count_rows(dataset.splits[split], _locate(dataset, split))


def _locate(dataset: Dataset, split: SplitName) -> str:
    return f"split {split} of {', '.join(dataset.files) or 'the dataset'}"


def tidy_dataset(dataset: Dataset) -> Dataset:
    """The same dataset with tidy documents in the corpus schema, still to be read, in as many pieces; `DataError` as of `read_frame`."""
    splits: dict[SplitName, pl.LazyFrame] = {}
    pieces: dict[SplitName, Pieces] = {}
    for name in find_splits(dataset):
        parts = [tidy(_conform(part, _locate(dataset, name))) for part in _parts_of(dataset, name)]
        splits[name] = pl.concat(parts)
        pieces[name] = Pieces(splits[name], parts)
    return replace(dataset, splits=splits, pieces=pieces)


def _conform(source: Table, where: str) -> Table:
    schema = source.collect_schema()
    _refuse_missing(schema.names(), where)
    if schema["text"] not in (pl.String, pl.Null):
        raise DataError(
            f"the text is of type {schema['text']}, not a string",
            where=f"{where}, column text",
            expected="the text of each document",
            todo="name the right column with --text-column",
        )
    return source.select(
        pl.col("doc_id").cast(pl.String),
        pl.col("text").cast(pl.String).fill_null(""),
        _as_label_lists(schema["labels"], where),
    )


def _refuse_missing(columns: list[str], where: str) -> None:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise DataError(
            f"there is no column '{missing[0]}'",
            where=where,
            expected=near_names(missing[0], columns),
            todo=f"the dataset must yield the columns {', '.join(COLUMNS)}",
        )


def _as_label_lists(kind: pl.DataType, where: str) -> pl.Expr:
    """The column `labels`, of a type, as lists of strings."""
    inner = kind.inner if isinstance(kind, pl.List) else kind
    scalar = inner in (pl.String, pl.Null, pl.Categorical) or (isinstance(inner, pl.DataType) and inner.is_integer())
    if isinstance(inner, pl.DataType) and (inner.is_float() or inner.is_decimal()):
        raise DataError(
            f"the labels are of type {kind}, numbers with a fraction and not lists of strings",
            where=f"{where}, column labels",
            expected='strings such as "004.60": as numbers, 004.60 and 4.6 are the same',
            todo="write these labels as strings where the file is made; if they are no labels, name another column with --labels-column",
        )
    if kind != pl.Null and not (isinstance(kind, pl.List) and scalar):
        raise DataError(
            f"the labels are of type {kind}, not lists of strings",
            where=f"{where}, column labels",
            expected='a list of labels for each document, such as ["a", "b"]',
            todo="name the right column with --labels-column",
        )
    empty = pl.lit(pl.Series([[]], dtype=pl.List(pl.String)))
    return pl.col("labels").cast(pl.List(pl.String)).fill_null(empty).list.drop_nulls()


def tidy(frame: Table) -> Table:
    """The same documents with labels trimmed, empty ones dropped, and each only once in a document (in the order of the first)."""
    trimmed = pl.col("labels").list.eval(trim(pl.element()).filter(pl.element().str.contains(r"\S")))
    return frame.with_columns(trimmed.list.unique(maintain_order=True))


def explode_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """One row for each (document, label): `row: u32` (row number in the frame), `doc_id`, `label`."""
    rows = frame.select("doc_id", label="labels").with_row_index("row")
    return rows.explode("label").filter(pl.col("label").is_not_null())
