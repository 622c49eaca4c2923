"""The engine under every signal: score the pairs of label and word, block by block of labels, and keep the best words of each label.

Words that never meet a label differ only in their document frequency: their score is computed once per frequency. Blocks
suit the source of the counts, are never larger than the memory budget allows, and are independent of one another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from plant_cli.api.signals import Counts
from plant_cli.relevance.blocks import cut_blocks, work_ahead
from plant_cli.relevance.counting import Counting, Ints, Pairs
from plant_cli.relevance.kept import KeptWords
from plant_cli.relevance.selection import AbsentWords, best_of_rows, commonest_absent, contenders
from plant_cli.relevance.signal import Signal

Sign = Literal["positive", "any"]
BYTES_PER_PAIR = 120  # what a pair costs while its block is worked on: indices, counts, gathered margins, look-ups, value
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to keep, and how to work.

    Args:
        k: words kept per label, at most.
        sign: `positive` keeps only words that occur more often with the label than without; `any` also words whose absence
            indicates it.
        memory: bytes that all blocks under way may take together; what the source of the counts holds comes on top.
        jobs: threads.
    """

    k: int = 1000
    sign: Sign = "positive"
    memory: int = 2_000_000_000
    jobs: int = 1


def keep_words(counting: Counting, signal: Signal, selection: Selection) -> Iterator[KeptWords]:
    """The best words of every label by a signal, block after block of consecutive labels.

    The lists depend on neither the source of the counts nor the memory budget nor the number of threads; where blocks end does.

    Args:
        counting: gives the counts.
        signal: what to compute from them.
        selection: what to keep, and how to work.
    """
    scoring = _Scoring(counting, signal, selection)
    cuts = cut_labels(counting.pair_bounds + scoring.n_absent, counting.block_pairs, selection)
    return work_ahead(lambda block: scoring.keep_block(*block), pairwise(cuts), selection.jobs)


def count_absent(signal: Signal, selection: Selection, n_words: int) -> int:
    """At most how many words that never meet a label are kept for it: an unsigned signal scores them by their document frequency alone."""
    scored = selection.sign == "any" and not signal.signed and not signal.needs_pairs
    return min(selection.k, n_words) if scored else 0


def cut_labels(pair_bounds: Ints, block_pairs: int, selection: Selection) -> list[int]:
    """Where blocks of labels begin and end.

    Args:
        pair_bounds: at most how many pairs each label has [L], those of words that never meet it included.
        block_pairs: that the source of the counts counts best at a time.
        selection: gives the memory budget and the threads that share it.
    """
    return cut_blocks(pair_bounds, block_pairs, selection.memory // (selection.jobs * BYTES_PER_PAIR))


class _Scoring:
    """What all blocks share; nothing in it changes once it is made, so that threads may read it together."""

    def __init__(self, counting: Counting, signal: Signal, selection: Selection) -> None:
        self.counting, self.signal, self.selection = counting, signal, selection
        self.margins = counting.margins
        self.n_absent = count_absent(signal, selection, len(self.margins.words))
        self.absent = AbsentWords(self.margins.docs_with_word) if self.n_absent and not signal.quasi_convex else None
        self.first_as_frequent = np.searchsorted(-self.margins.docs_with_word, -self.margins.docs_with_word)
        self.floor = -np.inf if selection.sign == "any" and signal.signed else 0.0

    def keep_block(self, start: int, stop: int) -> KeptWords:
        """The kept words of labels `start` to `stop`."""
        pairs = self._contenders(self.counting.count(start, stop))
        counts = self._counts(pairs)
        values = self.signal.score(counts)
        if self.selection.sign == "positive" and not self.signal.signed:
            attracted = counts.docs_with_both * counts.n_docs > counts.docs_with_label * counts.docs_with_word
            values = np.where(attracted, values, 0.0)
        chosen, offsets = best_of_rows(pairs.offsets, values, pairs.word, self.selection.k, self.floor)
        return KeptWords(offsets=offsets, words=pairs.word[chosen], values=values[chosen], both=pairs.both[chosen])

    def _contenders(self, met: Pairs) -> Pairs:
        """The pairs that can be among the best of a label: of words that meet it, all but those surely beaten; of others, the best k."""
        k, common = self.selection.k, self.selection.sign == "any"
        pairs = met
        if self.signal.quasi_convex:
            pairs = met.at(contenders(met.offsets, met.word, met.both, self.first_as_frequent, k, common=common))
        return pairs.with_absent(self._find_absent(met)) if self.n_absent else pairs

    def _find_absent(self, met: Pairs) -> list[npt.NDArray[np.int32]]:
        """The k best words that never meet the label, row by row."""
        k, rows = self.selection.k, [met.word[first:last] for first, last in pairwise(met.offsets)]
        if self.absent is None:
            return [commonest_absent(row, k, len(self.margins.words)) for row in rows]
        return [self.absent.find(values, row, k) for values, row in zip(self._score_absent(self.absent, met), rows, strict=True)]

    def _counts(self, pairs: Pairs) -> Counts:
        margins = self.margins
        return Counts(
            n_docs=margins.n_docs,
            docs_with_word=margins.docs_with_word[pairs.word],
            docs_with_label=pairs.spread(margins.docs_with_label),
            docs_with_both=pairs.both.astype(np.int64),
            occurrences=pairs.occurrences,
            words_with_label=None if margins.words_with_label is None else pairs.spread(margins.words_with_label),
            pairs=pairs.label * len(margins.words) + pairs.word if self.signal.needs_pairs else None,
        )

    def _score_absent(self, absent: AbsentWords, met: Pairs) -> Floats:
        """Values of words that never meet the label [labels of the block, distinct document frequencies]."""
        zeros = np.zeros((1, 1), dtype=np.int64)
        block = slice(met.start, met.start + len(met.offsets) - 1)
        label = self.margins.docs_with_label[block, None]
        repeats = self.margins.words_with_label
        counts = Counts(
            n_docs=self.margins.n_docs,
            # A word of more documents than lack the label does meet it: its value is never read, but must be computable.
            docs_with_word=np.minimum(absent.frequencies[None, :], self.margins.n_docs - label),
            docs_with_label=label,
            docs_with_both=zeros,
            occurrences=zeros if repeats is not None else None,
            words_with_label=None if repeats is None else repeats[block, None],
        )
        return self.signal.score(counts)
