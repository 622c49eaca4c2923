"""The gold labels of a split, as every system is measured against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from plant_cli.api.corpus import Corpus, Excluded, Split, SplitName
from plant_cli.base.hashing import hash_strings
from plant_cli.evaluation.conventions import Convention
from plant_cli.kit.metrics import Integers


@dataclass(frozen=True, kw_only=True)
class Gold:
    """Gold of N documents over the L labels of the index, followed by the U labels of the split that it does not have.

    The index has the labels of train, and under `zero_shot` those with a title alone, whose training documents are 0.

    Args:
        matrix: csr [N, L + U] of 0/1.
        labels: their ids [L + U].
        titles: their titles [L + U], None where unknown.
        train_counts: training documents per label [L + U], 0 for the last U.
        indexed: how many labels the index has, L: those that can be predicted, and have a threshold.
        label_hash: of these L.
        hash: hash of document ids and their gold labels: equal hashes, equal gold.
        excluded: row and column of each pair that the corpus says to leave out of predictions [P, 2].
    """

    split: SplitName
    doc_ids: Sequence[str]
    matrix: csr_array
    labels: Sequence[str]
    titles: Sequence[str | None]
    train_counts: Integers
    train_documents: int
    indexed: int
    label_hash: str
    hash: str
    excluded: Integers = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))

    @property
    def trained(self) -> int:
        """How many labels have training documents."""
        return int((self.train_counts > 0).sum())

    @property
    def sizes(self) -> Integers:
        """Gold labels per document [N]."""
        sizes: Integers = np.diff(self.matrix.indptr).astype(np.int64)
        return sizes


def describe_gold(gold: Gold, convention: Convention) -> str:
    """Which documents and labels count, and by which convention: what every table of figures says.

    Args:
        gold: of the split.
        convention: of the figures.
    """
    without = int((gold.sizes == 0).sum())
    documents = len(gold.doc_ids) - (0 if convention.keeps_empty else without)
    every = convention.settings.get("label_set") == "all"
    labels = len(gold.labels) if every else gold.trained
    said = "counted, too" if convention.keeps_empty else "left out"
    return f"{documents} documents of {gold.split}, {without} without gold {said}; {labels} labels counted; convention {convention.name}"


def read_gold(corpus: Corpus, split: SplitName) -> Gold:
    """The gold labels of one split of a corpus; its texts are read some at a time and not kept.

    Args:
        corpus: a prepared corpus.
        split: name of the split.

    Raises:
        DataError: the corpus has no split of that name.
        ArtefactError: the source is no longer what the run was made from.
    """
    part = _join_parts([replace(found, texts=(), evidence=None) for found in corpus.stream(split)])
    matrix = join_gold(part)
    labels = [*corpus.labels.ids, *part.unseen_labels]
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
        excluded=_place_excluded(part, labels),
    )


def _join_parts(parts: Sequence[Split]) -> Split:
    """Consecutive parts of a split as one; labels unseen in train in order of their ids."""
    unseen_labels = sorted({label for part in parts for label in part.unseen_labels})
    columns = {label: column for column, label in enumerate(unseen_labels)}
    unseen = []
    for part in parts:
        places = np.array([columns[label] for label in part.unseen_labels], dtype=np.int64)
        cells = (part.unseen.data, places[part.unseen.indices], part.unseen.indptr)
        unseen.append(csr_array(cells, shape=(len(part), len(columns))))
    starts = np.cumsum([0, *map(len, parts)])
    excluded = [(part.excluded, start) for part, start in zip(parts, starts, strict=False) if part.excluded is not None]
    return Split(
        name=parts[0].name,
        doc_ids=[doc_id for part in parts for doc_id in part.doc_ids],
        texts=(),
        gold=csr_array(vstack([part.gold for part in parts], format="csr")),
        unseen=csr_array(vstack(unseen, format="csr")),
        unseen_labels=unseen_labels,
        excluded=None
        if not excluded
        else Excluded(
            rows=np.concatenate([found.rows + start for found, start in excluded]),
            labels=[label for found, _ in excluded for label in found.labels],
        ),
    )


def _place_excluded(split: Split, labels: Sequence[str]) -> Integers:
    """Row and column of each pair to leave out; a label that neither train nor the split has cannot be predicted."""
    if split.excluded is None:
        return np.empty((0, 2), dtype=np.int64)
    columns = {label: column for column, label in enumerate(labels)}
    found = [(row, columns[name]) for row, name in zip(split.excluded.rows.tolist(), split.excluded.labels, strict=True) if name in columns]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def join_gold(split: Split) -> csr_array:
    """Gold over the labels of train, followed by those that no training document has: csr [N, L + U] of 0/1."""
    matrix = csr_array(hstack([split.gold, split.unseen], format="csr"))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def pad_counts(train_counts: Sequence[int], gold: csr_array) -> Integers:
    """The training documents of each column of gold [L + U]: 0 for labels that no training document has.

    Args:
        train_counts: of the labels of train [L].
        gold: csr [N, L + U].
    """
    return np.pad(np.asarray(train_counts, dtype=np.int64), (0, gold.shape[1] - len(train_counts)))


def _hash_gold(doc_ids: Sequence[str], matrix: csr_array, labels: Sequence[str]) -> str:
    """Independent of the order of documents and of how labels are numbered."""
    rows = np.split(matrix.indices, matrix.indptr[1:-1]) if len(doc_ids) else []
    members = [hash_strings([doc_id, *sorted(labels[i] for i in row)]) for doc_id, row in zip(doc_ids, rows, strict=True)]
    return hash_strings(sorted(members))
