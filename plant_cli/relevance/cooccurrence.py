"""Counts of words, of labels, and of words with labels in documents; in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api.scorers import Documents
from plant_cli.data.blocks import cut_blocks

BATCH_WORDS = 1 << 22  # word occurrences that are added up together: about 50 MB
CACHED_PAIRS = (
    1 << 18
)  # pairs per block whose temporaries (about ten arrays of 8 bytes) stay near the processor
AnyInts = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The words of N training documents."""

    words: tuple[
        str, ...
        # the vocabulary, by falling document frequency, then alphabetically: a smaller index wins
        # every tie
    ]
    occurrences: csr_array  # [N, V], how often each word occurs in each document
    docs_with_word: npt.NDArray[np.int64]  # [V]


def count_terms(documents: Documents, min_df: int = 2, keep: Set[str] = frozenset()) -> Terms:
    """Count the words of documents; words in fewer than `min_df` are left out, unless they are
    in `keep`.
    """
    return join_batches(list(count_batches(documents)), documents.vocabulary, min_df, keep)


def count_batches(documents: Documents) -> Iterator[csr_array]:
    """How often each word is in each document, csr [b, W] int32 of consecutive documents."""
    for first, last in pairwise(cut_blocks(np.diff(documents.ends), BATCH_WORDS)):
        ends = documents.ends[first : last + 1]
        numbers = documents.numbers[ends[0] : ends[-1]].copy()  # summing works in place
        ones = np.ones(len(numbers), dtype=np.int32)
        counted = csr_array(
            (ones, numbers, (ends - ends[0]).astype(np.int32)),
            shape=(last - first, len(documents.vocabulary)),
        )
        counted.sum_duplicates()
        yield counted


def join_batches(
    batches: Sequence[csr_array], vocabulary: Sequence[str], min_df: int, keep: Set[str]
) -> Terms:
    """The words of all documents, from the batches of `count_batches`; arguments as in
    `count_terms`.
    """
    counted = (
        csr_array(vstack(batches, format="csr"))
        if batches
        else csr_array((0, len(vocabulary)), dtype=np.int32)
    )
    frequency = np.bincount(counted.indices, minlength=len(vocabulary)).astype(np.int64)
    words, order = choose_words(vocabulary, frequency, min_df, keep)
    chosen = csr_array(counted[:, order])
    chosen.sort_indices()
    return Terms(words=words, occurrences=chosen, docs_with_word=frequency[order])


