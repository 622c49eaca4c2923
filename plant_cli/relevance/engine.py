"""The engine under every signal: count co-occurrence block by block of labels, score the cells, keep the best words of each label.

Co-occurrence is the sparse product YᵀX of two 0/1 matrices, so only (label, word) pairs that meet are visited. Words that
never meet a label differ only in their document frequency: their score is computed once per frequency. Blocks are small
enough to stay in the processor's cache, never larger than the memory budget allows, and independent of one another.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api.errors import ComponentError
from plant_cli.api.options import Options
from plant_cli.api.signals import Counts
from plant_cli.api.specs import SignalSpec
from plant_cli.relevance.kept import KeptWords
from plant_cli.relevance.selection import best
from plant_cli.relevance.terms import Terms

Sign = Literal["positive", "any"]
CACHED_CELLS = 1 << 18  # cells per block whose temporaries (about ten arrays of 8 bytes) stay near the processor
BYTES_PER_CELL = 120  # what a cell costs while its block is worked on: indices, counts, gathered margins, look-ups, value
Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]
_Lists = tuple[Ints, Ints, Ints, Floats]  # of a block: how many words each label keeps; the words; documents with both; values
_NOTHING: _Lists = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to keep, and how to work.

    Args:
        k: words kept per label, at most.
        sign: `positive` keeps only words that occur more often with the label than without; `any` also words whose absence tells.
        memory: bytes that all blocks under way may take together; the matrices themselves come on top.
        jobs: threads.
    """

    k: int = 1000
    sign: Sign = "positive"
    memory: int = 2_000_000_000
    jobs: int = 1


def keep_words(
    terms: Terms,
    gold: csr_array,
    signal: SignalSpec,
    options: Options,
    selection: Selection,
    advance: Callable[[int], None] = lambda labels: None,
) -> KeptWords:
    """The best words of every label by a signal. The result depends on neither the memory budget nor the number of threads.

    Args:
        terms: words of the N training documents.
        gold: csr [N, L] of 0/1, labels of the same documents.
        signal: what to compute from the counts.
        options: the signal's own options.
        selection: what to keep, and how to work.
        advance: called with the number of labels each time a block is done, from the calling thread.

    Raises:
        ComponentError: the signal gave NaN or another shape than its counts.
    """
    work = _Work(terms, gold, signal, options, selection)
    blocks = list(pairwise(work.cuts()))
    done: list[_Lists] = []
    pool = ThreadPoolExecutor(max_workers=selection.jobs)
    try:
        for (start, stop), lists in zip(blocks, pool.map(work.keep_block, blocks), strict=True):
            done.append(lists)
            advance(stop - start)
    finally:
        pool.shutdown(cancel_futures=True)
    lengths, words, both, values = (np.concatenate(parts) for parts in zip(*done, strict=True)) if done else _NOTHING
    return KeptWords(
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        words=words.astype(np.int32),
        both=both.astype(np.int32),
        values=values.astype(np.float64),
    )


@dataclass(frozen=True)
class _Cells:
    """The cells of a block of labels that meet; row i is `offsets[i]:offsets[i + 1]`."""

    offsets: Ints
    label: Ints
    word: npt.NDArray[np.int32]
    both: npt.NDArray[np.int32]
    occurrences: npt.NDArray[np.int32] | None

    def where(self, mask: npt.NDArray[np.bool_]) -> _Cells:
        """Only the marked cells."""
        return _Cells(
            offsets=np.concatenate([[0], np.cumsum(mask)])[self.offsets],
            label=self.label[mask],
            word=self.word[mask],
            both=self.both[mask],
            occurrences=None if self.occurrences is None else self.occurrences[mask],
        )


