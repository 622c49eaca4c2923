"""The label index, parents, excluded labels and statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from plant_cli.api import (
    DataError,
    Dataset,
    Excluded,
    Reporter,
    SplitName,
    missing_column,
    near_names,
)
from plant_cli.data.corpus_files import EXCLUDED, PARENTS
from plant_cli.data.documents import Frames, explode_labels
from plant_cli.data.files import hash_strings
from plant_cli.data.tables import collect, trim


@dataclass(frozen=True, kw_only=True)
class LabelTable:
    """See `plant_cli.api.LabelIndex`."""

    ids: Sequence[str]
    titles: Sequence[str | None]
    train_counts: Sequence[int]
    descriptions: Sequence[str | None] = ()
    alternatives: Sequence[Sequence[str]] = ()
    parents: Sequence[Sequence[str]] = ()
    further_parents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "hash", hash_strings(self.ids))
        for name, nothing in (("descriptions", None), ("alternatives", ()), ("parents", ())):
            if not getattr(self, name):
                object.__setattr__(self, name, [nothing] * len(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """The row number of each label."""
        return {label: position for position, label in enumerate(self.ids)}

    def position(self, label: str) -> int:
        """The row number of one label; `DataError` if it has none."""
        try:
            return self.positions[label]
        except KeyError as error:
            raise DataError(
                f"no training document has the label '{label}'",
                where=f"the label index, {len(self)} labels",
                expected=near_names(label, self.ids),
                todo="give its id as the corpus has it; `plant mig show` finds a label by part "
                "of its title",
            ) from error


def count_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Documents of each label of a tidy frame: `label`, `count`, sorted by label."""
    return explode_labels(frame).group_by("label").agg(count=pl.len()).sort("label")


def tabulate_gold(frames: Mapping[SplitName, pl.DataFrame], labels: pl.Series) -> pl.DataFrame:
    """The gold labels of the tidy documents of every split, by the ids of the label index, a row
    for each document in its order.

    Columns are `split`, `doc_id`, `labels` (positions in the label index), `unseen` (ids of
    others).
    """
    index = pl.DataFrame({"label": labels}).with_row_index("position")
    parts = []
    for name, frame in frames.items():
        pairs = explode_labels(frame).join(index, on="label", how="left", maintain_order="left")
        unknown = pl.col("position").is_null()
        lists = pairs.group_by("row").agg(
            labels=pl.col("position").drop_nulls().sort(),
            unseen=pl.col("label").filter(unknown).sort(),
        )
        documents = frame.select(pl.lit(name).alias("split"), "doc_id").with_row_index("row")
        parts.append(documents.join(lists, on="row", how="left", maintain_order="left").drop("row"))
    return pl.concat(parts).with_columns(
        pl.col(name).fill_null(pl.lit([])) for name in ("labels", "unseen")
    )


def encode_gold(gold: pl.DataFrame, labels: int) -> tuple[csr_array, csr_array, list[str]]:
    """The gold of one split (rows of `tabulate_gold`) as sparse 0/1 matrices: [N, L] over the
    labels of the index, and [N, U] over those that are not among them; and these, sorted.
    """
    unseen = gold["unseen"].explode().drop_nulls()
    names = sorted(set(unseen))
    columns = {name: column for column, name in enumerate(names)}
    known = gold["labels"].explode().drop_nulls().to_numpy().astype(np.int64)
    matrices = []
    for name, indices, width in (
        ("labels", known, labels),
        ("unseen", [columns[name] for name in unseen], len(names)),
    ):
        starts = np.concatenate([[0], np.cumsum(gold[name].list.len().to_numpy(), dtype=np.int64)])
        cells = (np.ones(len(indices), dtype=np.int32), np.asarray(indices, dtype=np.int64), starts)
        matrices.append(csr_array(cells, shape=(gold.height, width)))
    return matrices[0], matrices[1], names


