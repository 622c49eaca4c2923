"""Sparse scores: few labels of a document are listed with their score, and all others have a
floor; the k best of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.data.blocks import top_k

Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
LABELS_LISTED = 200  # labels that a list holds
DOCUMENT_LABEL_PAIRS = 1 << 24  # (document, label) pairs held at a time by each thread
PAIRS_MARKED = (
    1 << 18
)  # (document, label) pairs marked at a time, so that they stay near the processor
DOCUMENTS_BETWEEN_CHECKS = 64  # documents ranked between two checks whether the user stops


@dataclass(frozen=True, kw_only=True)
class SparseScores:
    """Scores of B documents for L labels.

    A label that is not listed has a floor. A scorer has one floor for a document (G = 1), which
    such a label scores at most. A fused or calibrated logit has one for each training frequency:
    labels that no scorer lists differ by that alone.
    """

    # scores of the listed labels, csr [B, L] float32; columns of a row ascend, a stored zero counts
    matrix: csr_array
    floors: Floats32  # scores of the labels that are not listed, by group [B, G]
    groups: Ints | None = None  # the group of each label [L]; None: all are in one

    @classmethod
    def of(cls, matrix: csr_array, k: int = LABELS_LISTED) -> SparseScores:
        """Lists of the best labels as scores: a list of k labels, or one that goes below 0, is
        taken to be cut.
        """
        lists = csr_array(matrix.astype(np.float32))
        lists.sort_indices()
        sizes = np.diff(lists.indptr)
        least = np.full(len(sizes), np.inf, dtype=np.float32)
        filled = np.flatnonzero(sizes)
        if len(filled):
            least[filled] = np.minimum.reduceat(lists.data, lists.indptr[filled])
        cut = (sizes > 0) & ((sizes >= k) | (least < 0))
        return cls(
            matrix=lists, floors=np.where(cut, least, np.float32(0)).astype(np.float32)[:, None]
        )

    @classmethod
    def none(cls, documents: int, labels: int) -> SparseScores:
        """Scores of documents for which no label is listed."""
        cells = (
            np.zeros(0, dtype=np.float32),
            np.zeros(0, dtype=np.int32),
            np.zeros(documents + 1, dtype=np.int64),
        )
        return cls.of(csr_array(cells, shape=(documents, labels)))

    @classmethod
    def join(cls, parts: Iterable[SparseScores], labels: int) -> SparseScores:
        """Scores of consecutive documents as one, by one floor a document; of no documents, for
        so many labels.
        """
        scored = list(parts) or [cls.none(0, labels)]
        matrix = csr_array(vstack([part.matrix for part in scored], format="csr"))
        return cls(matrix=matrix, floors=np.concatenate([part.floors for part in scored]))

    @cached_property
    def rows(self) -> Ints:
        """The document of each listed pair [P]."""
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr))

    def look_up(self, rows: Ints, labels: Ints) -> Floats32:
        """Scores of (document, label) pairs [P], listed or not."""
        at = find_pairs(self.matrix, rows, labels)
        stored: Floats32 = np.append(self.matrix.data, np.float32(0))[
            at
        ]  # the last one is that of pairs not found, at −1
        return np.where(at >= 0, stored, self.floors[rows, self._groups[labels]])

    def dense(self, rows: Ints) -> Floats32:
        """Scores of some documents for all labels [b, L]."""
        scores: Floats32 = self.floors[rows][:, self._groups]
        for position, row in enumerate(rows):
            inside = slice(*self.matrix.indptr[row : row + 2])
            scores[position, self.matrix.indices[inside]] = self.matrix.data[inside]
        return scores

    def top(self, k: int, check: Callable[[], None] = lambda: None) -> tuple[Ints, Floats32, int]:
        """The k best labels of each document and their scores [B, k], best first, and how many
        pairs score at least 0.

        A smaller index comes first among equals: they are the labels that `dense` would give, which
        is not computed.
        """
        documents, width = self.matrix.shape[0], min(k, self.matrix.shape[1])
        labels, scores = (
            np.zeros((documents, width), dtype=np.int64),
            np.zeros((documents, width), dtype=np.float32),
        )
        above = 0
        for row in range(documents):
            if row % DOCUMENTS_BETWEEN_CHECKS == 0:
                check()
            labels[row], scores[row], number = self._rank(row, width)
            above += number
        return labels, scores, above

    def _rank(self, row: int, k: int) -> tuple[Ints, Floats32, int]:
        inside = slice(*self.matrix.indptr[row : row + 2])
        labels: Ints = self.matrix.indices[inside].astype(np.int64)
        scores, floors = self.matrix.data[inside], self.floors[row]
        unlisted = self._sizes - np.bincount(self._groups[labels], minlength=len(self._sizes))
        above = int((scores >= 0).sum() + unlisted[floors >= 0].sum())
        open_floors = np.where(unlisted > 0, floors, -np.inf)
        if np.count_nonzero(scores > open_floors.max()) < k:
            more = self._find_unlisted(open_floors, unlisted, labels, k)
            labels, scores = (
                np.concatenate([labels, more]),
                np.concatenate([scores, floors[self._groups[more]]]),
            )
        chosen = top_k(scores, k, labels)
        chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
        return labels[chosen], scores[chosen], above

    def _find_unlisted(self, floors: Floats32, unlisted: Ints, listed: Ints, k: int) -> Ints:
        """The k best of the labels that are not listed, and perhaps more of them."""
        order = np.argsort(-floors, kind="stable")
        enough = np.searchsorted(np.cumsum(unlisted[order]), k)
        least = floors[order[min(int(enough), len(order) - 1)]]
        groups = np.flatnonzero((floors >= least) & (unlisted > 0))
        parts = [
            self._members[group][: k + self._sizes[group] - unlisted[group]] for group in groups
        ]
        best: Ints = np.setdiff1d(
            np.concatenate([*parts, np.zeros(0, dtype=np.int64)]), listed, assume_unique=True
        )
        return best

    @cached_property
    def _groups(self) -> Ints:
        return (
            np.zeros(self.matrix.shape[1], dtype=np.int64) if self.groups is None else self.groups
        )

    @cached_property
    def _sizes(self) -> Ints:
        """How many labels each group has [G]."""
        return np.bincount(self._groups, minlength=self.floors.shape[1])

    @cached_property
    def _members(self) -> list[Ints]:
        """The labels of each group, rising."""
        return np.split(np.argsort(self._groups, kind="stable"), np.cumsum(self._sizes)[:-1])


def order_shares(scores: SparseScores, gold: csr_array) -> npt.NDArray[np.float64]:
    """The share of (label, other label) pairs that scores put in the right order, ties counting
    half: 0.5 by chance.

    It is of each document that has some of the labels and not all.
    Labels that are not listed tie below those that are.
    """
    shares, labels = [], gold.shape[1]
    for row in range(gold.shape[0]):
        inside, relevant = (
            slice(*matrix.indptr[row : row + 2]) for matrix in (scores.matrix, gold)
        )
        mine = np.isin(scores.matrix.indices[inside], gold.indices[relevant])
        count = relevant.stop - relevant.start
        others = labels - count
        if not count or not others:
            continue
        listed, wrong = scores.matrix.data[inside][mine], np.sort(scores.matrix.data[inside][~mine])
        below = others - len(wrong)  # not listed
        passed = (
            below
            + (np.searchsorted(wrong, listed, "left") + np.searchsorted(wrong, listed, "right")) / 2
        )
        shares.append((passed.sum() + (count - len(listed)) * below / 2) / (count * others))
    return np.array(shares, dtype=np.float64)


def align_scores(scores: Sequence[SparseScores]) -> tuple[Ints, Ints, Floats32]:
    """The documents, rising, and labels of the pairs that any of several scores of the same B
    documents lists [P], rising within a document, and what each gives these pairs [P, S].

    Pairs of some documents are marked in an array of all of their labels: nothing is sorted.
    """
    documents, labels = scores[0].matrix.shape
    rows, columns, values = (
        [np.zeros(0, dtype=np.int64)],
        [np.zeros(0, dtype=np.int64)],
        [np.zeros((0, len(scores)), dtype=np.float32)],
    )
    for block in cut_rows(documents, labels, PAIRS_MARKED):
        parts = [slice(*part.matrix.indptr[[block.start, block.stop]]) for part in scores]
        keys = [
            (part.rows[cells] - block.start) * labels + part.matrix.indices[cells]
            for part, cells in zip(scores, parts, strict=True)
        ]
        marked = np.zeros((block.stop - block.start) * labels, dtype=np.bool_)
        for own in keys:
            marked[own] = True
        found = np.flatnonzero(marked)
        place = np.empty(len(marked), dtype=np.int32)
        place[found] = np.arange(len(found))
        rows.append(found // labels + block.start)
        columns.append(found % labels)
        given = [part.floors[rows[-1], part._groups[columns[-1]]] for part in scores]
        for floors, own, part, cells in zip(given, keys, scores, parts, strict=True):
            floors[place[own]] = part.matrix.data[cells]
        values.append(np.stack(given, axis=1))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)


def find_pairs(matrix: csr_array, rows: Ints, columns: Ints) -> Ints:
    """Where (row, column) pairs [P] are stored in a csr matrix whose columns ascend; −1 for
    those that are not.
    """
    keys = list_pairs(matrix)
    wanted = rows * np.int64(matrix.shape[1]) + columns
    at = np.searchsorted(keys, wanted)
    stored = np.append(keys, -1)[at] == wanted
    return np.where(stored, at, -1)


def list_pairs(matrix: csr_array) -> Ints:
    """Row · width + column of every stored entry of a csr matrix, ascending where its columns
    do.
    """
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    keys: Ints = rows * matrix.shape[1] + matrix.indices
    return keys


def keep_best(values: Floats32 | csr_array, k: int = LABELS_LISTED) -> SparseScores:
    """The k best labels of each document by scores [B, L], an array, or csr of the labels that
    have one; a smaller index wins every tie.
    """
    if isinstance(values, np.ndarray):
        columns = np.arange(values.shape[1])
        given: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = (
            (columns, row) for row in values
        )
    else:
        ends = zip(values.indptr[:-1], values.indptr[1:], strict=True)
        given = ((values.indices[first:last], values.data[first:last]) for first, last in ends)
    labels, kept, floors = [], [], []
    for columns, scores in given:
        chosen = top_k(scores, k, columns)
        labels.append(columns[chosen])
        kept.append(scores[chosen])
        least = scores[chosen].min(initial=np.inf)
        floors.append(least if len(chosen) and (len(chosen) < len(scores) or least < 0) else 0)
    sizes = np.cumsum([0, *map(len, labels)])
    cells = (
        np.concatenate([*kept, []], dtype=np.float32),
        np.concatenate([*labels, []], dtype=np.int32, casting="unsafe"),
        sizes,
    )
    matrix = csr_array(cells, shape=(len(floors), values.shape[1]))
    return SparseScores(matrix=matrix, floors=np.array(floors, dtype=np.float32)[:, None])


def cut_rows(rows: int, width: int, pairs: int = DOCUMENT_LABEL_PAIRS) -> Iterator[slice]:
    """Consecutive slices of rows, each of at most so many pairs and of at least one row."""
    step = max(1, pairs // max(1, width))
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))
