"""What a corpus looks like in numbers: documents, labels, how often each, how long the texts are, what no training document has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from plant_cli.api.corpus import SplitName
from plant_cli.corpus.frames import Frames
from plant_cli.corpus.labels import count_labels

Bounds = Sequence[tuple[str, float, float]]
LABEL_RANGES: Bounds = (
    ("0", 0, 0),
    ("1-5", 1, 5),
    ("6-10", 6, 10),
    ("11-50", 11, 50),
    ("51-100", 51, 100),
    ("101-500", 101, 500),
    (">500", 501, np.inf),
)
"""Ranges of label frequency: name, least and most training documents of a label (both included)."""


@dataclass(frozen=True, kw_only=True)
class SplitStatistics:
    """One split. Words are runs without blanks; unseen labels are those that no training document has."""

    documents: int
    documents_without_labels: int
    labels: int
    assignments: int
    labels_per_document_mean: float
    labels_per_document_median: float
    words_per_document_median: float
    words_per_document_p90: float
    unseen_labels: int
    unseen_assignments: int


@dataclass(frozen=True, kw_only=True)
class CorpusStatistics:
    """All splits, and how many labels (of any split) have how many training documents."""

    splits: dict[SplitName, SplitStatistics]
    labels: int
    labels_in_train: int
    bins: dict[str, int]


def describe(frames: Frames) -> CorpusStatistics:
    """Statistics of digests (see `digests`) with tidy labels."""
    counts = {name: count_labels(frame) for name, frame in frames.items()}
    train = counts["train"]
    everywhere = pl.concat(counts.values()).select(pl.col("label").unique())
    per_label = everywhere.join(train, on="label", how="left").select(pl.col("count").fill_null(0)).to_series()
    return CorpusStatistics(
        splits={name: _describe_split(frame, counts[name], train) for name, frame in frames.items()},
        labels=everywhere.height,
        labels_in_train=train.height,
        bins={name: int(per_label.is_between(least, most).sum()) for name, least, most in LABEL_RANGES},
    )


def _describe_split(frame: pl.DataFrame, counts: pl.DataFrame, train: pl.DataFrame) -> SplitStatistics:
    labels = frame["labels"].list.len()
    words = frame["words"]
    unseen = counts.join(train, on="label", how="anti")
    return SplitStatistics(
        documents=frame.height,
        documents_without_labels=int((labels == 0).sum()),
        labels=counts.height,
        assignments=int(labels.sum()),
        labels_per_document_mean=_number(labels.mean()),
        labels_per_document_median=_number(labels.median()),
        words_per_document_median=_number(words.median()),
        words_per_document_p90=_number(words.quantile(0.9, "linear")),
        unseen_labels=unseen.height,
        unseen_assignments=int(unseen["count"].sum()),
    )


def _number(value: object) -> float:
    return round(float(value), 4) if isinstance(value, (int, float)) else 0.0
