"""Tf-idf vectors of documents by words and by the character n-grams of words, and reasons that
name words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, pairwise
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, eye_array, hstack, vstack

from plant_cli.api import Documents, Reason, Reporter, SilentReporter
from plant_cli.api.scorers import short_ends
from plant_cli.kit import (
    choose_columns,
    cut_blocks,
    find_pairs,
    map_blocks,
    pack_strings,
    unpack_strings,
)
from plant_scorers.lexical import (
    GramColumns,
    count_pieces,
    cut_vocabulary,
    document_frequencies,
    inverse_frequency,
    inverse_lengths,
    join_views,
    make_vectors,
    number_grams,
    stack_rows,
    unit_rows,
    weigh_counts,
    weigh_numbers,
)
from plant_scorers.nearest import NearestDocuments
from plant_scorers.ridge import Similarity

Floats32 = npt.NDArray[np.float32]
WORDS_GIVEN = 10  # words of a reason, of which the first telling ones are shown
CELLS_WEIGHED = 1 << 14  # terms of documents whose weights are made at a time
MOST_COUNTED = 1 << 20  # times that a document has a term, at most: more are stored as so many
Loaded = TypeVar("Loaded")


class NumberedTerms(GramColumns):
    """The column of each term, in order; one object for all vectorisers that were loaded with
    the same.
    """

    @classmethod
    def load(cls, packed: npt.NDArray[np.uint8]) -> NumberedTerms:
        """From packed strings; the terms that were loaded before, if they are the same."""
        key = packed.tobytes()
        terms = _TERMS.get(key)
        if terms is None:
            _TERMS[key] = terms = cls(unpack_strings(packed))
        return terms


_TERMS: WeakValueDictionary[bytes, NumberedTerms] = WeakValueDictionary()


@dataclass(frozen=True, kw_only=True, eq=False)
class Vectoriser:
    """Makes vectors of length 1 whose products are the mean of the cosines by words and by
    n-grams.
    """

    words: Mapping[str, int]  # the vocabulary [V]
    pieces: Mapping[str, int]  # character n-grams [G]; none: words alone
    idf: Floats32  # inverse document frequency of words, then of n-grams [V + G]

    @classmethod
    def fit(
        cls,
        documents: Documents,
        *,
        pieces: bool,
        advance: Callable[[int], None] = lambda documents: None,
    ) -> Train:
        """The vectoriser of training documents, by n-grams, too, if `pieces`, and their vectors.

        Terms are counted twice, block by block, so that memory holds the vectors and nothing else
        of their size. `advance` is told each time how many documents were counted.
        """
        grams = number_grams(documents.vocabulary) if pieces else {}
        empty = cls(
            words=dict(zip(documents.vocabulary, count(), strict=False)),
            pieces=grams,
            idf=np.zeros(0, dtype=np.float32),
        )
        frequencies = [
            np.zeros(len(terms), dtype=np.int64)
            for terms in ((empty.words, grams) if pieces else (empty.words,))
        ]
        cells = 0
        for counted in empty.count_terms(documents, documents.count_blocks(), map_blocks):
            cells += sum(counts.nnz for counts in counted)
            for frequency, counts in zip(frequencies, counted, strict=True):
                frequency += document_frequencies(counts)
            advance(counted[0].shape[0])
        idf = [
            inverse_frequency(len(documents), frequency) * weigh_numbers(tuple(terms))
            for terms, frequency in zip((empty.words, grams), frequencies, strict=False)
        ]
        fitted = cls(words=empty.words, pieces=grams, idf=np.concatenate(idf).astype(np.float32))
        again = empty.count_terms(documents, documents.count_blocks(), map_blocks)
        return fitted.keep(again, len(documents), cells, advance)

    def keep(
        self,
        counted: Iterable[Sequence[csr_array]],
        documents: int,
        cells: int,
        advance: Callable[[int], None] = lambda documents: None,
    ) -> Train:
        """Training documents of these counts, of so many cells together at most, as vectors."""
        sizes, scales = [], []

        def weigh(counts: Sequence[csr_array]) -> csr_array:
            advance(counts[0].shape[0])
            weighed = list(map(weigh_counts, counts, self.split_weights()))
            scales.append(np.stack(list(map(inverse_lengths, weighed)), axis=1))
            parts = list(map(unit_rows, weighed, scales[-1].T))
            sizes.append(np.stack([np.diff(part.indptr) for part in parts], axis=1))
            return join_views(parts)

        vectors = stack_rows(map(weigh, counted), documents, len(self.idf), cells)
        return Train(
            vectoriser=self,
            vectors=vectors,
            sizes=np.concatenate(sizes),
            scales=np.concatenate(scales),
        )

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """The terms as vectors have them, words before n-grams, each the last first [V + G]."""
        return np.roll(np.arange(len(self.idf))[::-1], len(self.words))

    def split_weights(self) -> list[Floats32]:
        """The inverse document frequencies of words, and those of n-grams."""
        return np.split(self.idf, [len(self.words)])

    def count_terms(
        self,
        documents: Documents,
        counts: Iterable[csr_array],
        share: Callable[..., Iterator[Any]] = map,
    ) -> Iterator[list[csr_array]]:
        """How often each word, and each n-gram, is in documents, by counts of all words of some
        after others; `share` is like `map`.
        """
        columns, cut = (
            documents.find_words(self.words),
            cut_vocabulary(documents, self.pieces) if self.pieces else None,
        )
        return share(partial(_count_terms, columns, len(self.words), cut), counts)

    def weigh(self, counted: Sequence[csr_array]) -> csr_array:
        """Vectors of counts, csr [B, V + G]."""
        return join_views(list(map(make_vectors, counted, self.split_weights())))

    def transform(self, documents: Documents) -> csr_array:
        """Vectors of documents, csr [B, V + G] float32; made once, however many scorers with
        this vectoriser ask for them.
        """
        return documents.remember(
            ("plant_scorers.vectors", self),
            lambda: self.weigh(*self.count_terms(documents, [documents.counts])),
        )

    def credit_words(self, document: Documents, products: csr_array) -> csr_array:
        """What each word of a document adds by itself and by its n-grams, csr [k, W]; words that
        share an n-gram share what it adds.

        Args:
            document: one document with W words in its vocabulary.
            products: what its terms add, csr [k, V + G].
        """

        def make() -> csr_array:
            own = choose_columns(
                eye_array(len(document.vocabulary), format="csr"),
                document.find_words(self.words),
                len(self.words),
            )
            return (
                csr_array(hstack([own, cut_vocabulary(document, self.pieces)], format="csr"))
                if self.pieces
                else own
            )

        return credit_terms(
            document.counts, document.remember(("plant_scorers.terms", self), make), products
        )

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays."""
        return {
            "words": pack_strings(tuple(self.words)),
            "pieces": pack_strings(tuple(self.pieces)),
            "idf": self.idf,
        }

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]]) -> Vectoriser:
        """From arrays; the one that was loaded before, if it has the same."""
        return _load_once(
            [tensors[name] for name in ("words", "pieces", "idf")],
            lambda: cls(
                words=NumberedTerms.load(tensors["words"]),
                pieces=NumberedTerms.load(tensors["pieces"]),
                idf=tensors["idf"],
            ),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Train:
    """The training documents as vectors: one for all scorers that compare by the same terms,
    whether they were fitted or loaded.
    """

    vectoriser: Vectoriser  # makes vectors of other documents
    # csr [N, V + G] float32, rows of length 1, those of words before those of n-grams
    vectors: csr_array
    sizes: npt.NDArray[
        np.int32
    ]  # how many words, and n-grams, of each document are stored [N, 2], or [N, 1] without n-grams
    scales: Floats32  # what these were multiplied by, so that each part has length 1, likewise

    @cached_property
    def similarity(self) -> Similarity:
        """Compares others with all of them."""
        return Similarity(self.vectors)

    @cached_property
    def nearest(self) -> NearestDocuments:
        """Compares others with those that share their rarest terms."""
        return NearestDocuments(self.vectors)

    @classmethod
    def fit(cls, documents: Documents, *, pieces: bool, reporter: Reporter | None = None) -> Train:
        """Of training documents [N], by n-grams, too, if `pieces`."""

        def make() -> Train:
            with (reporter or SilentReporter()).progress(
                "vectors of train", len(documents), "documents"
            ) as task:
                return Vectoriser.fit(
                    documents, pieces=pieces, advance=lambda count: task.advance(count / 2)
                )

        return documents.remember(("plant_scorers.vectors", pieces), make)

    def add(self, documents: Documents) -> Train:
        """With further documents after these, which change no inverse document frequency; words
        that these lack do not count.
        """
        if not len(documents):
            return self
        counted = list(self.vectoriser.count_terms(documents, documents.count_blocks()))
        cells = sum(counts.nnz for block in counted for counts in block)
        more = self.vectoriser.keep(counted, len(documents), cells)
        return Train(
            vectoriser=self.vectoriser,
            vectors=csr_array(vstack([self.vectors, more.vectors], format="csr")),
            sizes=np.concatenate([self.sizes, more.sizes]),
            scales=np.concatenate([self.scales, more.scales]),
        )

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """As arrays: which terms each document has, and how often those that it has more than
        once; weights follow from this.
        """
        terms, counts = self.vectors.indices, np.empty(self.vectors.nnz, dtype=np.uint32)
        for inside, scales in _spread(self.scales, self.sizes):
            once = self.vectoriser.idf[terms[inside]] * scales * _share(self.sizes)
            logs = (
                np.divide(self.vectors.data[inside], once, out=np.ones_like(once), where=once > 0)
                - 1
            )
            counts[inside] = np.minimum(np.rint(np.exp(logs.astype(np.float64))), MOST_COUNTED)
        repeated = counts > 1
        counts = counts[repeated].astype(np.min_scalar_type(counts.max(initial=1)))
        return {
            **self.vectoriser.tensors(),
            "train.terms": terms,
            "train.repeated": np.packbits(repeated),
            "train.counts": counts,
            "train.sizes": self.sizes,
            "train.scales": self.scales,
        }

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]]) -> Train:
        """From arrays; the one that was loaded before, if it has the same."""
        terms, counts, sizes, scales = (
            tensors[f"train.{name}"] for name in ("terms", "counts", "sizes", "scales")
        )
        idf, values, ends = (
            tensors["idf"],
            np.empty(len(terms), dtype=np.float32),
            np.concatenate([[0], np.cumsum(sizes.sum(axis=1))]),
        )
        repeated, done = tensors["train.repeated"], 0
        logs = 1 + np.log(
            np.arange(1, 1 + min(MOST_COUNTED, counts.max(initial=1)), dtype=np.float64)
        )
        for inside, spread in _spread(scales, sizes):
            bits = np.unpackbits(repeated[inside.start // 8 : -(-inside.stop // 8)])[
                inside.start % 8 :
            ][: len(spread)]
            weights, often = idf[terms[inside]], np.flatnonzero(bits.view(np.bool_))
            weights[often] *= logs[counts[done : done + len(often)] - 1]
            done += len(often)
            weights *= spread
            np.multiply(
                weights, _share(sizes), out=values[inside]
            )  # after the other product, as `join_views` has it
        if (done, ends[-1]) != (len(counts), len(terms)):
            raise ValueError("counts of other terms")
        vectors = csr_array((values, terms, short_ends(ends)), shape=(len(sizes), len(idf)))
        vectors.check_format(
            full_check=True
        )  # columns beyond the last one would be read outside of the memory
        return _load_once(
            [
                *(tensors[name] for name in ("words", "pieces", "idf")),
                vectors.data,
                vectors.indices,
                vectors.indptr,
            ],
            lambda: cls(
                vectoriser=Vectoriser.load(tensors), vectors=vectors, sizes=sizes, scales=scales
            ),
        )


def _share(sizes: npt.NDArray[np.integer[Any]]) -> np.float32:
    """What the parts of a document, words and n-grams, are multiplied by, so that both together
    have length 1.
    """
    return np.float32(np.sqrt(1 / sizes.shape[1]))


def _spread(
    scales: Floats32, sizes: npt.NDArray[np.integer[Any]]
) -> Iterator[tuple[slice, Floats32]]:
    """The stored terms of some documents after those of others, and what each was multiplied by
    in its part of the document.
    """
    last = 0
    for rows in pairwise(cut_blocks(sizes.sum(axis=1), CELLS_WEIGHED)):
        spread = np.repeat(scales[slice(*rows)].ravel(), sizes[slice(*rows)].ravel())
        first, last = last, last + len(spread)
        yield slice(first, last), spread


def _count_terms(
    columns: npt.NDArray[np.integer[Any]], words: int, pieces: csr_array | None, counts: csr_array
) -> list[csr_array]:
    """How often words that have one of so many columns, and n-grams, if there are any, are in
    documents, by counts of all words.
    """
    return [
        choose_columns(counts, columns, words),
        *([] if pieces is None else [count_pieces(counts, pieces)]),
    ]


def _load_once(arrays: Sequence[npt.NDArray[Any]], make: Callable[[], Loaded]) -> Loaded:
    """What is made of some arrays: the one that was made of the same before, while somebody has
    it.
    """
    for loaded, others in list(_LOADED.items()):
        if len(arrays) == len(others) and all(
            one is other or np.array_equal(one, other)
            for one, other in zip(arrays, others, strict=True)
        ):
            return cast(Loaded, loaded)
    made = make()
    _LOADED[made] = arrays
    return made


_LOADED: WeakKeyDictionary[Any, Sequence[npt.NDArray[Any]]] = WeakKeyDictionary()


def credit_terms(counts: csr_array, terms: csr_array, products: csr_array) -> csr_array:
    """What each word adds, csr [k, W], from what terms add, csr [k, T]; words that share a term
    share it by how often each has it.

    Args:
        counts: of the words of one document, csr [1, W], or of a passage for each label, csr [k,
            W].
        terms: how often each is in each word, csr [W, T].
        products: what terms that these words have add, csr [k, T].
    """
    shares = products.data / _look_up(count_pieces(counts, terms), products)
    added = csr_array(
        csr_array((shares, products.indices, products.indptr), shape=products.shape) @ terms.T
    )
    added.data *= _look_up(counts, added)
    return added


def _look_up(matrix: csr_array, where: csr_array) -> npt.NDArray[np.float64]:
    """What a matrix whose columns ascend has where another one, with as many rows or a single
    row for all, stores something.
    """
    rows = np.repeat(np.arange(where.shape[0]) % matrix.shape[0], np.diff(where.indptr))
    found: npt.NDArray[np.float64] = np.append(matrix.data, 0.0)[
        find_pairs(matrix, rows, where.indices.astype(np.int64))
    ]
    return found


def name_largest(added: csr_array, words: Sequence[str]) -> list[Reason]:
    """The words that add most for each label, largest first; none of those that add nothing.

    Args:
        added: what each word adds, csr [k, W].
        words: what the columns are called [W].
    """
    reasons = []
    for first, last in zip(added.indptr[:-1], added.indptr[1:], strict=True):
        largest = first + np.argsort(-added.data[first:last], kind="stable")[:WORDS_GIVEN]
        reasons.append(
            Reason(
                words=tuple(
                    words[added.indices[place]] for place in largest if added.data[place] > 0
                )
            )
        )
    return reasons
