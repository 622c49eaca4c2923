"""Products of sparse matrices, of which the best labels of each document are kept, in blocks
and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from plant_cli.api.scorers import short_ends
from plant_cli.kit import (
    LABELS_LISTED,
    SparseScores,
    at_most,
    cut_rows,
    default_threads,
    keep_best,
    stop_if_asked,
    top_k,
    work_ahead,
)

Floats32 = npt.NDArray[np.float32]
AnyFloats = npt.NDArray[np.floating[Any]]

BYTES_OF_A_PAIR = 48  # several numbers of each are held
PAIRS_TOGETHER = 1 << 24  # (document, label) pairs that a thread holds, at most
BLOCKS_TOGETHER = 8  # threads, at most


def score_blocks(
    documents: int,
    labels: int,
    score: Callable[[slice], Floats32 | csr_array],
    k: int = LABELS_LISTED,
    *,
    held: int = 0,
) -> SparseScores:
    """The k best labels of each of B documents of L labels, scored in blocks [b, L], so that few
    pairs are held at a time.

    Threads score a block each; between blocks the work may be stopped. `held`: what is held of a
    document, if more than its labels.
    """
    threads = min(default_threads(), BLOCKS_TOGETHER)
    blocks = list(
        cut_rows(documents, max(labels, held), at_most(PAIRS_TOGETHER, BYTES_OF_A_PAIR * threads))
    )
    threads = min(len(blocks), threads)

    def best(block: slice) -> SparseScores:
        return keep_best(score(block), k)

    def collect() -> Iterator[SparseScores]:
        for part in work_ahead(best, blocks, threads) if threads > 1 else map(best, blocks):
            stop_if_asked()
            yield part

    return SparseScores.join(collect(), labels)


def join_lists(
    lists: Iterable[tuple[npt.NDArray[np.integer[Any]], AnyFloats]], width: int
) -> csr_array:
    """Columns and values of one row after another as csr [B, width] float32."""
    columns = [np.zeros(0, dtype=np.int32)]
    values: list[AnyFloats] = [np.zeros(0, dtype=np.float32)]
    for own, given in lists:
        columns.append(own.astype(np.int32, copy=False))
        values.append(given)
    ends = short_ends(np.cumsum([len(own) for own in columns]))
    return csr_array(
        (np.concatenate(values), np.concatenate(columns), ends), shape=(len(ends) - 1, width)
    )


class TermLists:
    """What each of V terms has in M columns, csr [V, M]: lists that are added up for a document
    without being copied.

    scipy multiplies a matrix by a vector column after column. These are a document's lists, and
    what lies between two lists is a column, too: an empty one, where the second list ends before
    the first begins. So lists lie in memory against the `order` in which documents have their terms
    [V] (default: the last term first). Where they do not, they are copied.
    """

    def __init__(
        self, by_term: csr_array, order: npt.NDArray[np.integer[Any]] | None = None
    ) -> None:
        rows = np.arange(by_term.shape[0])[::-1] if order is None else order
        self._lists = by_term if order is None else csr_array(by_term[rows[::-1]])
        self._rows = np.empty(len(rows), dtype=np.intp)  # where the list of each term is
        self._rows[rows[::-1]] = np.arange(len(rows))
        self._empty: dict[int, csc_array] = {}  # so many columns, made once

    @property
    def shape(self) -> tuple[int, int]:
        """V and M."""
        return len(self._rows), int(self._lists.shape[1])

    def add_up(self, terms: npt.NDArray[np.integer[Any]], weights: AnyFloats) -> AnyFloats:
        """The sum of the lists of some terms, in this order, each times its weight [M]."""
        lists, rows = self._lists, self._rows[terms]
        starts, stops = lists.indptr[rows], lists.indptr[rows + 1]
        if (starts[1:] > starts[:-1]).any():
            copied: AnyFloats = lists[rows].T @ weights
            return copied
        columns = 1 << (2 * len(rows)).bit_length()
        if columns not in self._empty:
            self._empty[columns] = csc_array((self.shape[1], columns), dtype=lists.dtype)
        ends, values = (
            np.zeros(columns + 1, dtype=lists.indices.dtype),
            np.zeros(columns, dtype=lists.dtype),
        )
        ends[: 2 * len(rows) : 2], ends[1 : 2 * len(rows) : 2] = starts, stops
        values[: 2 * len(rows) : 2] = weights
        spread = copy(self._empty[columns])
        spread.data, spread.indices, spread.indptr = lists.data, lists.indices, ends
        product: AnyFloats = spread @ values
        return product

    def find_best(
        self,
        terms: npt.NDArray[np.integer[Any]],
        weights: AnyFloats,
        k: int,
        *,
        signed: bool = False,
    ) -> tuple[npt.NDArray[np.int64], AnyFloats]:
        """The k columns of the highest sums, ascending, and these: those above 0 alone, unless
        `signed`; a smaller column wins every tie.
        """
        sums = self.add_up(terms, weights)
        best = top_k(sums, k)
        best = best if signed else best[sums[best] > 0]
        return best, sums[best]


def cut_cells(matrix: csr_array) -> Iterator[slice]:
    """Where the cells of each row of a csr matrix are."""
    return (slice(first, last) for first, last in pairwise(matrix.indptr.tolist()))


def multiply_out(documents: csr_array, lists: TermLists) -> Floats32:
    """Products of documents, csr [B, V], with the lists of their terms, as an array [B, M]."""
    products = np.zeros((documents.shape[0], lists.shape[1]), dtype=np.float32)
    for row, cells in enumerate(cut_cells(documents)):
        products[row] = lists.add_up(documents.indices[cells], documents.data[cells])
    return products


def multiply_best(
    documents: csr_array, lists: TermLists, k: int = LABELS_LISTED, *, signed: bool = False
) -> SparseScores:
    """The k labels of highest dot product for each document, csr [B, V], by weights of terms for
    labels: those above 0 alone, unless `signed`.
    """

    def multiply(block: slice) -> csr_array:
        some = csr_array(documents[block])
        best = (  # one more than is kept, so that it is seen that others are left out
            lists.find_best(some.indices[cells], some.data[cells], k + 1, signed=signed)
            for cells in cut_cells(some)
        )
        return join_lists(best, lists.shape[1])

    return score_blocks(documents.shape[0], lists.shape[1], multiply, k)