def choose_words(
    vocabulary: Sequence[str], frequency: npt.NDArray[np.int64], min_df: int, keep: Set[str]
) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """The words that are kept, by falling document frequency, then alphabetically, and the
    number of each of them [V].
    """
    chosen = [
        number
        for number, word in enumerate(vocabulary)
        if frequency[number] >= min_df or word in keep
    ]
    chosen.sort(key=lambda number: (-frequency[number], vocabulary[number]))
    return tuple(vocabulary[number] for number in chosen), np.asarray(chosen, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Margins:
    """Counts of documents, of words and of labels, each by themselves."""

    n_docs: int
    words: tuple[str, ...]  # as in `Terms`
    docs_with_word: npt.NDArray[np.int64]  # [V]
    docs_with_label: npt.NDArray[np.int64]  # [L]
    words_with_label: npt.NDArray[np.int64] | None = (
        None  # [L], words with repeats; None: occurrences are not counted
    )

    @classmethod
    def of(
        cls,
        words: tuple[str, ...],
        docs_with_word: npt.NDArray[np.int64],
        by_label: csr_array,
        lengths: npt.NDArray[np.integer[Any]] | None,
    ) -> Margins:
        """The margins of documents with labels `by_label` (csr [L, N] of 0/1) and so many words
        each [N], if occurrences are counted.
        """
        return cls(
            n_docs=by_label.shape[1],
            words=words,
            docs_with_word=docs_with_word,
            docs_with_label=np.diff(by_label.indptr).astype(np.int64),
            words_with_label=None
            if lengths is None
            else np.asarray(by_label @ lengths, dtype=np.int64),
        )


@dataclass(frozen=True, kw_only=True)
class CountedPairs:
    """Words and labels that occur together, of a block of labels; row i is
    `offsets[i]:offsets[i + 1]`, its words in any order.
    """

    start: int  # the label of row 0
    offsets: AnyInts  # int64 [labels of the block + 1]
    word: npt.NDArray[np.int32]  # vocabulary index of each pair
    both: npt.NDArray[np.int32]  # documents with label and word
    occurrences: npt.NDArray[np.int32] | None = (
        None  # of the word in the documents of the label; None: not counted
    )

    @classmethod
    def of(cls, both: csr_array, occurrences: csr_array | None, start: int) -> CountedPairs:
        """The pairs of counts [labels of the block, V] whose first row is label `start`; both
        matrices store the same pairs.
        """
        if occurrences is not None:
            both.sort_indices()
            occurrences.sort_indices()
        return cls(
            start=start,
            offsets=both.indptr.astype(np.int64),
            word=both.indices.astype(np.int32, copy=False),
            both=both.data.astype(np.int32, copy=False),
            occurrences=None
            if occurrences is None
            else occurrences.data.astype(np.int32, copy=False),
        )

    def at(self, positions: AnyInts) -> CountedPairs:
        """The pairs at ascending positions."""
        return CountedPairs(
            start=self.start,
            offsets=np.searchsorted(positions, self.offsets),
            word=self.word[positions],
            both=self.both[positions],
            occurrences=None if self.occurrences is None else self.occurrences[positions],
        )

    def with_absent(self, words: Sequence[npt.NDArray[np.int32]]) -> CountedPairs:
        """These pairs, with words added to each row that occur in no document of its label."""
        never = np.zeros(max(map(len, words), default=0), dtype=np.int32)
        zeros = [never[: len(row)] for row in words]

        def join(
            values: npt.NDArray[np.int32], others: Sequence[npt.NDArray[np.int32]]
        ) -> npt.NDArray[np.int32]:
            rows = (values[first:last] for first, last in pairwise(self.offsets))
            return np.concatenate(
                [part for parts in zip(rows, others, strict=True) for part in parts]
            )

        return CountedPairs(
            start=self.start,
            offsets=self.offsets + np.cumsum([0, *map(len, words)]),
            word=join(self.word, words),
            both=join(self.both, zeros),
            occurrences=None if self.occurrences is None else join(self.occurrences, zeros),
        )

    @property
    def label(self) -> AnyInts:
        """Label index of each pair."""
        return self.spread(np.arange(self.start + len(self.offsets) - 1))

    def spread(self, of_label: AnyInts) -> AnyInts:
        """Values of each label [L], repeated for each of its pairs."""
        return np.repeat(
            of_label[self.start : self.start + len(self.offsets) - 1], np.diff(self.offsets)
        )


class Cooccurrence(Protocol):
    """A source of exact counts. Several threads may count blocks of labels at once."""

    @property
    def margins(self) -> Margins:
        """Counts of documents, words and labels by themselves."""
        ...

    @property
    def pair_bounds(self) -> AnyInts:
        """Upper bounds on the words that co-occur with each label [L]."""
        ...

    @property
    def block_pairs(self) -> int:
        """Size of a block, in pairs, that this source counts fastest."""
        ...

    def count(self, start: int, stop: int) -> CountedPairs:
        """The pairs of labels `start` to `stop`."""
        ...


class MemoryCounts:
    """Counts by the sparse product of labels (`gold`, csr [N, L] of 0/1) and words; it never
    changes.
    """

    block_pairs = CACHED_PAIRS

    def __init__(self, terms: Terms, gold: csr_array, *, with_occurrences: bool = False) -> None:
        self.by_label = csr_array(gold.T.astype(np.int32))
        self.presence = mark_presence(terms.occurrences)
        self.occurrences = terms.occurrences if with_occurrences else None
        lengths = terms.occurrences.sum(axis=1) if with_occurrences else None
        self.margins = Margins.of(terms.words, terms.docs_with_word, self.by_label, lengths)
        distinct_words = np.diff(self.presence.indptr).astype(np.int64)
        self.pair_bounds: AnyInts = np.minimum(self.by_label @ distinct_words, len(terms.words))

    def count(self, start: int, stop: int) -> CountedPairs:
        """The pairs of labels `start` to `stop`."""
        labels = self.by_label[start:stop]
        return CountedPairs.of(
            labels @ self.presence,
            None if self.occurrences is None else labels @ self.occurrences,
            start,
        )


def mark_presence(occurrences: csr_array) -> csr_array:
    """1 where a document holds a word, however often."""
    ones = np.ones(occurrences.nnz, dtype=np.int32)
    return csr_array((ones, occurrences.indices, occurrences.indptr), shape=occurrences.shape)
