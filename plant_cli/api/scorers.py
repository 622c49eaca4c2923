"""Scorers, which score labels without the network; their input; and shortlists."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from plant_cli.api.options import FIXED_SEED
from plant_cli.api.read_only import protect, read_only

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from scipy.sparse import csr_array

    from plant_cli.api.context import Reporter


Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Documents as sequences of words; they are split once for all scorers."""

    vocabulary: Sequence[str]
    """Distinct words [W]; after `take` also words that none of the documents has."""
    numbers: npt.NDArray[np.int32]
    """Index of each word of all documents, in order, int32 [T]."""
    ends: npt.NDArray[np.int64]
    """Start of each document in `numbers`, and end of the last one, int64 [B + 1]."""
    texts: Sequence[str] | None = None
    """The documents as they were written [B]; None where nothing asks for them
    (`ScorerSpec.needs_texts`).
    """

    def __post_init__(self) -> None:
        protect(self)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def remember(self, name: Hashable, make: Callable[[], Value]) -> Value:
        """A value that is computed once and kept with the documents, for all scorers that ask for
        it by the same name.

        Args:
            name: holds everything that the value depends on besides the documents.
            make: computes the value.
        """
        if name not in self._remembered:
            self._remembered[name] = read_only(make())
        found: Value = self._remembered[name]
        return found

    @cached_property
    def _remembered(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def counts(self) -> csr_array:
        """Count of each word in each document, csr [B, W] float64 with sorted columns."""
        import numpy as np
        from scipy.sparse import csr_array

        counts = csr_array(
            (np.ones(len(self.numbers)), self.numbers, short_ends(self.ends)),
            shape=(len(self), len(self.vocabulary)),
        )
        counts = counts.copy()  # summing works in place, and these arrays are ours
        counts.sum_duplicates()
        seen: csr_array = read_only(counts)
        return seen

    def count_blocks(self) -> Iterator[csr_array]:
        """The same for some documents after others, csr [b, W]: many never have all counts at
        once.
        """
        if len(self) <= DOCUMENTS_COUNTED:
            yield self.counts
            return
        for start in range(0, len(self), DOCUMENTS_COUNTED):
            yield self.take(slice(start, start + DOCUMENTS_COUNTED)).counts

    @cached_property
    def frequencies(self) -> npt.NDArray[np.int64]:
        """How many of the documents have each word of the vocabulary [W]."""
        found = sum((counts > 0).sum(axis=0) for counts in self.count_blocks())
        seen: npt.NDArray[np.int64] = read_only(found)
        return seen

    def find_words(self, columns: Mapping[str, int]) -> npt.NDArray[np.int64]:
        """The column that another vocabulary has for each word of these documents [W]; −1: it
        has none.
        """
        import numpy as np

        found = (columns.get(word, -1) for word in self.vocabulary)
        return np.fromiter(found, dtype=np.int64, count=len(self.vocabulary))

    def take(self, rows: npt.NDArray[Any] | slice) -> Self:
        """The documents of these rows [b], with the same vocabulary."""
        import numpy as np

        starts, stops = self.ends[:-1][rows], self.ends[1:][rows]
        parts = [
            self.numbers[start:stop]
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]
        numbers = np.concatenate([self.numbers[:0], *parts])
        return type(self)(
            vocabulary=self.vocabulary,
            numbers=numbers,
            ends=np.append(0, np.cumsum(stops - starts)),
            texts=None
            if self.texts is None
            else [self.texts[row] for row in np.arange(len(self))[rows].tolist()],
        )


DOCUMENTS_COUNTED = 1 << 14  # at a time
DOCUMENTS_PER_LEFT_OUT = 5  # no more than one training document in so many is left out at a time


def short_ends(ends: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Ends of rows in 32 bits if they fit: with 64, scipy would widen the column of every cell,
    too.
    """
    return ends.astype("int32") if ends[-1] < 1 << 31 else ends


@dataclass(frozen=True, kw_only=True)
class ScorerInput:
    """What a scorer is fitted on: training documents and names of labels."""

    documents: Documents
    """The training documents [N]."""
    doc_ids: Sequence[str]
    """Their ids [N]."""
    gold: csr_array
    """Their labels, csr [N, L] of ones with sorted columns."""
    names: Documents
    """Titles and other names of labels, as documents [M]."""
    label_of: npt.NDArray[np.int64]
    """Label of each name, ascending, int64 [M]; a label may have several names, or none."""
    rows: npt.NDArray[np.int64]
    """Training documents that need held-out scores, ascending, int64 [b]."""
    reporter: Reporter
    """Receives notes."""
    relate: Callable[[Documents, csr_array], tuple[Sequence[str], csr_array]]
    """Words [V] and their relevance for labels, csr [L, V] in [0, 1], as the run's `plant mig`
    finds them in any documents and their labels, csr [N, L]; by mutual information if the run
    has none. For scorers with `ScorerSpec.needs_relevance`.
    """

    def __post_init__(self) -> None:
        protect(self)

    def cut_folds(self) -> list[npt.NDArray[np.int64]]:
        """Positions of those of `rows` that are left out together, so that no more than a fifth of
        two or more documents is missing at a time.
        """
        import numpy as np

        number = -(-len(self.rows) // max(1, len(self.documents) // DOCUMENTS_PER_LEFT_OUT))
        fold = np.random.default_rng(FIXED_SEED).permutation(len(self.rows)) % max(1, number)
        return [np.flatnonzero(fold == part) for part in range(number)]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why one label is likely."""

    text: str = ""
    """A title, a training document, or other words to read. If it is empty, the first of
    `words` are shown, common ones only where there are no others.
    """
    words: Sequence[str] = ()
    """The words of the document that speak for the label, the strongest first, as in
    `Documents.vocabulary`.
    """


class Scorer(Protocol):
    """A fitted scorer. It is saved as arrays, without pickle."""

    def score(self, documents: Documents) -> Sequence[csr_array]:
        """The best labels of each of B documents. The scores of a document do not depend on the
        other documents.

        Returns:
            Scores for each view of a document (most scorers have one; others add its best passage,
            …): csr [B, L] float32, finite, with sorted columns, at most
            `plant_cli.kit.LABELS_LISTED` labels of a document. A label that is not listed scores 0;
            if the list is full or has negative scores, it scores less than the lowest that is
            listed.
        """

    def explain(self, document: Documents, labels: Sequence[int]) -> Sequence[Reason]:
        """Why these labels (indices [k]) are likely for one document."""

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        """The arrays that `ScorerSpec.load` needs, by name."""


@runtime_checkable
class CreditingScorer(Protocol):
    """A scorer whose scores are sums over the words of a document. Optional: without it `plant
    explain` has its reasons in words alone.
    """

    def credit(self, document: Documents, labels: Sequence[int]) -> Sequence[csr_array]:
        """What each word of one document adds to the scores of these labels (indices [k]).

        Returns:
            For each view of `Scorer.score` a csr [k, W], a column for each word of the document's
            vocabulary. A row adds up to the score.
        """


@dataclass(frozen=True, kw_only=True)
class FittedScorer:
    """A scorer, and its scores of training documents that were left out when it was fitted."""

    scorer: Scorer
    """Fitted on all training documents."""
    left_out: Sequence[csr_array] | None = None
    """Scores of the documents `ScorerInput.rows`, each as if the scorer had been fitted without
    it, in the form of `Scorer.score`. None if the scorer has no shortcut: it is then fitted
    again without each part of them, once if train has at least 5,000 documents, and five or six
    times if it has 100 to 1,000. With more than 50,000 documents it is not asked: every scorer
    is fitted once, without them.
    """


@dataclass(frozen=True, kw_only=True)
class ShortlistInput:
    """What a shortlist is built from; all of it comes from train."""

    words: Sequence[str]
    """The vocabulary [V], lower-cased."""
    relevance: csr_array
    """Relevance of words for labels, csr [L, V] in [0, 1]."""
    docs_with_word: npt.NDArray[np.int64]
    """Training documents with each word [V]."""
    train_counts: npt.NDArray[np.int64]
    """Training documents of each label [L]."""
    documents: int
    """Training documents N."""

    def __post_init__(self) -> None:
        protect(self)


class Shortlist(Protocol):
    """Proposes labels for documents before the network reads them."""

    def propose(self, texts: Sequence[str], counts: csr_array) -> Sequence[npt.NDArray[np.int64]]:
        """Distinct labels for each document, in any order. They do not depend on the other
        documents.

        Args:
            texts: the documents [B].
            counts: count of each word of the vocabulary, csr [B, V].
        """
