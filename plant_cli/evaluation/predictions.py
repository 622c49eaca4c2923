"""Reading predictions, our own or another tool's, and laying them beside gold."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api.errors import DataError, near_names
from plant_cli.api.metrics import MetricInput
from plant_cli.api.reporting import Reporter
from plant_cli.corpus.frames import trim
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.gold import Gold
from plant_cli.kit.metrics import Floats, Integers, ScoreTable
from plant_cli.kit.tables import collect, scan_table
from plant_cli.kit.text_tables import shorten, show_names

FORM = "columns doc_id (string), labels (list of string), scores (list of number), as Parquet, JSON lines, or CSV with lists in JSON"
UNKNOWN = -2  # a predicted label that the corpus has nowhere: it takes a rank and is always wrong
EXAMPLES = 5
_FEW_UNKNOWN = 0.05  # of the predicted labels; where more are unknown to the corpus, they may be written otherwise there


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions in the order of the gold documents.

    Args:
        top: label indices [N, K] by falling score, ties by label index; −1 where fewer were predicted, −2 unknown labels.
        scores: their scores [N, K], −inf where there is none.
        unknown: how many predicted labels the corpus has nowhere.
    """

    top: Integers
    scores: Floats
    unknown: int


def read_predictions(path: Path, gold: Gold, reporter: Reporter | None = None) -> Predictions:
    """Read a predictions file and align it to gold by document id.

    The order of documents, and of labels within a document, does not matter; nor do blanks around labels.

    Args:
        path: the file.
        gold: of the split that was predicted.
        reporter: told where many predicted labels are unknown to the corpus.

    Raises:
        DataError: not a predictions table; documents missing, unknown or repeated; a label repeated in a document; lists of
            different length; a score that is missing or not a number; no predicted label that the corpus has.
    """
    frame = _read_frame(path)
    _check_documents(frame["doc_id"], gold, path)
    ranked = _rank(_list_cells(frame, path), gold, path)
    _heed_unknown(ranked, gold, path, reporter)
    rows, places = ranked["row"].to_numpy(), ranked["place"].to_numpy()
    shape = (len(gold.doc_ids), max(int(places.max()) + 1 if len(places) else 0, 1))
    top, scores = np.full(shape, -1, dtype=np.int64), np.full(shape, -np.inf)
    found = ranked["index"].fill_null(UNKNOWN).to_numpy()
    top[rows, places], scores[rows, places] = found, ranked["score"].to_numpy()
    return Predictions(top=top, scores=scores, unknown=int((found == UNKNOWN).sum()))


def build_input(
    predictions: Predictions, gold: Gold, threshold: float | Floats, convention: Convention, scores: ScoreTable | None = None
) -> MetricInput:
    """What metrics are computed from: the documents that the convention keeps.

    Args:
        predictions: aligned to gold.
        gold: of the same split.
        threshold: one number, or one per label of train [L].
        convention: see `conventions`.
        scores: every score of the gold documents, where they were kept.
    """
    kept = np.flatnonzero(keep_documents(gold, convention))
    if isinstance(threshold, np.ndarray):  # a model with thresholds of its own never proposes a label that it has not seen
        threshold = np.append(threshold, np.full(len(gold.labels) - threshold.size, np.inf))
    return MetricInput(
        top=predictions.top[kept],
        scores=predictions.scores[kept],
        gold=gold.matrix[kept],
        unseen=np.zeros(kept.size, dtype=np.int64),
        train_counts=gold.train_counts,
        train_documents=gold.train_documents,
        threshold=threshold,
        settings=convention.settings,
        all_scores=scores and replace(scores, rows=scores.rows[kept]),
    )


def keep_documents(gold: Gold, convention: Convention) -> npt.NDArray[np.bool_]:
    """Which documents [N] the averages are over."""
    return np.ones(len(gold.doc_ids), dtype=bool) if convention.keeps_empty else gold.sizes > 0


def _read_frame(path: Path) -> pl.DataFrame:
    frame = collect(scan_table(path), str(path))
    for name in ("doc_id", "labels", "scores"):
        if name not in frame.columns:
            raise DataError(
                f"the predictions have no column '{name}'",
                where=f"{path}, columns {show_names(frame.columns)}",
                expected=f"{FORM}; {near_names(name, map(shorten, frame.columns))}",
                todo=f"rename the column to '{name}'",
            )
    frame = frame.with_columns(_parse_lists(frame, name, path) for name in ("labels", "scores") if frame.schema[name] == pl.String)
    try:
        return frame.select(
            pl.col("doc_id").cast(pl.String), pl.col("labels").cast(pl.List(pl.String)), pl.col("scores").cast(pl.List(pl.Float64))
        )
    except pl.exceptions.PolarsError as error:
        types = ", ".join(f"{name}: {frame.schema[name]}" for name in ("doc_id", "labels", "scores"))
        raise DataError("the predictions have the wrong types", where=f"{path}, {types}", expected=FORM, todo="write lists") from error


