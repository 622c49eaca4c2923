"""The corpus schema: what any dataset yields, read into frames of `doc_id: str, text: str, labels: list[str]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from plant_cli.api.corpus import SPLITS, Dataset, SplitName
from plant_cli.api.errors import DataError, near_names
from plant_cli.kit.tables import collect, count_rows

Frames = Mapping[SplitName, pl.DataFrame]
COLUMNS = ("doc_id", "text", "labels")
BATCH = 2_000  # documents that are in memory together where a split is read in batches
_BLANKS = r"^\s+|\s+$"


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


def read_batches(dataset: Dataset, split: SplitName) -> Iterator[pl.DataFrame]:
    """One split as `read_frame` gives it, some documents at a time; at least one batch.

    Where the dataset has the split in pieces, its texts are never all in memory.
    """
    where, whole = _locate(dataset, split), dataset.splits[split]
    cut = dataset.pieces.get(split)
    parts = [whole] if cut is None or cut.whole is not whole else cut.parts
    empty = True
    for part in parts:
        source = collect(part, where)
        for first in range(0, source.height, BATCH):
            yield _conform(source.slice(first, BATCH), where)
            empty = False
    if empty:
        yield _conform(collect(whole.head(0), where), where)


def count_documents(dataset: Dataset, split: SplitName) -> int:
    """How many documents a split has, without reading their texts."""
    return count_rows(dataset.splits[split], _locate(dataset, split))


def _locate(dataset: Dataset, split: SplitName) -> str:
    return f"split {split} of {', '.join(dataset.files) or 'the dataset'}"


def _conform(source: pl.DataFrame, where: str) -> pl.DataFrame:
    _refuse_missing(source.columns, where)
    if source["text"].dtype not in (pl.String, pl.Null):
        raise DataError(
            f"the text is of type {source['text'].dtype}, not a string",
            where=f"{where}, column text",
            expected="the text of each document",
            todo="name the right column with --text-column",
        )
    return source.select(
        pl.col("doc_id").cast(pl.String),
        pl.col("text").cast(pl.String).fill_null(""),
        _as_label_lists(source["labels"], where).alias("labels"),
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


def _as_label_lists(column: pl.Series, where: str) -> pl.Series:
    inner = column.dtype.inner if isinstance(column.dtype, pl.List) else column.dtype
    scalar = inner in (pl.String, pl.Null, pl.Categorical) or (isinstance(inner, pl.DataType) and inner.is_integer())
    if isinstance(inner, pl.DataType) and (inner.is_float() or inner.is_decimal()):
        raise DataError(
            f"the labels are of type {column.dtype}, numbers with a fraction and not lists of strings",
            where=f"{where}, column labels",
            expected='strings such as "004.60": as numbers, 004.60 and 4.6 are the same',
            todo="write these labels as strings where the file is made; if they are no labels, name another column with --labels-column",
        )
    if column.dtype != pl.Null and not (isinstance(column.dtype, pl.List) and scalar):
        raise DataError(
            f"the labels are of type {column.dtype}, not lists of strings",
            where=f"{where}, column labels",
            expected='a list of labels for each document, such as ["a", "b"]',
            todo="name the right column with --labels-column",
        )
    filled = column.cast(pl.List(pl.String)).fill_null(pl.Series([[]], dtype=pl.List(pl.String)))
    return filled.list.drop_nulls()


def trim(labels: pl.Expr) -> pl.Expr:
    """Labels without the blanks around them."""
    return labels.str.replace_all(_BLANKS, "")


def tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """The same documents with labels trimmed, empty ones dropped, and each only once in a document (in the order of the first)."""
    trimmed = pl.col("labels").list.eval(trim(pl.element()).filter(pl.element().str.contains(r"\S")))
    return frame.with_columns(trimmed.list.unique(maintain_order=True))


def explode_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """One row for each (document, label): `row: u32` (row number in the frame), `doc_id`, `label`."""
    rows = frame.select("doc_id", label="labels").with_row_index("row")
    return rows.explode("label").filter(pl.col("label").is_not_null())
