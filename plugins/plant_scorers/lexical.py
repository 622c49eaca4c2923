"""Engines of scorers: words, titles and documents as vectors."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count, pairwise, repeat
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, diags_array, hstack, vstack

from plant_cli.api.scorers import Documents, short_ends
from plant_cli.kit import (
    LABELS_LISTED,
    SparseScores,
    at_most,
    choose_columns,
    keep_best,
    map_blocks,
)
from plant_scorers.sparse_products import score_blocks

AnyFloats = npt.NDArray[np.floating[Any]]


def inverse_frequency(
    documents: int, docs_with_term: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.float64]:
    """ln((N + 1) / (n + 1)) of terms that n [V] of N documents have: 0 for a term of every
    document, finite for one of none.
    """
    weights: npt.NDArray[np.float64] = np.log((documents + 1) / (docs_with_term + 1))
    return weights


WEIGHT_OF_NUMBERS = 0.3
_NUMBERED = re.compile(r"\d")


def count_known(documents: Documents, columns: Mapping[str, int]) -> csr_array:
    """How often each word that has a column is in each document, csr [B, V] float64, columns
    ascending.
    """
    return choose_columns(documents.counts, documents.find_words(columns), len(columns))


def document_frequencies(counts: csr_array) -> npt.NDArray[np.int64]:
    """How many documents have each term [V], from counts csr [B, V] without stored zeros or
    repeats.
    """
    return np.bincount(counts.indices, minlength=counts.shape[1]).astype(np.int64)


def weigh_numbers(terms: Sequence[str]) -> AnyFloats:
    """How much each word or n-gram counts [V]: those with a digit less, since most numbers say
    nothing, and a few a lot.
    """
    return np.array([WEIGHT_OF_NUMBERS if _NUMBERED.search(term) else 1.0 for term in terms])


def weigh_counts(counts: csr_array, idf: AnyFloats | None = None) -> csr_array:
    """(1 + ln tf) · idf of every stored count, > 0, of a csr [B, V], float32 (Salton and Buckley
    1988, sublinear tf).

    Logarithms are taken in the type of the counts; idf [V] is 1 by default.
    """
    values = 1 + np.log(counts.data)
    if idf is not None:
        values = values * idf[counts.indices]
    return csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)


def unit_rows(matrix: csr_array, scales: AnyFloats | None = None) -> csr_array:
    """The matrix with rows scaled to length 1, float32; empty rows stay empty. `scales`: those
    of `inverse_lengths`, if they are known.
    """
    scaled = (
        diags_array(inverse_lengths(matrix) if scales is None else scales, dtype=np.float64)
        @ matrix
    )
    return csr_array(scaled, dtype=np.float32)


def inverse_lengths(matrix: csr_array) -> AnyFloats:
    """What scales each row to length 1, and 1 for an empty row [B], of the type of the matrix."""
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    scales: AnyFloats = 1.0 / np.where(lengths > 0, lengths, 1.0)
    return scales


def make_vectors(counts: csr_array, idf: AnyFloats) -> csr_array:
    """Tf-idf vectors of documents, csr [B, V] float32 with rows of length 1, from counts csr
    [B, V] and weights of terms [V].
    """
    return unit_rows(weigh_counts(counts, idf))


def join_views(views: Sequence[csr_array]) -> csr_array:
    """Several vectors of each document, csr [B, V_i] with rows of length 1, as one csr [B, ΣV]
    whose cosines are the means of theirs.
    """
    return csr_array(
        hstack([view * np.float32(np.sqrt(1 / len(views))) for view in views], format="csr")
    )


def stack_rows(parts: Iterable[csr_array], rows: int, width: int, cells: int) -> csr_array:
    """Matrices of consecutive rows as one, csr float32 [rows, width], made one after another;
    they hold no more than so many cells.
    """
    data, indices, ends = (
        np.empty(cells, dtype=np.float32),
        np.empty(cells, dtype=np.int32),
        np.zeros(rows + 1, dtype=np.int64),
    )
    row = filled = 0
    for part in parts:
        inside = slice(filled, filled + part.nnz)
        data[inside], indices[inside], ends[row + 1 : row + 1 + part.shape[0]] = (
            part.data,
            part.indices,
            filled + part.indptr[1:],
        )
        row, filled = row + part.shape[0], inside.stop
    return csr_array((data[:filled], indices[:filled], short_ends(ends)), shape=(rows, width))


SHORTEST, LONGEST = 3, 5
EDGE = " "


def cut_word(word: str, shortest: int = SHORTEST, longest: int = LONGEST) -> list[str]:
    """The character n-grams of a word between two spaces, which mark its ends; with repeats. A
    word that is too short for one is one.
    """
    text = f"{EDGE}{word}{EDGE}"
    sizes = range(shortest, min(longest, len(text)) + 1)
    return [
        text[start : start + size] for size in sizes for start in range(len(text) - size + 1)
    ] or [text]


@lru_cache(maxsize=4)
def cut_words(words: tuple[str, ...]) -> tuple[Mapping[str, int], csr_array]:
    """A number for each n-gram of distinct words, in order of appearance, and how often each is in
    each word, csr [W, G] float32.

    Every scorer that reads a vocabulary asks for the same: the last answers are kept.
    """
    numbers: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for word in words:
        columns += [numbers.setdefault(gram, len(numbers)) for gram in cut_word(word)]
        ends.append(len(columns))
    cells = (
        np.ones(len(columns), dtype=np.float32),
        np.array(columns, dtype=np.int32),
        np.array(ends),
    )
    matrix = csr_array(cells, shape=(len(words), len(numbers)))
    matrix.sum_duplicates()
    return MappingProxyType(numbers), matrix


def number_grams(words: Iterable[str]) -> Mapping[str, int]:
    """A number for each n-gram of some words, in the order in which they come."""
    return cut_words(tuple(words))[0]


def count_grams(words: Sequence[str], numbers: Mapping[str, int]) -> csr_array:
    """How often each n-gram is in each of distinct words, csr [W, G] float32; n-grams without a
    column are left out.
    """
    grams, counts = cut_words(tuple(words))
    columns = np.fromiter(map(numbers.get, grams, repeat(-1)), dtype=np.int32, count=len(grams))
    return choose_columns(counts, columns, len(numbers))


WORDS_KEPT, LONGEST_KEPT = 1 << 17, 64  # words that are kept, and their characters: 40 MB


class GramColumns(dict[str, int]):
    """The column of each n-gram. The columns of words that were cut are kept: new texts have
    mostly these.
    """

    def __init__(self, grams: Iterable[str]) -> None:
        super().__init__(zip(grams, count(), strict=False))
        self._kept: dict[str, bytes] = {}

    def count(self, words: Sequence[str]) -> csr_array:
        """How often each n-gram is in each of distinct words, csr [W, G] float64."""
        rows = [
            self._cut(word) if (kept := self._kept.get(word)) is None else kept for word in words
        ]
        columns = np.frombuffer(bytearray().join(rows), dtype=np.int32)
        ends = short_ends(np.cumsum([0, *map(len, rows)]) // columns.itemsize)
        counts = csr_array((np.ones(len(columns)), columns, ends), shape=(len(words), len(self)))
        counts.sum_duplicates()
        return counts

    def _cut(self, word: str) -> bytes:
        found = map(self.get, cut_word(word))
        columns = array("i", [column for column in found if column is not None]).tobytes()
        if len(self._kept) >= WORDS_KEPT:
            self._kept.clear()
        if len(word) <= LONGEST_KEPT:
            self._kept[word] = columns
        return columns


Ints = npt.NDArray[np.int64]


def cut_vocabulary(documents: Documents, columns: Mapping[str, int]) -> csr_array:
    """How often each n-gram that has a column is in each word of the documents' vocabulary, csr [W,
    G] float64.

    Documents of one vocabulary (passages of others, some of others) share it: their counts times it
    are counts of n-grams.
    """
    if isinstance(columns, GramColumns):
        return columns.count(documents.vocabulary)
    return count_grams(documents.vocabulary, columns).astype(np.float64)


def count_pieces(words: csr_array, pieces: csr_array) -> csr_array:
    """How often each character n-gram is in documents, csr [B, G] float64, columns ascending,
    by counts of words and `cut_vocabulary`.
    """
    counts = csr_array(words @ pieces)
    counts.sort_indices()
    return counts


def cut_documents(documents: Documents, length: int) -> tuple[Documents, Ints]:
    """Passages of so many words, each beginning half a length after the one before it, and the
    document of each [S].
    """
    step, sizes = max(1, length // 2), np.diff(documents.ends)
    passages = np.maximum(1, -(-(sizes - length + step) // step))
    owners = np.repeat(np.arange(len(documents)), passages)
    number = np.arange(len(owners)) - np.repeat(np.cumsum(passages) - passages, passages)
    starts = documents.ends[:-1][owners] + number * step
    return _slice_words(
        documents, starts, np.minimum(starts + length, documents.ends[1:][owners]) - starts
    ), owners


def cut_leads(documents: Documents, length: int) -> Documents:
    """The same documents, so many first words of each alone: many texts begin with a title."""
    return _slice_words(documents, documents.ends[:-1], np.minimum(np.diff(documents.ends), length))


def _slice_words(documents: Documents, starts: Ints, sizes: Ints) -> Documents:
    """Documents of slices of the words of others, by where each slice begins and how many words
    it has.
    """
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    positions = np.arange(ends[-1]) - np.repeat(ends[:-1] - starts, sizes)
    return Documents(
        vocabulary=documents.vocabulary, numbers=documents.numbers[positions], ends=ends
    )


WORD_LABEL_PAIRS = 1 << 22  # of word and label held at a time
BYTES_OF_A_WORD_LABEL_PAIR = 150  # counts and relevance in four cases
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
AnyRows = npt.NDArray[np.integer[Any]]
Measure = Callable[[Counts, Counts, Counts, int], Floats]
"""Relevance, ≥ 0, from documents with word and label, with the word, with the label [P], and
documents in all.
"""


def measure_relevance(
    counts: csr_array,
    gold: csr_array,
    measure: Measure,
    kept: int | None = None,
    advance: Callable[[int], None] = lambda labels: None,
) -> csr_array:
    """Relevance of words for labels, rows of length 1, csr [L, V] float32, from counts csr [N, V]
    and labels csr [N, L] of ones.

    Of a label the `kept` words of highest relevance stay (default: all above 0). Pairs of word and
    label are looked at for some labels at a time: memory holds `WORD_LABEL_PAIRS` of them, and
    those that are kept. `advance` is told how many labels are done.
    """
    parts = []
    work, blocks = (
        partial(_measure, _Occurrences.of(counts), measure, kept),
        cut_by_words(counts, gold),
    )
    for part in map_blocks(work, (csr_array(gold[:, labels]) for labels in blocks)):
        parts.append(part)
        advance(part.shape[0])
    if not parts:
        return SparseScores.none(0, counts.shape[1]).matrix
    return csr_array(vstack(parts, format="csr"))


def _measure(
    occurrences: _Occurrences, measure: Measure, kept: int | None, gold: csr_array
) -> csr_array:
    """`measure_relevance` of some labels at once."""
    world = _World.of(occurrences, gold)
    relevance = unit_rows(
        world.store(measure(world.both, world.with_word, world.with_label, world.documents))
    )
    relevance.eliminate_zeros()
    return relevance if kept is None else keep_best(relevance, kept).matrix


def cut_by_words(counts: csr_array, gold: csr_array, pairs: int | None = None) -> list[slice]:
    """Consecutive slices of labels that meet no more than so many words together (default:
    `WORD_LABEL_PAIRS`), or one label each.
    """
    met = np.minimum(counts.shape[1], gold.T @ np.diff(counts.indptr)).astype(np.int64)
    slices, first, held, most = (
        [],
        0,
        0,
        pairs or at_most(WORD_LABEL_PAIRS, BYTES_OF_A_WORD_LABEL_PAIR),
    )
    for label, number in enumerate(met.tolist()):
        if label > first and held + number > most:
            slices.append(slice(first, label))
            first, held = label, 0
        held += number
    return [*slices, slice(first, len(met))] if len(met) else []


def leave_out_words(
    counts: csr_array,
    gold: csr_array,
    measure: Measure,
    rows: AnyRows | None = None,
    *,
    k: int = LABELS_LISTED,
    min_df: int = 1,
    weights: AnyFloats | None = None,
    advance: Callable[[int], None] = lambda labels: None,
) -> SparseScores:
    """Cosines of training documents with the relevance of words for labels, each as if computed
    without it; exact.

    A document changes the counts of its own words and labels alone, so that the cosine with a label
    follows from two sparse products instead of a table for each document: the squared length of the
    label's relevance is that over all words, corrected for the document's. Every word with
    relevance above 0 counts, if at least `min_df` other documents have it.

    Args:
        counts: how often each word is in each training document, csr [N, V].
        gold: their labels, csr [N, L] of ones.
        measure: relevance from counts of documents.
        rows: training documents to score [b] (default: all).
        k: labels kept of each document.
        min_df: other documents that must have a word.
        weights: how much each word counts in a document [V] (default: 1).
        advance: told how many labels are done.
    """
    remaining = document_frequencies(counts) - 1
    idf = np.where(
        remaining >= max(1, min_df), np.log(counts.shape[0] / np.maximum(1, remaining + 1)), 0.0
    )
    idf = idf if weights is None else idf * weights
    chosen = np.arange(counts.shape[0]) if rows is None else rows
    of_rows = csr_array(counts[chosen]).astype(np.float64)
    vectors, occurs = make_vectors(of_rows, idf), csr_array(of_rows > 0).astype(np.float64)
    parts = []
    work, blocks = (
        partial(_leave_out, _Occurrences.of(counts), vectors, occurs, chosen, measure, min_df, k),
        cut_by_words(counts, gold),
    )
    for part in map_blocks(work, (csr_array(gold[:, labels]) for labels in blocks)):
        parts.append(part)
        advance(part.matrix.shape[1])
    return parts[0] if len(parts) == 1 else _keep_best_of(parts, (len(chosen), gold.shape[1]), k)


def _leave_out(
    occurrences: _Occurrences,
    vectors: csr_array,
    occurs: csr_array,
    rows: AnyRows,
    measure: Measure,
    min_df: int,
    k: int,
    gold: csr_array,
) -> SparseScores:
    """`leave_out_words` of some labels at once."""
    left = _LeftOut(
        _World.of(occurrences, gold), vectors, occurs, csr_array(gold[rows]), measure, min_df
    )
    return score_blocks(len(rows), gold.shape[1], left.score, k)


def _keep_best_of(parts: Sequence[SparseScores], shape: tuple[int, int], k: int) -> SparseScores:
    """The best labels of documents, from their best labels among some labels after others."""
    if not parts:
        return SparseScores.none(*shape)
    return keep_best(csr_array(hstack([part.matrix for part in parts], format="csr")), k)


@dataclass(frozen=True)
class _Occurrences:
    """Which documents have each word."""

    ones: csr_array  # csr [N, V] int32
    docs_with_word: Counts  # [V]

    @classmethod
    def of(cls, counts: csr_array) -> _Occurrences:
        """From counts without stored zeros, whose columns it shares."""
        return cls(
            csr_array(
                (np.ones(counts.nnz, dtype=np.int32), counts.indices, counts.indptr),
                shape=counts.shape,
            ),
            document_frequencies(counts),
        )


@dataclass(frozen=True)
class _World:
    """Counts of documents for every word and label that occur together [P], in the order of a
    csr [L, V].
    """

    documents: int
    both: Counts
    with_word: Counts
    with_label: Counts
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]
    shape: tuple[int, int]

    @classmethod
    def of(cls, occurrences: _Occurrences, gold: csr_array) -> _World:
        met = csr_array(gold.T.astype(np.int32).tocsr() @ occurrences.ones)
        met.sort_indices()
        labels = np.repeat(np.arange(met.shape[0]), np.diff(met.indptr))
        docs_with_label = np.bincount(gold.indices, minlength=gold.shape[1]).astype(np.int64)
        with_word, with_label = occurrences.docs_with_word[met.indices], docs_with_label[labels]
        return cls(
            gold.shape[0],
            met.data.astype(np.int64),
            with_word,
            with_label,
            met.indices,
            met.indptr,
            met.shape,
        )

    def store(self, values: Floats) -> csr_array:
        """Values of the pairs as a matrix [L, V]."""
        return csr_array((values, self.indices, self.indptr), shape=self.shape)


class _LeftOut:
    """Relevance with and without the document left out: of its words and others, of its labels
    and others; the impossible is clipped.
    """

    def __init__(
        self,
        world: _World,
        vectors: csr_array,
        occurs: csr_array,
        gold: csr_array,
        measure: Measure,
        min_df: int,
    ) -> None:
        self.vectors, self.occurs, self.gold = vectors, occurs, gold
        rest, both, word, label = world.documents - 1, world.both, world.with_word, world.with_label
        frequent, known = word >= min_df, word - 1 >= min_df

        def measure_rest(both: Counts, word: Counts, label: Counts) -> Floats:
            label, word = np.minimum(label, rest), np.minimum(word, rest)
            both = np.clip(both, np.maximum(0, word + label - rest), np.minimum(word, label))
            return measure(both, word, label, rest)

        elsewhere = np.where(
            frequent, measure_rest(both, word, label), 0.0
        )  # the word is not in the document
        here = np.where(known, measure_rest(both, word - 1, label), 0.0)
        always = (
            both == label
        )  # all documents of the label have the word: one without it is none of them
        own_elsewhere = np.where(frequent & ~always, measure_rest(both, word, label - 1), 0.0)
        own_here = np.where(known, measure_rest(both - 1, word - 1, label - 1), 0.0)
        self.here, self.own_here = csr_array(world.store(here).T), world.store(own_here)
        self.change = csr_array(world.store(here**2 - elsewhere**2).T)
        self.own_change = world.store(own_here**2 - own_elsewhere**2)
        self.squares = world.store(elsewhere**2) @ np.ones(world.shape[1])
        self.own_squares = world.store(own_elsewhere**2) @ np.ones(world.shape[1])

    def score(self, block: slice) -> csr_array:
        """Cosines [b, L] of the documents in a block, those above 0."""
        vectors, occurs = self.vectors[block].astype(np.float64), self.occurs[block]
        scores = _divide(
            (vectors @ self.here).toarray(),
            self.squares + (occurs @ self.change).toarray(),
            self.squares,
        )
        own_rows, own_labels = self.gold[block].nonzero()
        for part in _cut_pairs(np.diff(self.own_here.indptr)[own_labels]):
            rows, labels = own_rows[part], own_labels[part]
            products = self.own_here[labels].multiply(vectors[rows]).sum(axis=1)
            squares = self.own_squares[labels] + self.own_change[labels].multiply(occurs[rows]).sum(
                axis=1
            )
            scores[rows, labels] = _divide(products, squares, self.squares[labels])
        return csr_array(np.maximum(scores, 0))


def _cut_pairs(sizes: Counts) -> Iterator[slice]:
    """Consecutive pairs that hold about `WORD_LABEL_PAIRS` words together; a frequent label
    meets most of the vocabulary.
    """
    held = np.cumsum(sizes)
    cuts = (
        np.searchsorted(held, np.arange(WORD_LABEL_PAIRS, held[-1], WORD_LABEL_PAIRS)).tolist()
        if len(held)
        else []
    )
    return (slice(first, last) for first, last in pairwise([0, *cuts, len(held)]))


def _divide(products: Floats, squares: Floats, uncorrected: Floats) -> npt.NDArray[np.float32]:
    """Products over lengths, 0 where nothing is left of a length but rounding."""
    exists = squares > 1e-12 * np.broadcast_to(uncorrected, squares.shape)
    lengths = np.sqrt(np.where(exists, squares, 1.0))
    return np.where(exists, products / lengths, 0.0).astype(np.float32)
