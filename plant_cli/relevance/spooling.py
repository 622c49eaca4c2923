"""Counts of more documents than memory holds: their words are in temporary files and are read back
for each block of labels.

A document takes 4 bytes for each of its distinct words, 8 if occurrences are counted. The files
have no name: they vanish with the process, however it ends. Memory holds the vocabulary (about 140
bytes a word, 320 while words are counted), 8 bytes for each document, and what is being read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api.scorers import Documents
from plant_cli.data.blocks import cut_blocks
from plant_cli.data.words import choose_columns
from plant_cli.relevance.cooccurrence import (
    AnyInts,
    CountedPairs,
    Margins,
    Terms,
    choose_words,
    count_batches,
    join_batches,
)

# of a word of a document in memory: its batch, all batches joined, the chosen words, and their
# presence
BYTES_PER_TERM = 32
BYTES_READ = (
    24  # of a word of a document that is read back: its number, a one, and its share of the product
)
_ITEM = np.dtype(np.int32)


def read_terms(
    documents: Documents,
    *,
    min_df: int,
    keep: Set[str],
    with_occurrences: bool,
    memory: int,
    folder: Path | None,
) -> Terms | SpooledTerms:
    """Count the words of documents in memory, of which they may take so many bytes, or else in
    files (default: temporary ones).
    """
    held: list[csr_array] = []
    for batch in count_batches(documents):
        held.append(batch)
        if sum(one.nnz for one in held) * BYTES_PER_TERM > memory:
            held.clear()
            return _spool(documents, min_df, keep, folder, with_occurrences=with_occurrences)
    return join_batches(held, documents.vocabulary, min_df, keep)


@dataclass(frozen=True, kw_only=True)
class SpooledTerms:
    """The words of N documents in files; made by `read_terms`."""

    words: tuple[str, ...]  # the vocabulary, as in `Terms`
    docs_with_word: npt.NDArray[np.int64]  # [V]
    offsets: npt.NDArray[np.int64]  # where the words of each document begin [N + 1]
    lengths: (
        npt.NDArray[np.int64] | None
    )  # words of each document, with repeats [N]; None: occurrences are not counted
    files: tuple[IO[bytes], ...]  # word numbers and, if they are counted, occurrences, each int32

    def read(self, documents: AnyInts) -> tuple[csr_array, csr_array | None]:
        """Presence of words in some documents, and occurrences if they are counted: csr [n, V]
        int32; the documents ascend.
        """
        sizes = self.offsets[documents + 1] - self.offsets[documents]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        words, *counts = (self._gather(file, documents, int(ends[-1])) for file in self.files)
        shape = (len(documents), len(self.words))
        presence = csr_array((np.ones(len(words), dtype=np.int32), words, ends), shape=shape)
        return presence, csr_array((counts[0], words, ends), shape=shape) if counts else None

    def _gather(self, file: IO[bytes], documents: AnyInts, total: int) -> npt.NDArray[np.int32]:
        """The numbers of some documents in a file; neighbours are read together."""
        items = np.empty(total, dtype=_ITEM)
        view, place = items.view(np.uint8).data, 0
        runs = np.flatnonzero(
            np.diff(documents, prepend=-2) != 1
        )  # documents that do not follow the one before
        starts = self.offsets[documents[runs]] * _ITEM.itemsize
        stops = (
            self.offsets[documents[np.append(runs[1:], len(documents)) - 1] + 1] * _ITEM.itemsize
            if len(runs)
            else starts
        )
        for start, end in zip(starts.tolist(), stops.tolist(), strict=True):
            while start < end:
                size = os.preadv(file.fileno(), [view[place : place + end - start]], start)
                if size == 0:
                    raise OSError(
                        f"a temporary file of the words ended at byte {start:,}, before {end:,}"
                    )
                start, place = start + size, place + size
        return items


def _spool(
    documents: Documents,
    min_df: int,
    keep: Set[str],
    folder: Path | None,
    *,
    with_occurrences: bool,
) -> SpooledTerms:
    """Choose the vocabulary, then write its words of each document."""
    frequency = np.zeros(len(documents.vocabulary), dtype=np.int64)
    for batch in count_batches(documents):
        frequency += np.bincount(batch.indices, minlength=len(frequency))
    words, order = choose_words(documents.vocabulary, frequency, min_df, keep)
    columns = np.full(len(frequency), -1, dtype=_ITEM)
    columns[order] = np.arange(len(order), dtype=_ITEM)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    files = tuple(tempfile.TemporaryFile(dir=folder) for _ in range(2 if with_occurrences else 1))  # noqa: SIM115 (they vanish with the counts)
    sizes, lengths = [np.zeros(1, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for batch in count_batches(documents):
        kept = choose_columns(batch, columns, len(order))
        sizes.append(np.diff(kept.indptr))
        lengths.append(np.asarray(kept.sum(axis=1), dtype=np.int64))
        for file, values in zip(files, (kept.indices, kept.data), strict=False):
            file.write(values.astype(_ITEM, copy=False).data)
    for file in files:
        file.flush()
    offsets = np.cumsum(np.concatenate(sizes), dtype=np.int64)
    counted = np.concatenate(lengths) if with_occurrences else None
    return SpooledTerms(
        words=words, docs_with_word=frequency[order], offsets=offsets, lengths=counted, files=files
    )


class SpooledCounts:
    """Counts of documents whose words are in files; each block of labels reads the words of its
    documents.
    """

    block_pairs = 1 << 20  # larger than of counts in memory: every block begins with reading

    def __init__(self, terms: SpooledTerms, gold: csr_array, *, memory: int, jobs: int) -> None:
        self._terms = terms
        self._by_label = csr_array(gold.T.astype(np.int32))
        self._sizes = np.diff(terms.offsets)
        self._most = max(1, memory // (jobs * BYTES_READ))
        self.margins = Margins.of(terms.words, terms.docs_with_word, self._by_label, terms.lengths)
        self.pair_bounds: AnyInts = np.minimum(self._by_label @ self._sizes, len(terms.words))

    def count(self, start: int, stop: int) -> CountedPairs:
        """The pairs of labels `start` to `stop`."""
        labels = self._by_label[start:stop]
        documents, places = np.unique(labels.indices, return_inverse=True)
        label_of = np.repeat(np.arange(stop - start), np.diff(labels.indptr))
        sums: list[csr_array] = []
        for first, last in pairwise(
            cut_blocks(self._sizes[documents], self._most) if len(documents) else [0, 0]
        ):
            here = (places >= first) & (places < last)
            ones = np.ones(int(here.sum()), dtype=np.int32)
            wanted = csr_array(
                (ones, (label_of[here], places[here] - first)), shape=(stop - start, last - first)
            )
            products = [
                csr_array(wanted @ words)
                for words in self._terms.read(documents[first:last])
                if words is not None
            ]
            sums = [a + b for a, b in zip(sums, products, strict=True)] if sums else products
        return CountedPairs.of(sums[0], sums[1] if len(sums) > 1 else None, start)