def _parse_lists(frame: pl.DataFrame, name: str, path: Path) -> pl.Series:
    """Lists of a column of CSV or TSV, where they stand as JSON; an empty cell is an empty list."""
    what, example, dtype = ("strings", '["a", "b"]', pl.String) if name == "labels" else ("numbers", "[0.9, 0.2]", pl.Float64)
    lists = []
    for row, cell in enumerate(frame[name], start=1):
        values = _parse_list(cell or "[]", name)
        if values is None:
            raise DataError(
                f"the {name} are not a list of {what} in JSON: {cell[:60]}",
                where=f"{path}, column {name}, row {row}",
                expected=f"a list in each cell, such as {example}; `plant suggest -O x.csv` writes them so",
                todo="write the lists as JSON, or the table as Parquet or JSON lines",
            )
        lists.append(values)
    return pl.Series(name, lists, dtype=pl.List(dtype))


def _parse_list(cell: str, name: str) -> list[Any] | None:
    try:
        values = json.loads(cell)
        if not isinstance(values, list) or any(isinstance(value, bool) for value in values):
            return None
        if name == "scores":
            return [None if value is None else float(value) for value in values]
        "".join(map(str, values)).encode()  # half a character (a lone surrogate) is no string
        return [str(value) for value in values] if all(isinstance(value, str | int) for value in values) else None
    except (ValueError, TypeError, OverflowError):
        return None


def _check_documents(doc_ids: pl.Series, gold: Gold, path: Path) -> None:
    wanted, given = set(gold.doc_ids), set(doc_ids)
    repeated = sorted(doc_ids.filter(doc_ids.is_duplicated()).unique().drop_nulls().to_list())
    missing, extra = [d for d in gold.doc_ids if d not in given], [str(d) for d in doc_ids if d not in wanted]
    for documents, what in (
        (repeated, "predicted more than once"),
        (missing, f"of the {gold.split} split without predictions"),
        (extra, f"predicted that the {gold.split} split does not have"),
    ):
        if documents:
            shown = ", ".join(documents[:EXAMPLES]) + (", …" if len(documents) > EXAMPLES else "")
            raise DataError(
                f"{len(documents)} documents {what}: {shown}",
                where=str(path),
                expected=f"one row for each of its {len(gold.doc_ids)} documents (an empty list where nothing applies)",
                todo="predict exactly that split, or choose another one with --split",
            )


def _list_cells(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """One row per predicted label: doc_id, label, score."""
    labels, scores = pl.col("labels").list.len().fill_null(0), pl.col("scores").list.len().fill_null(0)
    uneven = frame.filter(labels != scores)
    if len(uneven):
        raise _fault("labels and scores differ in number", uneven["doc_id"][0], path, "one score for each label")
    cells = frame.filter(labels > 0).explode("labels", "scores").rename({"labels": "label", "scores": "score"})
    cells = cells.with_columns(trim(pl.col("label")))
    bad = cells.filter(pl.col("score").is_null() | pl.col("score").is_nan() | pl.col("label").is_null())
    if len(bad):
        raise _fault(f"the score of label {bad['label'][0]} is not a number", bad["doc_id"][0], path, "a number for each label")
    return cells


def _rank(cells: pl.DataFrame, gold: Gold, path: Path) -> pl.DataFrame:
    """Cells with row, label index (null: unknown) and place; ties of score by label index, unknown labels after known ones."""
    documents = pl.DataFrame({"doc_id": gold.doc_ids}, schema={"doc_id": pl.String}).with_row_index("row")
    labels = pl.DataFrame({"label": gold.labels}, schema={"label": pl.String}).with_row_index("index").cast({"index": pl.Int64})
    joined = cells.join(documents, on="doc_id").join(labels, on="label", how="left")
    repeated = joined.filter(pl.struct("row", "label").is_duplicated())
    if len(repeated):
        raise _fault(f"label {repeated['label'][0]} is predicted twice", repeated["doc_id"][0], path, "each label at most once a document")
    order = joined.sort("row", "score", "index", "label", descending=[False, True, False, False], nulls_last=True)
    return order.with_columns(place=pl.int_range(pl.len()).over("row"))


def _heed_unknown(ranked: pl.DataFrame, gold: Gold, path: Path, reporter: Reporter | None) -> None:
    """Labels that neither train nor the gold of the split has: an error where all are such, a warning where more than a few are."""
    unknown = ranked.filter(pl.col("index").is_null())["label"]
    if len(unknown) <= _FEW_UNKNOWN * len(ranked):
        return
    counts = unknown.value_counts().sort("count", "label", descending=[True, False])
    shown = ", ".join(f"'{label}'" for label in counts["label"].head(EXAMPLES)) + (", …" if len(counts) > EXAMPLES else "")
    near = f"for '{counts['label'][0]}': {near_names(counts['label'][0], gold.labels)}"
    if len(unknown) == len(ranked):
        raise DataError(
            f"none of the {len(ranked):,} predicted labels is known to the corpus: {shown}",
            where=str(path),
            expected=f"labels as the corpus writes them; {near}",
            todo="write the labels (not their titles or numbers) as they stand in the corpus, or name the corpus that was predicted",
        )
    if reporter is not None:
        many = f"{len(unknown):,} of {len(ranked):,} predicted labels are unknown to the corpus: each keeps its rank and counts as wrong"
        reporter.warn(f"{many} ({path}: {shown}; {near})")


def _fault(what: str, document: str, path: Path, expected: str) -> DataError:
    return DataError(what, where=f"{path}, document {document}", expected=expected, todo="look at how this file was written")
