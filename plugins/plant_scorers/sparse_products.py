"""Products of sparse matrices, of which the best labels of each document are kept, in blocks
and threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from plant_cli.api.scorers import short_ends
from plant_cli.kit import (
    DOCUMENT_LABEL_PAIRS,
    LABELS_LISTED,
    SparseScores,
    at_most,
    cut_rows,
    default_threads,
    keep_best,
    stop_if_asked,
    work_ahead,
)

Floats32 = npt.NDArray[np.float32]

BYTES_OF_A_PAIR = 48  # several numbers of each are held
BLOCKS_TOGETHER = 8  # threads, at most
LABELS_WRITTEN_OUT = (
    1 << 14
)  # labels up to which products for all of them are written out, zeros too
ROWS_TOGETHER = 32  # whose products are added up at a time, at most
CELLS_TOGETHER = 1 << 16  # sums at a time, so that they stay near the processor


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
        cut_rows(
            documents, max(labels, held), at_most(DOCUMENT_LABEL_PAIRS, BYTES_OF_A_PAIR * threads)
        )
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
    lists: Iterable[tuple[npt.NDArray[np.integer[Any]], Floats32]], width: int
) -> csr_array:
    """Columns and values of one row after another as csr [B, width] float32."""
    columns, values = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.float32)]
    for own, given in lists:
        columns.append(own.astype(np.int32, copy=False))
        values.append(given)
    ends = short_ends(np.cumsum([len(own) for own in columns]))
    return csr_array(
        (np.concatenate(values), np.concatenate(columns), ends), shape=(len(ends) - 1, width)
    )


def multiply_out(left: csr_array, right: csr_array) -> Floats32:
    """Products of csr [B, V] and csr [V, M] float32, as an array [B, M]: a sparse product would
    list what is added up here.
    """
    products = np.zeros((left.shape[0], right.shape[1]), dtype=np.float32)
    rows = min(ROWS_TOGETHER, max(1, CELLS_TOGETHER // max(1, right.shape[1])))
    for block in cut_rows(len(products), 1, rows):
        ends, shape = left.indptr[block.start : block.stop + 1], products[block].shape
        lists, weights = right[left.indices[ends[0] : ends[-1]]], left.data[ends[0] : ends[-1]]
        places = lists.indices
        if shape[0] > 1:
            owners = np.repeat(np.arange(shape[0], dtype=np.int32) * shape[1], np.diff(ends))
            places = places + np.repeat(owners, np.diff(lists.indptr))
        cells = csc_array(
            (lists.data, places, lists.indptr), shape=(shape[0] * shape[1], len(weights))
        )
        products[block] = (cells @ weights).reshape(shape)
    return products


def multiply_best(documents: csr_array, by_term: csr_array, k: int = LABELS_LISTED) -> SparseScores:
    """The k labels of highest dot product above 0 for each document, csr [B, V], by weights of
    terms for labels, csr [V, L].
    """

    def multiply(block: slice) -> csr_array:
        products = csr_array(documents[block] @ by_term)
        products.data = np.maximum(products.data, 0)
        products.eliminate_zeros()
        return products

    return score_blocks(documents.shape[0], by_term.shape[1], multiply, k)


def multiply_signed(
    documents: csr_array, by_term: csr_array, k: int = LABELS_LISTED
) -> SparseScores:
    """The k labels of highest dot product for each document, products below 0 too; arguments as
    those of `multiply_best`.
    """

    def multiply(block: slice) -> Floats32 | csr_array:
        products = csr_array(documents[block] @ by_term, dtype=np.float32)
        return (
            store_zeros(products, k)
            if by_term.shape[1] > LABELS_WRITTEN_OUT
            else products.toarray()
        )

    return score_blocks(documents.shape[0], by_term.shape[1], multiply, k)


def store_zeros(scores: csr_array, k: int) -> csr_array:
    """Scores, csr [B, L], with those zeros stored that are among the k best of a document: the
    first labels of score 0.
    """
    cells = []
    for first, last in pairwise(scores.indptr):
        labels, values = scores.indices[first:last], scores.data[first:last]
        if np.count_nonzero(values > 0) <= k:
            more = np.setdiff1d(np.arange(min(scores.shape[1], len(labels) + k)), labels)
            labels, values = (
                np.concatenate([labels, more]),
                np.concatenate([values, np.zeros(len(more), dtype=values.dtype)]),
            )
        cells.append((values, labels))
    ends = np.cumsum([0, *(len(values) for values, _ in cells)])
    data, indices = (
        np.concatenate([*parts, []]) for parts in (zip(*cells, strict=True) if cells else ((), ()))
    )
    return csr_array((data.astype(np.float32), indices.astype(np.int32), ends), shape=scores.shape)
