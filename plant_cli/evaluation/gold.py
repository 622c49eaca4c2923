"""Gold labels and the convention by which they count, also up a hierarchy."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
import polars as pl
from scipy.sparse import csr_array, hstack

from plant_cli.api import Corpus, DataError, Hierarchy, LabelIndex, Reporter, Split, SplitName
from plant_cli.data.files import hash_strings
from plant_cli.data.tables import collect, scan_table, trim
from plant_cli.evaluation.conventions import Convention
from plant_cli.evaluation.counters import Integers


@dataclass(frozen=True, kw_only=True)
class Gold:
    """Gold of N documents over the L labels of the index, followed by the U labels of the split
    that it does not have.

    The index has the labels of train, and under `zero_shot` those with a title alone, whose
    training documents are 0.
    """

    split: SplitName
    doc_ids: Sequence[str]
    matrix: csr_array  # csr [N, L + U] of 0/1
    labels: Sequence[str]  # their ids [L + U]
    titles: Sequence[str | None]  # their titles [L + U], None where unknown
    train_counts: Integers  # training documents per label [L + U], 0 for the last U
    train_documents: int
    indexed: (
        int  # how many labels the index has, L: those that can be predicted, and have a threshold
    )
    label_hash: str  # of these L
    hash: str  # hash of document ids and their gold labels: equal hashes, equal gold
    excluded: Integers = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    """Row and column of each pair that the corpus says to leave out of predictions [P, 2]."""

    @property
    def sizes(self) -> Integers:
        """Gold labels per document [N]."""
        sizes: Integers = np.diff(self.matrix.indptr).astype(np.int64)
        return sizes


def describe_gold(gold: Gold, convention: Convention) -> str:
    """Which documents and labels count, and by which convention: what every table of figures
    says.
    """
    without = int((gold.sizes == 0).sum())
    documents = len(gold.doc_ids) - (0 if convention.keeps_empty else without)
    every = convention.settings.get("label_set") == "all"
    labels = len(gold.labels) if every else int((gold.train_counts > 0).sum())
    treatment = "counted" if convention.keeps_empty else "left out"
    return (
        f"{documents} documents of {gold.split}, {without} without gold {treatment}; {labels} "
        f"labels counted; convention {convention.name}"
    )


def read_gold(corpus: Corpus, split: SplitName) -> Gold:
    """The gold labels of one split of a corpus, as recorded when it was prepared; no text is
    read.
    """
    part = corpus.gold_labels(split)
    matrix = join_gold(part)
    labels = [*corpus.labels.ids, *part.unseen_labels]
    columns = {label: column for column, label in enumerate(labels)} if part.excluded else {}
    pairs = (
        zip(part.excluded.rows.tolist(), part.excluded.labels, strict=True) if part.excluded else ()
    )
    excluded = [
        (row, columns[name]) for row, name in pairs if name in columns
    ]  # no other label can be predicted
    return Gold(
        split=split,
        doc_ids=part.doc_ids,
        matrix=matrix,
        labels=labels,
        titles=[*corpus.labels.titles, *[None] * len(part.unseen_labels)],
        train_counts=pad_counts(corpus.labels.train_counts, matrix),
        train_documents=corpus.sizes["train"],
        indexed=len(corpus.labels.ids),
        label_hash=corpus.labels.hash,
        hash=_hash_gold(part.doc_ids, matrix, labels),
        excluded=np.array(excluded, dtype=np.int64).reshape(-1, 2),
    )


def join_gold(split: Split) -> csr_array:
    """Gold over the labels of train, followed by those that no training document has: csr [N, L
    + U] of 0/1.
    """
    matrix = csr_array(hstack([split.gold, split.unseen], format="csr"))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def pad_counts(train_counts: Sequence[int], gold: csr_array) -> Integers:
    """The training documents of each column of gold [L + U]: 0 for labels that no training
    document has.
    """
    return np.pad(np.asarray(train_counts, dtype=np.int64), (0, gold.shape[1] - len(train_counts)))


def _hash_gold(doc_ids: Sequence[str], matrix: csr_array, labels: Sequence[str]) -> str:
    """Independent of the order of documents and of how labels are numbered."""
    rows = np.split(matrix.indices, matrix.indptr[1:-1]) if len(doc_ids) else []
    members = [
        hash_strings([doc_id, *sorted(labels[i] for i in row)])
        for doc_id, row in zip(doc_ids, rows, strict=True)
    ]
    return hash_strings(sorted(members))


HIERARCHY_FORM = (
    "columns `label` and `parent`, a row for each pair; or `label` and `parents`, a list"
)


def read_hierarchy(path: Path, labels: Sequence[str]) -> Hierarchy:
    """What is above each label.

    Args:
        path: a table with the columns `label` and `parent` (or `parents`, a list; in CSV and TSV
            separated by blanks). A label with several parents stands under each.
        labels: the columns of gold [L + U]; labels that the table does not have stand at the top.
    """
    parents = _read_parents(path)
    if not any(label in parents for label in labels):
        example = next(iter(parents), "nothing")
        raise DataError(
            f"no label of the corpus has a parent in the table; it begins with '{example}'",
            where=str(path),
            expected=f"labels as the corpus writes them, such as '{labels[0]}'"
            if labels
            else "labels of the corpus",
            todo="write the labels (not their titles) as the corpus writes them",
        )
    return build_hierarchy(parents, labels, str(path))


def find_hierarchy(
    table: str | None, known: LabelIndex, labels: Sequence[str], reporter: Reporter
) -> Hierarchy | None:
    """What is above each label: as a table says, else as the vocabulary of the corpus; None where
    nobody says.

    `table`: see `read_hierarchy`; None: no table.
    """
    if table is not None:
        return read_hierarchy(Path(table), labels)
    indexed = {label: above for label, above in zip(known.ids, known.parents, strict=True) if above}
    parents = {**known.further_parents, **indexed}
    if not parents:
        return None
    try:
        return build_hierarchy(parents, labels, "the vocabulary of the corpus")
    except DataError as error:
        reporter.warn(f"no hierarchical metrics: {error.what} ({error.where})")
        return None


def build_hierarchy(
    parents: Mapping[str, Sequence[str]], labels: Sequence[str], where: str
) -> Hierarchy:
    """The hierarchy of labels [L + U] whose parents are known, and the parents of these; labels
    without parents stand at the top.

    A depth is 1 without parents, else one more than the least of the parents' depths. `where` says
    whose parents these are, for messages.
    """
    above = {label: _climb(label, parents) for label in labels}
    nodes = sorted({node for line in above.values() for node in line})
    try:
        downwards = list(
            TopologicalSorter({node: parents.get(node, ()) for node in nodes}).static_order()
        )
    except CycleError as error:
        circle = error.args[1]
        what, todo = (
            f"the label '{circle[0]}' is above itself",
            "remove one of these pairs from the table",
        )
        raise DataError(
            what,
            where=f"{where}: {', '.join(circle[:6])}",
            expected="parents that lead upwards and end",
            todo=todo,
        ) from error
    depths: dict[str, int] = {}
    for node in downwards:
        depths[node] = 1 + min((depths[parent] for parent in parents.get(node, ())), default=0)
    numbers = {node: number for number, node in enumerate(nodes)}
    rows = np.repeat(np.arange(len(labels)), [len(above[label]) for label in labels])
    columns = np.array([numbers[node] for label in labels for node in above[label]], dtype=np.int64)
    return Hierarchy(
        nodes=nodes,
        above=csr_array(
            (np.ones(rows.size, dtype=np.int64), (rows, columns)), shape=(len(labels), len(nodes))
        ),
        depths=np.array([depths[node] for node in nodes], dtype=np.int64),
    )


def _climb(label: str, parents: Mapping[str, Sequence[str]]) -> dict[str, None]:
    """The label and everything above it, each once, nearest first."""
    reached, waiting = dict.fromkeys([label]), deque([label])
    while waiting:
        higher = [parent for parent in parents.get(waiting.popleft(), ()) if parent not in reached]
        reached |= dict.fromkeys(higher)
        waiting.extend(higher)
    return reached


def _read_parents(path: Path) -> dict[str, list[str]]:
    frame = collect(scan_table(path), str(path))
    column = next((name for name in ("parent", "parents") if name in frame.columns), None)
    if column is None or "label" not in frame.columns:
        wanted = "label" if column else "parent"
        what, expected = f"the table has no column '{wanted}'", HIERARCHY_FORM
        raise DataError(
            what,
            where=f"{path}, columns {', '.join(frame.columns)}",
            expected=expected,
            todo="rename the columns",
        )
    if column == "parents" and frame.schema[column] == pl.String:
        frame = frame.with_columns(pl.col(column).str.strip_chars().str.split(" "))
    if isinstance(frame.schema[column], pl.List):
        frame = frame.explode(column)
    pairs = frame.select(
        label=trim(pl.col("label").cast(pl.String)), parent=trim(pl.col(column).cast(pl.String))
    )
    pairs = pairs.filter(
        pl.col("label").is_not_null() & (pl.col("parent").fill_null("") != "")
    ).unique(maintain_order=True)
    grouped = pairs.group_by("label", maintain_order=True).agg("parent")
    return dict(zip(grouped["label"].to_list(), grouped["parent"].to_list(), strict=True))
