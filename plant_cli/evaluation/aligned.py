"""Predictions of ours or of another tool, read and aligned to gold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from plant_cli.api import DataError, Hierarchy, MetricInput, Reporter, misread, near_names
from plant_cli.api.errors import first_names
from plant_cli.data.records import require_recorded
from plant_cli.data.tables import trim
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.counters import Floats, Integers, ScoreTable
from plant_cli.evaluation.foreign import Numbering, read_foreign
from plant_cli.evaluation.gold import Gold
from plant_cli.evaluation.mismatches import find_mismatch
from plant_cli.scoring.predictions import INDICES, read_indexed

UNNUMBERED = Numbering()
EXAMPLES = 5
# of the predicted labels; where more are unknown to the corpus, they may be written otherwise there
_FEW_UNKNOWN = 0.05


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """Predictions in the order of the gold documents."""

    top: Integers
    """Columns of gold [N, K] by falling score, ties by column; −1 for a label that the corpus
    has nowhere, and behind the last one.
    """
    scores: Floats  # their scores [N, K], −inf behind the last prediction
    unknown: int  # how many predicted labels the corpus has nowhere


def read_predictions(
    path: Path, gold: Gold, reporter: Reporter | None = None, numbering: Numbering = UNNUMBERED
) -> Predictions:
    """Read a predictions file, of ours or of another tool (see `foreign`), and align it to gold by
    document id.

    Neither the order of documents and labels nor blanks around labels matter. Our predictions are
    read by label index if they have the label order of gold, all others by the names of labels.
    `numbering`: what numbers in the file stand for, and which pairs do not count.
    """
    require_recorded(path.parent, path.name)
    indexed = read_indexed(path, gold.label_hash)
    if indexed is not None:
        frame, pairs_alone = indexed.rename({INDICES: "labels"}), False
    else:
        foreign = read_foreign(path, gold, numbering)
        frame, pairs_alone = foreign.frame, foreign.pairs
        if reporter is not None and foreign.form:
            numbers = (
                f"; numbers of labels by a list of {len(numbering.labels)}"
                if numbering.labels
                else ""
            )
            reporter.note(f"{path} is read as {foreign.form}: {len(frame)} documents{numbers}")
            for remark in foreign.remarks:
                reporter.note(f"{path}: {remark}")
    _check_documents(frame["doc_id"], gold, path, pairs=pairs_alone, reporter=reporter)
    documents = (
        pl.DataFrame({"doc_id": gold.doc_ids}, schema={"doc_id": pl.String})
        .with_row_index("row")
        .cast({"row": pl.Int64})
    )
    pairs = _list_pairs(frame, path).join(documents, on="doc_id", maintain_order="left")
    if indexed is None:
        pairs = _number_labels(pairs, gold, path)
        _judge_unknown(pairs, gold, path, reporter)
        _judge_scores(pairs, path, reporter)
    pairs = _remove_pairs(pairs, gold, numbering, path)
    columns = pairs["label"].cast(pl.Int64).fill_null(-1).to_numpy()
    top, scores = _rank(
        pairs["row"].to_numpy(), columns, pairs["score"].to_numpy(), len(gold.doc_ids)
    )
    return Predictions(top=top, scores=scores, unknown=int((columns == -1).sum()))


def _remove_pairs(
    pairs: pl.DataFrame, gold: Gold, numbering: Numbering, path: Path
) -> pl.DataFrame:
    """Leave out the pairs that the corpus excludes, and those that the user excludes by row and
    number of the label.
    """
    if not numbering.removed and not len(gold.excluded):
        return pairs
    columns = {label: column for column, label in enumerate(gold.labels)}
    named = [
        (row, columns.get(numbering.name(label, str(path))))
        for row, label in sorted(numbering.removed)
    ]
    named += map(tuple, gold.excluded.tolist())
    removed = pl.DataFrame(
        named, schema={"row": pl.Int64, "label": pl.Int64}, orient="row"
    ).drop_nulls()
    kept = pairs.with_columns(pl.col("label").cast(pl.Int64))
    return kept.join(removed, on=["row", "label"], how="anti", maintain_order="left")


def _rank(
    rows: Integers, columns: Integers, scores: Floats, documents: int
) -> tuple[Integers, Floats]:
    """Predicted pairs [n] as `Predictions.top` and `.scores` [N, K]; ties of score by column,
    unknown labels (−1) last.
    """
    last = np.where(columns == -1, np.iinfo(np.int64).max, columns)
    falling = (scores[1:] < scores[:-1]) | ((scores[1:] == scores[:-1]) & (last[1:] >= last[:-1]))
    in_order = (rows[1:] > rows[:-1]) | ((rows[1:] == rows[:-1]) & falling)
    if not in_order.all():  # our own predictions nearly always are
        order = np.lexsort((last, -scores, rows))
        rows, columns, scores = rows[order], columns[order], scores[order]
    ranks = np.arange(rows.size) - np.searchsorted(rows, rows)
    shape = (documents, int(ranks.max(initial=0)) + 1)
    top, ranked = np.full(shape, -1, dtype=np.int64), np.full(shape, -np.inf)
    top[rows, ranks], ranked[rows, ranks] = columns, scores
    return top, ranked


def build_input(
    predictions: Predictions,
    gold: Gold,
    threshold: float | Floats,
    convention: Convention,
    scores: ScoreTable | None = None,
    hierarchy: Hierarchy | None = None,
) -> MetricInput:
    """What metrics are computed from: the documents that the convention keeps. `threshold`: one
    number, or one per label of train [L].
    """
    if not gold.matrix.nnz:
        raise DataError(
            f"no document of the {gold.split} split has a gold label",
            where=f"the corpus, {len(gold.doc_ids)} documents of {gold.split}",
            expected="gold labels to measure against",
            todo="choose another split with --split",
        )
    kept = np.flatnonzero(keep_documents(gold, convention))
    if isinstance(
        threshold, np.ndarray
    ):  # with thresholds per label, labels unseen in train are never assigned
        threshold = np.append(threshold, np.full(len(gold.labels) - threshold.size, np.inf))
    return MetricInput(
        top=predictions.top[kept],
        scores=predictions.scores[kept],
        gold=gold.matrix[kept],
        train_counts=gold.train_counts,
        train_documents=gold.train_documents,
        threshold=threshold,
        settings=convention.settings,
        all_scores=scores and replace(scores, rows=scores.rows[kept]),
        hierarchy=hierarchy,
    )


def keep_documents(gold: Gold, convention: Convention) -> npt.NDArray[np.bool_]:
    """Which documents [N] count under a convention."""
    return np.ones(len(gold.doc_ids), dtype=bool) if convention.keeps_empty else gold.sizes > 0


def _check_documents(
    doc_ids: pl.Series, gold: Gold, path: Path, *, pairs: bool, reporter: Reporter | None
) -> None:
    """Refuse documents that are missing, foreign or repeated; where `pairs` is set, a document
    without a row has no predictions.
    """
    wanted, predicted = set(gold.doc_ids), set(doc_ids)
    repeated = sorted(doc_ids.filter(doc_ids.is_duplicated()).unique().drop_nulls().to_list())
    missing, extra = (
        [d for d in gold.doc_ids if d not in predicted],
        [str(d) for d in doc_ids if d not in wanted],
    )
    expected = (
        f"one row for each of its {len(gold.doc_ids)} documents (an empty list where nothing "
        "applies)"
    )
    if pairs:
        expected = f"ids of its {len(gold.doc_ids)} documents"
    todo = "predict exactly that split, or choose another one with --split"
    if extra and missing and (cause := find_mismatch(extra, missing)) is not None:
        expected, todo = (
            f"{expected}; {cause}",
            "write the ids as the corpus has them (in pandas, read them with dtype=str)",
        )
    elif extra:
        rows = all(one.isdecimal() and int(one[:9]) <= len(gold.doc_ids) for one in extra)
        expected += f", such as {', '.join(gold.doc_ids[:EXAMPLES])}" + (
            "; these are perhaps numbers of rows" if rows else ""
        )
    lacking = [] if pairs and len(missing) < len(gold.doc_ids) else missing
    for documents, what in (
        (repeated, "predicted more than once"),
        (
            lacking if not (extra and pairs) else [],
            f"of the {gold.split} split without predictions",
        ),
        (extra, f"predicted that the {gold.split} split does not have"),
    ):
        if documents:
            raise DataError(
                f"{len(documents)} documents {what}: {first_names(documents, EXAMPLES)}",
                where=str(path),
                expected=expected,
                todo=todo,
            )
    if missing and reporter is not None:
        say = reporter.warn if 2 * len(missing) >= len(gold.doc_ids) else reporter.note
        say(
            f"{len(missing):,} of {len(gold.doc_ids):,} documents have no row in {path}: they "
            "count as documents without predictions"
        )


def _list_pairs(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """One row per predicted label: doc_id, label (name or index), score."""
    labels, scores = (
        pl.col("labels").list.len().fill_null(0),
        pl.col("scores").list.len().fill_null(0),
    )
    uneven = frame.filter(labels != scores)
    if len(uneven):
        raise misread(
            "labels and scores differ in number",
            f"{path}, document {uneven['doc_id'][0]}",
            "one score for each label",
        )
    pairs = (
        frame.filter(labels > 0)
        .explode("labels", "scores")
        .rename({"labels": "label", "scores": "score"})
    )
    bad = pairs.filter(~pl.col("score").is_finite().fill_null(False) | pl.col("label").is_null())
    if len(bad):
        raise misread(
            f"the score of label {bad['label'][0]} is not a number",
            f"{path}, document {bad['doc_id'][0]}",
            "a finite number for each label",
        )
    return pairs


def _number_labels(pairs: pl.DataFrame, gold: Gold, path: Path) -> pl.DataFrame:
    """Pairs with names of labels, and their columns of gold in place of them (null: unknown)."""
    named = pairs.with_columns(name=trim(pl.col("label"))).drop("label")
    labels = pl.DataFrame({"name": gold.labels}, schema={"name": pl.String}).with_row_index("label")
    repeated = named.filter(pl.struct("row", "name").is_duplicated())
    if len(repeated):
        raise misread(
            f"label {repeated['name'][0]} is predicted twice",
            f"{path}, document {repeated['doc_id'][0]}",
            "each label at most once a document",
        )
    return named.join(labels, on="name", how="left", maintain_order="left")


def _judge_unknown(pairs: pl.DataFrame, gold: Gold, path: Path, reporter: Reporter | None) -> None:
    """Labels that neither train nor the gold of the split has: an error where all are such, a
    warning where many, or written otherwise.
    """
    unknown = pairs.filter(pl.col("label").is_null())["name"]
    if not len(unknown):
        return
    counts = unknown.value_counts().sort("count", "name", descending=[True, False])
    titles = {title: label for label, title in zip(gold.labels, gold.titles, strict=True) if title}
    titled = next((name for name in counts["name"] if name in titles), None)
    cause = find_mismatch(counts["name"], gold.labels)
    if len(unknown) <= _FEW_UNKNOWN * len(pairs) and cause is None:
        return
    shown = first_names([f"'{name}'" for name in counts["name"]], EXAMPLES)
    near = f"for '{counts['name'][0]}': {near_names(counts['name'][0], gold.labels)}"
    if titled is not None and (cause is None or 2 * cause.count < len(counts)):
        near = f"'{titled}' is the title of '{titles[titled]}'"
    elif cause is not None:
        near = str(cause)
    if len(unknown) == len(pairs):
        raise DataError(
            f"none of the {len(pairs):,} predicted labels is known to the corpus: {shown}",
            where=str(path),
            expected=f"labels as the corpus writes them; {near}",
            todo="write the labels (not their titles or numbers) as the corpus writes them, or "
            "name the corpus that was predicted; "
            "--label-order says which label a number is",
        )
    if reporter is not None:
        many = (
            f"{len(unknown):,} of {len(pairs):,} predicted labels are unknown to the corpus: "
            "each keeps its rank and counts as wrong"
        )
        reporter.warn(f"{many} ({path}: {shown}; {near})")


def _judge_scores(pairs: pl.DataFrame, path: Path, reporter: Reporter | None) -> None:
    """Warn of predictions that are empty, and of scores that rank nothing."""
    if reporter is None:
        return
    if not len(pairs):
        reporter.warn(
            f"{path} holds no predictions: every document has an empty list, so no label is right"
        )
    elif pairs["score"].n_unique() == 1 and pairs["doc_id"].is_duplicated().any():
        reporter.warn(
            f"{path}: every score is {pairs['score'][0]:g}: equal scores are ordered by label, so "
            "metrics of ranks (P@k, R@k, nDCG@k) "
            "depend on this order"
        )
