"""From counts to the k best words of each label, exactly, by any signal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from plant_cli.api import ComponentError, Counts, Options, SignalSpec
from plant_cli.data.blocks import cut_blocks, find_largest, work_ahead
from plant_cli.relevance.cooccurrence import AnyInts, Cooccurrence, CountedPairs


@dataclass(frozen=True, kw_only=True)
class KeptWords:
    """Row l of the ragged lists is `offsets[l]:offsets[l + 1]`, best word first."""

    offsets: npt.NDArray[np.int64]  # int64 [L + 1]
    words: npt.NDArray[np.int32]  # vocabulary index of each kept word, int32 [K]
    values: npt.NDArray[
        np.float64
    ]  # the signal's value, float64 [K]; NaN for a word that only the label's title names
    both: npt.NDArray[
        np.int32
    ]  # documents with label and word, int32 [K]; −1 for a word that only the label's title names

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """Label index of each kept word [K]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """Rank of each kept word in its label's list [K], from 1."""
        return np.arange(1, len(self.words) + 1) - np.repeat(
            self.offsets[:-1], np.diff(self.offsets)
        )


@dataclass(frozen=True, kw_only=True)
class Signal:
    """A relevance signal with its options bound."""

    score: Callable[[Counts], npt.NDArray[np.float64]]
    """One float64 for each pair of a count table, no NaN; −inf for a word that must not be kept."""
    # its values say which way the association goes; then only words that meet the label are scored
    signed: bool = False
    needs_pairs: bool = (
        False  # it reads `Counts.pairs`; then, too, only words that meet the label are scored
    )
    quasi_convex: bool = False
    """For one label and one number of documents with both, values fall and then rise (or only
    fall) with the documents of the word.
    """


def bind_signal(spec: SignalSpec, options: Options) -> Signal:
    """A signal with its options, whose values are checked: it may come from any plugin."""

    def score(counts: Counts) -> npt.NDArray[np.float64]:
        shape = np.broadcast_shapes(
            *(
                np.shape(c)
                for c in (counts.docs_with_word, counts.docs_with_label, counts.docs_with_both)
            )
        )
        values = spec.score(counts, options).astype(np.float64, copy=False)
        if values.shape != shape or np.isnan(values).any() or np.isposinf(values).any():
            raise ComponentError(
                f"the signal '{spec.name}' gave "
                f"{'NaN or +inf' if values.shape == shape else f'values of shape {values.shape}'}",
                where=f"signal '{spec.name}', {math.prod(shape)} pairs of label and word",
                expected=f"one number for each pair, shape {shape}; -inf for a word that must not "
                "be kept",
                todo=f"`plant plugins` says who made '{spec.name}'; choose another with --signal",
            )
        return values

    return Signal(
        score=score,
        signed=spec.signed,
        needs_pairs=spec.needs_pairs,
        quasi_convex=spec.quasi_convex,
    )


WORD_BITS = 31  # a word's index is an int32


