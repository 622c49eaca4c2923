"""Which documents and labels changed from one system to another, and where the harm is greatest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api.metrics import MetricInput
from plant_cli.evaluation.counters import (
    Booleans,
    Integers,
    divide,
    mark_pairs,
)
from plant_cli.evaluation.gold import Gold

LABEL_CHANGES = ("lost", "wrong", "gained", "mended")


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What changed from system A to system B. `harm` is the number of errors of B beyond those
    of A.
    """

    documents: pl.DataFrame
    """A row for each document whose labels changed: `doc_id`, errors of A and B, `harm`, and
    lists of labels: `lost` (right, only A has them), `wrong` (wrong, only B has them), `gained`
    (right, only B) and `mended` (wrong, only A).
    """
    labels: pl.DataFrame
    """A row for each label that changed anywhere: `label`, `title`, `train_count`, errors,
    `harm`, how many documents are `lost`, `wrong`, `gained` and `mended`, and F1 of A and B.
    """
    unchanged: int  # documents whose labels are the same
    errors: tuple[int, int]  # of A and of B, labels unknown to the corpus included


def find_label_changes(a: MetricInput, b: MetricInput, gold: Gold, k: int | None = None) -> Changes:
    """Compare what two systems assign to all documents of gold.

    An error is a label that is assigned and not gold, or gold and not assigned. A document's harm
    adds up over its labels, and a label's over its documents. `k`: take the k highest-scored labels
    as assigned; None: those that reach the threshold.
    """
    chosen: list[Booleans] = [
        data.assigned if k is None else data.predicted & (np.arange(data.top.shape[1]) < k)
        for data in (a, b)
    ]
    ours, theirs = (mark_pairs(data, where) for data, where in zip((a, b), chosen, strict=True))
    unknown = [
        (where & (data.top < 0)).sum(axis=1) for data, where in zip((a, b), chosen, strict=True)
    ]
    right = gold.matrix.astype(np.int64)
    only_ours, only_theirs = ours - ours * theirs, theirs - ours * theirs
    parts = {
        "lost": only_ours * right,
        "wrong": only_theirs - only_theirs * right,
        "gained": only_theirs * right,
        "mended": only_ours - only_ours * right,
    }
    errors = [
        _count_errors(marked, right, axis=1) + extra
        for marked, extra in zip((ours, theirs), unknown, strict=True)
    ]
    changed = (
        sum(np.asarray(part.sum(axis=1)) for part in parts.values()) + (unknown[0] != unknown[1])
        > 0
    )
    return Changes(
        documents=_list_documents(gold, parts, errors, np.flatnonzero(changed)),
        labels=_list_labels(gold, parts, (ours, theirs), right),
        unchanged=int((~changed).sum()),
        errors=(int(errors[0].sum()), int(errors[1].sum())),
    )


def _count_errors(marked: csr_array, right: csr_array, axis: int) -> Integers:
    both = marked * right
    counts: Integers = np.asarray((marked + right - 2 * both).sum(axis=axis)).ravel()
    return counts


def _list_documents(
    gold: Gold, parts: dict[str, csr_array], errors: list[Integers], rows: Integers
) -> pl.DataFrame:
    columns = {
        name: pl.Series(
            [[gold.labels[int(c)] for c in part[[row]].nonzero()[1]] for row in rows],
            dtype=pl.List(pl.String),
        )
        for name, part in parts.items()
    }
    frame = pl.DataFrame(
        {
            "doc_id": pl.Series([gold.doc_ids[row] for row in rows], dtype=pl.String),
            "errors_a": errors[0][rows],
            "errors_b": errors[1][rows],
            "harm": (errors[1] - errors[0])[rows],
            **columns,
        }
    )
    return frame.sort("harm", pl.col("lost").list.len(), descending=True, maintain_order=True)


def _list_labels(
    gold: Gold, parts: dict[str, csr_array], marked: tuple[csr_array, csr_array], right: csr_array
) -> pl.DataFrame:
    counts = {name: np.asarray(part.sum(axis=0)).ravel() for name, part in parts.items()}
    errors = [_count_errors(each, right, axis=0) for each in marked]
    positives = np.asarray(right.sum(axis=0)).ravel()
    f1 = [
        divide(
            2 * np.asarray((each * right).sum(axis=0)).ravel(),
            np.asarray(each.sum(axis=0)).ravel() + positives,
        )
        for each in marked
    ]
    frame = pl.DataFrame(
        {
            "label": pl.Series(gold.labels, dtype=pl.String),
            "title": pl.Series(gold.titles, dtype=pl.String),
            "train_count": gold.train_counts,
            "test_count": positives,
            "errors_a": errors[0],
            "errors_b": errors[1],
            "harm": errors[1] - errors[0],
            **counts,
            "F1_a": f1[0],
            "F1_b": f1[1],
        }
    )
    changed = frame.filter(pl.sum_horizontal(*LABEL_CHANGES) > 0)
    return changed.sort("harm", "lost", descending=True, maintain_order=True)
