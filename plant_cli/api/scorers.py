"""What scores labels besides the network: scorers, what they are fitted on, and the documents they read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from scipy.sparse import csr_array

    from plant_cli.api.context import Reporter


Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Documents, each cut into words once, however many scorers read them."""

    vocabulary: Sequence[str]
    """Distinct words, as the corpus counts them [W]; after `take` also words that only other documents have."""
    numbers: npt.NDArray[np.int32]
    """The words of all documents in order, each by its number, int32 [T]."""
    ends: npt.NDArray[np.int64]
    """Where each document begins in `numbers`, and where the last one ends, int64 [B + 1]."""

    def __len__(self) -> int:
        return len(self.ends) - 1

    def remember(self, name: Hashable, make: Callable[[], Value]) -> Value:
        """What is made of these documents once, for all scorers that ask for it by the same name; it lives as long as the documents.

        Args:
            name: says all that the value depends on beside the documents.
            make: makes it.
        """
        if name not in self._remembered:
            self._remembered[name] = make()
        found: Value = self._remembered[name]
        return found

    @cached_property
    def _remembered(self) -> dict[Hashable, Any]:
        return {}

    @cached_property
    def counts(self) -> csr_array:
        """How often each word is in each document, csr [B, W] float64, columns ascending."""
        import numpy as np
        from scipy.sparse import csr_array

        counts = csr_array((np.ones(len(self.numbers)), self.numbers, self.ends), shape=(len(self), len(self.vocabulary)))
        counts = counts.copy()  # summing works in place, and these arrays are ours
        counts.sum_duplicates()
        return counts

    def take(self, rows: npt.NDArray[Any]) -> Self:
        """Some of the documents, with the same vocabulary.

        Args:
            rows: which [b].
        """
        import numpy as np

        lengths = np.diff(self.ends)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.arange(ends[-1]) - np.repeat(ends[:-1] - self.ends[:-1][rows], lengths)
        return type(self)(vocabulary=self.vocabulary, numbers=self.numbers[places], ends=ends)


@dataclass(frozen=True, kw_only=True)
class ScorerInput:
    """What a scorer is fitted on: training documents and what labels are called."""

    documents: Documents
    """The training documents [N]."""
    doc_ids: Sequence[str]
    """Their ids [N]."""
    gold: csr_array
    """Their labels, csr [N, L] of ones, columns ascending."""
    names: Documents
    """Titles and other names of labels, as documents [M]."""
    label_of: npt.NDArray[np.int64]
    """Label of each name, rising, int64 [M]; a label may have several names, or none."""
    rows: npt.NDArray[np.int64]
    """Training documents whose left-out scores are wanted, rising, int64 [b]."""
    reporter: Reporter
    """Where notes go."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why one label is likely."""

    text: str
    """In a few words: words of the document, a title, a training document; empty: no reason is known."""
    words: Sequence[str] = ()
    """The words of the document that it names, as `Documents.vocabulary` spells them."""


class Scorer(Protocol):
    """Scores labels for documents. What it learned is arrays, so that it is saved without pickle."""

    def score(self, documents: Documents) -> Sequence[csr_array]:
        """The best labels of each document, the same whatever other documents are asked for.

        Args:
            documents: any number B.

        Returns:
            Scores for each view that the scorer takes of a document (its whole text, its best passage, …), most take one: each csr [B, L]
            float32, finite, columns ascending, at most `plant_cli.kit.KEPT` labels of a document. A label that is not listed
            scores 0, or less than the least that is listed where the list is full or goes below 0.
        """
        ...

    def explain(self, document: Documents, labels: Sequence[int]) -> Sequence[Reason]:
        """Why some labels are likely, the same whatever documents this one was taken from.

        Args:
            document: one document.
            labels: rows of the label index [k].
        """
        ...

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        """All that `ScorerSpec.load` needs, as arrays by name."""
        ...


@dataclass(frozen=True, kw_only=True)
class FittedScorer:
    """A scorer, and what it says of training documents that it has not seen."""

    scorer: Scorer
    """Fitted on all training documents."""
    left_out: Sequence[csr_array] | None = None
    """Scores of the training documents `ScorerInput.rows`, each as if the scorer had been fitted without it, in the form of
    `Scorer.score`; None: the scorer has no short way to them, and is fitted again without a part of train, part by part.
    """


@dataclass(frozen=True, kw_only=True)
class ShortlistInput:
    """What a shortlist is built from; all of it is fitted on train."""

    words: Sequence[str]
    """The vocabulary [V], lower-cased."""
    relevance: csr_array
    """Of words for labels, csr [L, V] in [0, 1]."""
    docs_with_word: npt.NDArray[np.int64]
    """Training documents with each word [V]."""
    train_counts: npt.NDArray[np.int64]
    """Training documents of each label [L]."""
    documents: int
    """Training documents N."""


class Shortlist(Protocol):
    """Proposes labels for documents, before any network has read them."""

    def propose(self, texts: Sequence[str], counts: csr_array) -> Sequence[npt.NDArray[np.int64]]:
        """Distinct label indices for each document, in any order; the same whatever other documents are asked for.

        Args:
            texts: the documents [B].
            counts: how often each word of the vocabulary is in them, csr [B, V].
        """
        ...