def best_of_rows(
    offsets: AnyInts, values: npt.NDArray[np.float64], words: AnyInts, k: int, floor: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """The k largest values above a floor in each row of ragged lists, best first; equal values in
    the order of their word.

    Row i is `offsets[i]:offsets[i + 1]`. Returns positions in `values`, row after row, and the
    offsets of the rows in them.
    """
    kept = values > floor
    for row in np.flatnonzero(np.diff(offsets) > k):
        piece = slice(offsets[row], offsets[row + 1])
        best = np.zeros(piece.stop - piece.start, dtype=np.bool_)
        best[find_largest(values[piece], k, words[piece])] = True
        kept[piece] &= best
    positions = np.flatnonzero(kept)
    ends = np.searchsorted(positions, offsets)
    row_of = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    order = np.argsort(
        row_of << WORD_BITS | words[positions]
    )  # whole numbers without ties sort several times faster than three keys
    order = order[np.argsort(-values[positions[order]], kind="stable")]
    of_order = row_of[order].astype(
        np.uint16 if len(ends) <= 1 << 16 else np.int64
    )  # 16 bits are sorted by counting
    return positions[order[np.argsort(of_order, kind="stable")]], ends


def contenders(
    offsets: AnyInts,
    words: npt.NDArray[np.int32],
    both: npt.NDArray[np.int32],
    first_as_frequent: AnyInts,
    k: int,
    *,
    common: bool,
) -> npt.NDArray[np.intp]:
    """Positions of the pairs that can be among the k best of their row if values fall, then rise,
    with the documents of the word.

    Of the words that meet a label in one document, most of all pairs, these are the k rarest and,
    if asked for, the k commonest; a word between them is worth less than the k on one of its sides.
    `first_as_frequent` is, of each word [V], the first word of as many documents, which wins a tie.
    """
    singles = np.flatnonzero(both == 1)
    ends = np.searchsorted(singles, offsets)
    once, lengths = words[singles], np.diff(offsets)
    rare, frequent = (
        np.zeros(len(lengths), dtype=np.int32),
        np.full(len(lengths), -1, dtype=np.int32),
    )
    for row in np.flatnonzero(np.diff(ends) > 2 * k).tolist():
        own = once[ends[row] : ends[row + 1]]
        own.partition((k - 1, len(own) - k) if common else len(own) - k)
        rare[row] = first_as_frequent[own[len(own) - k]]
        if common:
            frequent[row] = own[k - 1]
    return np.flatnonzero(
        (both > 1) | (words >= np.repeat(rare, lengths)) | (words <= np.repeat(frequent, lengths))
    )


def commonest_absent(met: npt.NDArray[np.int32], k: int, n_words: int) -> npt.NDArray[np.int32]:
    """The k commonest words that are not met, by falling frequency."""
    absent = np.ones(
        min(k + len(met), n_words), dtype=bool
    )  # of so many words k are not met, if there are k
    absent[met[met < len(absent)]] = False
    return np.flatnonzero(absent)[:k].astype(np.int32)


class AbsentWords:
    """The words that never meet a label, by falling document frequency [V]: those of one
    frequency share one value.
    """

    def __init__(self, docs_with_word: npt.NDArray[np.int64]) -> None:
        falling, self._frequency_of, self._sizes = np.unique(
            -docs_with_word, return_inverse=True, return_counts=True
        )
        self.frequencies = -falling

    def find(
        self, values: npt.NDArray[np.float64], met: npt.NDArray[np.int32], k: int
    ) -> npt.NDArray[np.int32]:
        """The k best words that never meet the label, by a value for each frequency [F], above
        0; ties in the order of words.
        """
        wanted = values > 0
        if self._sizes[wanted].sum() > k + len(
            met
        ):  # of k + len(met) words at least k do not meet the label
            best_first = np.argsort(-values, kind="stable")
            enough = np.searchsorted(np.cumsum(self._sizes[best_first]), k + len(met))
            wanted &= values >= values[best_first[enough]]
        chosen = np.repeat(wanted, self._sizes)  # words of one frequency are neighbours
        chosen[met] = False
        words = np.flatnonzero(chosen)
        return words[np.argsort(-values[self._frequency_of[words]], kind="stable")[:k]].astype(
            np.int32
        )


Sign = Literal["positive", "any"]
# what a pair costs while its block is worked on: indices, counts, gathered margins, look-ups, value
BYTES_PER_WEIGHED_PAIR = 120
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What to keep, and how to work."""

    k: int = 1000  # words kept per label, at most
    sign: Sign = "positive"
    """`positive` keeps only words that occur more often with the label than without; `any` also
    words whose absence indicates it.
    """
    # bytes that all blocks under way may take together; what the source of the counts holds comes
    # on top
    memory: int = 2_000_000_000
    jobs: int = 1  # threads


def keep_words(counting: Cooccurrence, signal: Signal, selection: Selection) -> Iterator[KeptWords]:
    """The best words of every label by a signal, block after block of consecutive labels.

    The lists depend on neither the source of the counts nor the memory budget nor the number of
    threads; where blocks end does.
    """
    scoring = _Scoring(counting, signal, selection)
    cuts = cut_by_pairs(counting.pair_bounds + scoring.n_absent, counting.block_pairs, selection)
    return work_ahead(lambda block: scoring.keep_block(*block), pairwise(cuts), selection.jobs)


def cut_by_pairs(pair_bounds: AnyInts, block_pairs: int, selection: Selection) -> list[int]:
    """Where blocks of labels begin and end, by the most pairs that each label can have [L]."""
    return cut_blocks(
        pair_bounds, block_pairs, selection.memory // (selection.jobs * BYTES_PER_WEIGHED_PAIR)
    )


class _Scoring:
    """What all blocks share; nothing in it changes once it is made, so that threads may read it
    together.
    """

    def __init__(self, counting: Cooccurrence, signal: Signal, selection: Selection) -> None:
        self.counting, self.signal, self.selection = counting, signal, selection
        self.margins = counting.margins
        scores_absent = (
            selection.sign == "any" and not signal.signed and not signal.needs_pairs
        )  # by their document frequency alone
        self.n_absent = (
            min(selection.k, len(self.margins.words)) if scores_absent else 0
        )  # words that never meet a label, at most
        self.absent = (
            AbsentWords(self.margins.docs_with_word)
            if self.n_absent and not signal.quasi_convex
            else None
        )
        self.first_as_frequent = np.searchsorted(
            -self.margins.docs_with_word, -self.margins.docs_with_word
        )
        self.floor = -np.inf if selection.sign == "any" and signal.signed else 0.0

    def keep_block(self, start: int, stop: int) -> KeptWords:
        """The kept words of labels `start` to `stop`."""
        pairs = self._contenders(self.counting.count(start, stop))
        margins = self.margins
        counts = Counts(
            n_docs=margins.n_docs,
            docs_with_word=margins.docs_with_word[pairs.word],
            docs_with_label=pairs.spread(margins.docs_with_label),
            docs_with_both=pairs.both.astype(np.int64),
            occurrences=pairs.occurrences,
            words_with_label=None
            if margins.words_with_label is None
            else pairs.spread(margins.words_with_label),
            pairs=pairs.label * len(margins.words) + pairs.word
            if self.signal.needs_pairs
            else None,
        )
        values = self.signal.score(counts)
        if self.selection.sign == "positive" and not self.signal.signed:
            attracted = (
                counts.docs_with_both * counts.n_docs
                > counts.docs_with_label * counts.docs_with_word
            )
            values = np.where(attracted, values, 0.0)
        chosen, offsets = best_of_rows(
            pairs.offsets, values, pairs.word, self.selection.k, self.floor
        )
        return KeptWords(
            offsets=offsets,
            words=pairs.word[chosen],
            values=values[chosen],
            both=pairs.both[chosen],
        )

    def _contenders(self, met: CountedPairs) -> CountedPairs:
        """The pairs that can be among the best of a label: of words that meet it, all but those
        surely beaten; of others, the best k.
        """
        k, common = self.selection.k, self.selection.sign == "any"
        pairs = met
        if self.signal.quasi_convex:
            pairs = met.at(
                contenders(
                    met.offsets, met.word, met.both, self.first_as_frequent, k, common=common
                )
            )
        return pairs.with_absent(self._find_absent(met)) if self.n_absent else pairs

    def _find_absent(self, met: CountedPairs) -> list[npt.NDArray[np.int32]]:
        """The k best words that never meet the label, row by row."""
        k, rows = self.selection.k, [met.word[first:last] for first, last in pairwise(met.offsets)]
        if self.absent is None:
            return [commonest_absent(row, k, len(self.margins.words)) for row in rows]
        return [
            self.absent.find(values, row, k)
            for values, row in zip(self._score_absent(self.absent, met), rows, strict=True)
        ]

    def _score_absent(self, absent: AbsentWords, met: CountedPairs) -> Floats:
        """Values of words that never meet the label [labels of the block, distinct document
        frequencies].
        """
        zeros = np.zeros((1, 1), dtype=np.int64)
        block = slice(met.start, met.start + len(met.offsets) - 1)
        label = self.margins.docs_with_label[block, None]
        repeats = self.margins.words_with_label
        counts = Counts(
            n_docs=self.margins.n_docs,
            # A word of more documents than lack the label does meet it: its value is never read,
            # but must be computable.
            docs_with_word=np.minimum(absent.frequencies[None, :], self.margins.n_docs - label),
            docs_with_label=label,
            docs_with_both=zeros,
            occurrences=zeros if repeats is not None else None,
            words_with_label=None if repeats is None else repeats[block, None],
        )
        return self.signal.score(counts)
