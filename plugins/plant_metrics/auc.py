"""The area under the ROC curve (AUC) in many resamples at once, from how often each resample counts
each document.

AUC is the share of (positive, negative) pairs that the scores put in the right order, ties counting
half. With w the weights of documents, positives win Σ_p w_p (Σ_c w_c ([s_c < s_p] + ½[s_c = s_p]))
pairs with all pairs c, of which ½ (Σ_p w_p)² are pairs of positives with each other. So a resample
needs the weight that lies below (or above) each positive, and scores are sorted once for all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array

from plant_cli.api import AllScores
from plant_cli.kit import default_threads, work_ahead

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Sums = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]
LANES = 128
"""Numbers of a document that are added at a time: small enough for the table of all documents
to stay in the cache.
"""
FIELD = 12
"""Bits of a sum of weights: a float32 holds two such sums exactly, so that one addition serves
two resamples.
"""


def average_auc(scores: AllScores, gold: csr_array, weights: Floats) -> Floats:
    """AUC averaged over labels [R], the labels that a resample gives both positives and negatives;
    NaN where there are none.

    Args:
        scores: of N documents and L labels.
        gold: csr [N, L] of 0/1.
        weights: of the documents in each resample, whole numbers below 4096 [R, N].
    """
    blocks = [
        PackedWeights(weights[start : start + 2 * LANES])
        for start in range(0, len(weights), 2 * LANES)
    ]
    documents = weights.sum(axis=1)
    total, defined = np.zeros(len(weights)), np.zeros(len(weights))
    for lost, with_label in _each_label(scores, gold, blocks):
        pairs = with_label * (documents - with_label)
        won = with_label * (documents - with_label / 2) - lost
        total += np.divide(won, pairs, out=np.zeros_like(won), where=pairs > 0)
        defined += pairs > 0
    return np.divide(total, defined, out=np.full_like(total, np.nan), where=defined > 0)


def _each_label(
    scores: AllScores, gold: csr_array, weights: Sequence[PackedWeights]
) -> Iterator[tuple[Floats, Floats]]:
    """`lost_pairs` of every label that some documents have and others have not; a label in each
    thread.
    """
    by_label = csc_array(gold)
    positives = np.split(by_label.indices, by_label.indptr[1:-1])
    width = max(
        1, scores.memory // (8 * max(1, scores.shape[0]))
    )  # labels of a block: as it is read, and turned
    for start in range(0, scores.shape[1], width):
        block = np.ascontiguousarray(scores.read(slice(None), slice(start, start + width)).T)
        wanted = [
            (c, rows)
            for c, rows in zip(block, positives[start : start + width], strict=True)
            if 0 < len(rows) < len(c)
        ]
        yield from work_ahead(
            lambda label: lost_pairs(label[0], label[1], weights), wanted, default_threads()
        )


class PackedWeights:
    """Weights of N documents in up to 2 · LANES resamples, two resamples in one float32.
    `weights`: whole numbers below 4096 [r, N].
    """

    def __init__(self, weights: Floats) -> None:
        self.resamples = len(weights)
        lanes = (self.resamples + 1) // 2
        packed = weights[:lanes].astype(np.float32)
        packed[: self.resamples - lanes] += 2**FIELD * weights[lanes:].astype(np.float32)
        self._table: Scores = np.ascontiguousarray(packed.T)
        self._run = (2**FIELD - 1) // max(
            1, int(weights.max(initial=0))
        )  # documents whose sum cannot overflow

    def of(self, documents: Integers) -> Sums:
        """Weights [n, r] of the given documents."""
        return self._unpack(self._table[documents])

    def prefixes(self, documents: Integers, ends: Integers) -> Sums:
        """Weight of the first `ends[e]` of the given documents [E, r]."""
        cuts = np.unique(np.concatenate([ends, np.arange(0, len(documents), self._run)]))
        cells = (
            np.ones(cuts[-1], dtype=np.float32),
            documents[: cuts[-1]].astype(np.int32),  # scipy would narrow them more slowly
            cuts.astype(np.int32),
        )
        runs = csr_array(cells, shape=(len(cuts) - 1, len(self._table)))
        sums = np.zeros((len(cuts), self.resamples), dtype=np.int32)
        np.cumsum(self._unpack(runs @ self._table), axis=0, out=sums[1:])
        return sums[np.searchsorted(cuts, ends)]

    def _unpack(self, packed: Scores) -> Sums:
        both = packed.astype(np.int32)
        return np.hstack([both & (2**FIELD - 1), both >> FIELD])[:, : self.resamples]


def lost_pairs(
    scores: Scores, positives: npt.NDArray[np.integer], weights: Sequence[PackedWeights]
) -> tuple[Floats, Floats]:
    """Weight of the pairs that positives lose to any document, itself included, ties counting half
    [R]; and of the positives [R].

    `weights`: of the documents in blocks of resamples.
    """
    above = np.flatnonzero(
        scores >= scores[positives].min()
    )  # the others are below every positive: they win no pair
    falling = above[np.argsort(-scores[above])]
    ends = [
        np.searchsorted(-scores[falling], -scores[positives], side) for side in ("left", "right")
    ]
    lost, with_label = [], []
    for block in weights:
        of_positives = block.of(positives.astype(np.int64))
        higher, at_least = np.split(block.prefixes(falling, np.concatenate(ends)), 2)
        lost.append(np.einsum("pr,pr->r", of_positives, higher + at_least, dtype=np.float64) / 2)
        with_label.append(of_positives.sum(axis=0))
    return np.concatenate(lost), np.concatenate(with_label).astype(np.float64)


def pooled_auc(scores: AllScores, gold: csr_array, weights: Floats) -> Floats:
    """AUC of all (document, label) pairs as one pool [R]; NaN where a resample has no positive or
    no negative.

    The pairs won are a quadratic form in the weights: entry (d', d) counts the pairs of document d
    below each positive of document d'. Its columns are made, used and forgotten in blocks.

    Args:
        scores: of N documents and L labels.
        gold: csr [N, L] of 0/1.
        weights: of the documents in each resample [R, N].
    """
    sizes = np.diff(gold.indptr).astype(np.float64)
    holders = np.flatnonzero(sizes)
    with_label = weights @ sizes
    pairs = with_label * (scores.shape[1] * weights.sum(axis=1) - with_label)
    if not holders.size:
        return np.full(len(weights), np.nan)
    ladder = _Ladder(gold_scores(scores, gold), gold.indptr[holders])
    of_holders = np.ascontiguousarray(weights[:, holders].T)
    won = np.zeros(len(weights))
    for rows in _document_blocks(
        scores, 4 * scores.shape[1] + 8 * (len(ladder.steps) + len(weights))
    ):
        counts = work_ahead(ladder.count_below, scores.read(rows, slice(None)), default_threads())
        table = np.array(list(counts))
        won += np.einsum("dr,rd->r", table @ of_holders, weights[:, rows])
    area: Floats = np.divide(
        won / 2 - with_label**2 / 2, pairs, out=np.full_like(won, np.nan), where=pairs > 0
    )
    return area


def gold_scores(scores: AllScores, gold: csr_array) -> Scores:
    """The scores of the gold pairs, in the order of `gold.indices`."""
    values = np.empty(gold.nnz, dtype=np.float32)
    for rows in _document_blocks(scores, scores.shape[1] * 4):
        pairs = slice(gold.indptr[rows.start], gold.indptr[rows.stop])
        documents = np.repeat(
            np.arange(rows.stop - rows.start), np.diff(gold.indptr[rows.start : rows.stop + 1])
        )
        values[pairs] = scores.read(rows, slice(None))[documents, gold.indices[pairs]]
    return values


class _Ladder:
    """The scores of all positives in rising order, and the document of each."""

    def __init__(self, positives: Scores, starts: npt.NDArray[np.integer]) -> None:
        self.steps, columns = np.unique(positives, return_inverse=True)
        ends = np.append(starts, len(positives))
        self._steps_of = csr_array(
            (np.ones(len(positives)), columns, ends), shape=(len(starts), len(self.steps))
        )

    def count_below(self, scores: Scores) -> Floats:
        """Twice the pairs that the positives of each document with gold win against the L pairs
        of one document; ties count half.
        """
        row = np.sort(scores)
        above = np.searchsorted(
            self.steps, row
        )  # the first positive score that is not below the pair's
        counts = np.diff(above, prepend=0, append=len(self.steps))
        below = np.repeat(np.arange(0.0, 2 * len(row) + 1, 2), counts)
        inside = above[: np.searchsorted(above, len(self.steps))]
        np.subtract.at(below, inside[self.steps[inside] == row[: len(inside)]], 1)
        won: Floats = self._steps_of @ below
        return won


def _document_blocks(scores: AllScores, bytes_of_document: int) -> Iterator[slice]:
    """Slices over the documents that fit into half the memory."""
    step = max(1, scores.memory // (2 * bytes_of_document))
    return (
        slice(start, min(start + step, scores.shape[0]))
        for start in range(0, scores.shape[0], step)
    )