def find_further_parents(
    titles: pl.DataFrame, labels: pl.Series, indexed: pl.Series
) -> pl.DataFrame | None:
    """The parents that `labels.parquet` cannot hold: `label`, `parent`, sorted, of labels that
    are not in the index and are at or above any label of the corpus; None: there are none.
    """
    known = dict(
        titles.filter(pl.col("parents").list.len() > 0).select("label", "parents").iter_rows()
    )
    own = set(indexed)
    found = own.union(labels)
    waiting = list(found)
    while waiting:
        further = [parent for parent in known.get(waiting.pop(), ()) if parent not in found]
        found.update(further)
        waiting += further
    pairs = sorted((label, parent) for label in found - own for parent in known.get(label, ()))
    return pl.DataFrame(pairs, schema=PARENTS, orient="row") if pairs else None


def group_parents(pairs: pl.DataFrame | None) -> Mapping[str, Sequence[str]]:
    """The parents of each label of `find_further_parents`."""
    return (
        {}
        if pairs is None
        else dict(pairs.group_by("label", maintain_order=True).agg("parent").iter_rows())
    )


def read_excluded(dataset: Dataset, frames: Frames, reporter: Reporter) -> pl.DataFrame | None:
    """The pairs of a dataset that are of its documents, each once; None if it has none."""
    if dataset.excluded is None:
        return None
    where = "the pairs to leave out of predictions"
    given = collect(dataset.excluded, where)
    for name in EXCLUDED:
        if name not in given.columns:
            todo = f"give the columns {' and '.join(EXCLUDED)}"
            raise missing_column(name, given.columns, where=where, todo=todo)
    tidied = (
        given.select(pl.col("doc_id").cast(pl.String), trim(pl.col("label").cast(pl.String)))
        .drop_nulls()
        .unique(maintain_order=True)
    )
    kept = tidied.join(
        pl.concat(frame.select("doc_id") for frame in frames.values()),
        on="doc_id",
        how="semi",
        maintain_order="left",
    )
    if kept.height:
        reporter.note(
            f"{kept.height:,} pairs of document and label are left out of predictions, as the "
            "corpus says"
        )
    if kept.height < tidied.height:
        reporter.warn(
            f"{tidied.height - kept.height:,} pairs to leave out of predictions are of documents "
            "that the corpus does not have"
        )
    return kept.select(*EXCLUDED) if kept.height else None


def encode_excluded(pairs: pl.DataFrame, doc_ids: pl.Series) -> Excluded:
    """The pairs of some documents, by their row."""
    found = pairs.join(
        doc_ids.to_frame("doc_id").with_row_index("row"), on="doc_id", how="inner"
    ).sort("row", "label")
    return Excluded(rows=found["row"].cast(pl.Int64).to_numpy(), labels=found["label"].to_list())


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
    """One split. Words are runs without blanks; unseen labels are those that no training
    document has.
    """

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


def describe_corpus(frames: Frames) -> CorpusStatistics:
    """Statistics of digests (see `documents.digest`) with tidy labels."""
    counts = {name: count_labels(frame) for name, frame in frames.items()}
    train = counts["train"]
    everywhere = pl.concat(counts.values()).select(pl.col("label").unique())
    per_label = (
        everywhere.join(train, on="label", how="left")
        .select(pl.col("count").fill_null(0))
        .to_series()
    )
    splits = {}
    for name, frame in frames.items():
        labels, words = frame["labels"].list.len(), frame["words"]
        unseen = counts[name].join(train, on="label", how="anti")
        splits[name] = SplitStatistics(
            documents=frame.height,
            documents_without_labels=int((labels == 0).sum()),
            labels=counts[name].height,
            assignments=int(labels.sum()),
            labels_per_document_mean=_number(labels.mean()),
            labels_per_document_median=_number(labels.median()),
            words_per_document_median=_number(words.median()),
            words_per_document_p90=_number(words.quantile(0.9, "linear")),
            unseen_labels=unseen.height,
            unseen_assignments=int(unseen["count"].sum()),
        )
    bins = {
        name: int(per_label.is_between(least, most).sum()) for name, least, most in LABEL_RANGES
    }
    return CorpusStatistics(
        splits=splits, labels=everywhere.height, labels_in_train=train.height, bins=bins
    )


def _number(value: object) -> float:
    return round(float(value), 4) if isinstance(value, (int, float)) else 0.0