class _Work:
    """What all blocks share; nothing in it changes once it is made, so that threads may read it together."""

    def __init__(self, terms: Terms, gold: csr_array, signal: SignalSpec, options: Options, selection: Selection) -> None:
        self.signal, self.options, self.selection = signal, options, selection
        self.occurrences = terms.occurrences
        ones = np.ones(terms.occurrences.nnz, dtype=np.int32)
        self.presence = csr_array((ones, terms.occurrences.indices, terms.occurrences.indptr), shape=terms.occurrences.shape)
        self.by_label = csr_array(gold.T.astype(np.int32))
        self.docs, self.vocabulary = terms.occurrences.shape
        self.docs_with_word = terms.docs_with_word
        self.docs_with_label = np.diff(self.by_label.indptr).astype(np.int64)
        self.words_with_label: Ints | None = None
        if signal.needs_occurrences:
            self.words_with_label = np.asarray(self.by_label @ terms.occurrences.sum(axis=1), dtype=np.int64)
        # An unsigned signal also speaks of words that never meet the label, by their document frequency alone.
        self.scores_absent = selection.sign == "any" and not signal.signed and not signal.needs_cells
        self.frequencies, self.frequency_of = np.unique(self.docs_with_word, return_inverse=True)
        self.floor = -np.inf if selection.sign == "any" and signal.signed else 0.0

    def cuts(self) -> list[int]:
        """Where blocks of labels begin and end: as many labels as surely fit, and at least one."""
        cells = max(1, min(CACHED_CELLS, self.selection.memory // (self.selection.jobs * BYTES_PER_CELL)))
        distinct_words = np.diff(self.presence.indptr).astype(np.int64)
        bound = np.cumsum(np.minimum(self.by_label @ distinct_words, self.vocabulary))
        cuts = [0]
        while cuts[-1] < len(bound):
            before = bound[cuts[-1] - 1] if cuts[-1] else 0
            cuts.append(max(int(np.searchsorted(bound, before + cells, side="right")), cuts[-1] + 1))
        return cuts

    def keep_block(self, block: tuple[int, int]) -> _Lists:
        """The kept words of labels `start` to `stop`."""
        cells = self._count(*block)
        if self.selection.sign == "positive" and not self.signal.signed:
            more_than_chance = cells.both.astype(np.int64) * self.docs > self.docs_with_label[cells.label] * self.docs_with_word[cells.word]
            cells = cells.where(more_than_chance)
        values = self._score(self._counts(cells), cells.word.shape)
        absent = self._score_absent(*block) if self.scores_absent else None
        rows = [
            self._keep_row(values[piece], cells.word[piece], cells.both[piece], None if absent is None else absent[i])
            for i, piece in enumerate(slice(*ends) for ends in pairwise(cells.offsets))
        ]
        lengths = np.fromiter((len(words) for words, _, _ in rows), dtype=np.int64, count=len(rows))
        words, both, kept = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        return lengths, words, both, kept

    def _count(self, start: int, stop: int) -> _Cells:
        labels = self.by_label[start:stop]
        met = labels @ self.presence
        occurrences = None
        if self.signal.needs_occurrences:
            found = labels @ self.occurrences
            met.sort_indices()
            found.sort_indices()
            occurrences = found.data
        label = np.repeat(np.arange(start, stop), np.diff(met.indptr))
        return _Cells(met.indptr.astype(np.int64), label, met.indices, met.data, occurrences)

    def _counts(self, cells: _Cells) -> Counts:
        return Counts(
            n_docs=self.docs,
            docs_with_word=self.docs_with_word[cells.word],
            docs_with_label=self.docs_with_label[cells.label],
            docs_with_both=cells.both,
            occurrences=cells.occurrences,
            words_with_label=None if self.words_with_label is None else self.words_with_label[cells.label],
            cells=cells.label * self.vocabulary + cells.word if self.signal.needs_cells else None,
        )

    def _score(self, counts: Counts, shape: tuple[int, ...]) -> Floats:
        values = np.asarray(self.signal.score(counts, self.options), dtype=np.float64)
        if values.shape != shape or np.isnan(values).any():
            raise ComponentError(
                f"the signal '{self.signal.name}' gave {'NaN' if values.shape == shape else f'values of shape {values.shape}'}",
                where=f"signal '{self.signal.name}', {values.size} cells",
                expected=f"one number for each cell, shape {shape}; -inf for a word that must not be kept",
                todo=f"`plant plugins` says who made '{self.signal.name}'; choose another with --score",
            )
        return values

    def _score_absent(self, start: int, stop: int) -> Floats:
        """Values of words that never meet the label [labels of the block, distinct document frequencies]."""
        zeros = np.zeros((1, 1), dtype=np.int64)
        label = self.docs_with_label[start:stop, None]
        counts = Counts(
            n_docs=self.docs,
            # A word of more documents than lack the label does meet it: its place is never read, but must make sense.
            docs_with_word=np.minimum(self.frequencies[None, :], self.docs - label),
            docs_with_label=label,
            docs_with_both=zeros,
            occurrences=zeros if self.signal.needs_occurrences else None,
            words_with_label=None if self.words_with_label is None else self.words_with_label[start:stop, None],
        )
        return self._score(counts, (stop - start, len(self.frequencies)))

    def _keep_row(self, values: Floats, words: Ints, both: Ints, absent: Floats | None) -> tuple[Ints, Ints, Floats]:
        if absent is not None:
            everywhere = absent[self.frequency_of]
            everywhere[words] = values
            met = np.zeros(self.vocabulary, dtype=both.dtype)
            met[words] = both
            values, words, both = everywhere, np.arange(self.vocabulary), met
        chosen = best(values, words, self.selection.k)
        chosen = chosen[values[chosen] > self.floor]
        return words[chosen], both[chosen], values[chosen]
