"""The rule by which a run finds the relevance of words for labels; it holds for any documents,
such as a part of train.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack

from plant_cli.api import Corpus, Documents, SignalSpec
from plant_cli.api.components import ComponentLookup
from plant_cli.data.files import hash_json
from plant_cli.relevance.cooccurrence import Margins, MemoryCounts, count_terms
from plant_cli.relevance.engine import (
    KeptWords,
    Selection,
    Sign,
    Signal,
    bind_signal,
    keep_words,
)
from plant_cli.relevance.mig_options import MigOptions
from plant_cli.relevance.mutual_information import mutual_information
from plant_cli.relevance.normalisation import Norm, add_title_words, normalise_relevance
from plant_cli.relevance.relevance_table import LabelEdits, Weighed, apply_edits


@dataclass(frozen=True, kw_only=True)
class RelevanceRule:
    """The options of `plant mig`, bound to a signal and to labels."""

    signal: Signal
    name: str = "mig"  # of the signal, with its options
    occurrences: bool = False  # the signal needs to know how often words occur
    k: int = 1000  # words kept of a label, at most
    min_df: int = 2  # words in fewer documents are left out
    sign: Sign = "positive"
    norm: Norm = "label-max"
    titles: Sequence[Sequence[str]] = ()  # the words of each label's title [L]; empty: not weighed
    title_weight: float = 0.0  # relevance added to them
    labels: Sequence[str] = ()  # ids [L], by which edits name labels
    edits: Mapping[str, LabelEdits] = field(default_factory=dict)  # by hand

    @property
    def hash(self) -> str:
        """Two rules of one hash find the same."""
        edits = {label: [sorted(one.deny), dict(one.allow)] for label, one in self.edits.items()}
        options = [self.name, self.k, self.min_df, self.sign, self.norm, self.title_weight]
        return hash_json([*options, edits])

    @property
    def title_words(self) -> frozenset[str]:
        """The words of all titles that are weighed: those of a rare label may be in only one
        document.
        """
        return frozenset(word for title in self.titles for word in title)

    def weigh(
        self, margins: Margins, keep: Callable[[int], Iterator[KeptWords]]
    ) -> Iterator[Weighed]:
        """Each block of kept words with its relevance in [0, 1], from the raw values and from the
        titles.

        `keep` gives the k best words of all labels, block after block.
        """
        # The largest value of all labels must be known before the first block is weighed; it takes
        # a pass, since no block is kept.
        largest = (
            max((block.values.max(initial=0.0) for block in keep(1)), default=0.0)
            if self.norm == "global-max"
            else None
        )
        titles = self._number_titles(margins.words) if self.titles else None
        start = 0
        for kept in keep(self.k):
            block = slice(start, start + len(kept.offsets) - 1)
            relevance = normalise_relevance(
                kept,
                self.norm,
                n_docs=margins.n_docs,
                docs_with_word=margins.docs_with_word,
                docs_with_label=margins.docs_with_label[block],
                largest=largest,
            )
            if titles is not None:
                kept, relevance = add_title_words(
                    kept,
                    relevance,
                    titles[block],
                    weight=self.title_weight,
                    n_docs=margins.n_docs,
                    docs_with_word=margins.docs_with_word,
                )
            yield kept, relevance
            start = block.stop

    def _number_titles(self, words: Sequence[str]) -> list[list[int]]:
        """The distinct words of each label's title that are in the vocabulary, as indices."""
        index = {word: i for i, word in enumerate(words)}
        return [sorted({index[word] for word in title if word in index}) for title in self.titles]

    def relate(self, documents: Documents, gold: csr_array) -> tuple[Sequence[str], csr_array]:
        """Words [V], and their relevance for labels, csr [L, V] float32, by these documents and
        their labels, csr [N, L] of ones.
        """
        terms = count_terms(documents, self.min_df, self.title_words)
        counting = MemoryCounts(terms, gold, with_occurrences=self.occurrences)

        def keep(k: int) -> Iterator[KeptWords]:
            return keep_words(counting, self.signal, Selection(k=k, sign=self.sign))

        blocks = [
            csr_array(
                (relevance.astype(np.float32), kept.words, kept.offsets),
                shape=(len(kept.offsets) - 1, len(terms.words)),
            )
            for kept, relevance in self.weigh(counting.margins, keep)
        ]
        matrix = csr_array(vstack(blocks, format="csr")) if blocks else _nothing(gold, terms.words)
        if self.edits:
            matrix = apply_edits(matrix, self.edits, [*self.labels], terms.words)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return terms.words, matrix


def _nothing(gold: csr_array, words: Sequence[str]) -> csr_array:
    empty: npt.NDArray[np.float32] = np.zeros(0, dtype=np.float32)
    return csr_array((empty, (empty, empty)), shape=(gold.shape[1], len(words)))


BY_INFORMATION = RelevanceRule(signal=Signal(score=mutual_information, quasi_convex=True))
"""The defaults of `plant mig`."""


def make_rule(
    corpus: Corpus,
    options: MigOptions,
    component: ComponentLookup,
    edits: Mapping[str, LabelEdits] = MappingProxyType({}),
) -> RelevanceRule:
    """The rule that the options give for the labels of a corpus, with edits by hand."""
    signal, signal_options = component(SignalSpec, options.signal)
    weighs = options.label_text_weight > 0 and any(corpus.labels.titles)
    return RelevanceRule(
        signal=bind_signal(signal, signal_options),
        name=f"{signal.name} {signal_options.model_dump_json()}",
        occurrences=signal.needs_occurrences,
        k=options.k,
        min_df=options.min_df,
        sign=options.sign,
        norm=options.norm,
        titles=[corpus.analyser.spell(title or "") for title in corpus.labels.titles]
        if weighs
        else (),
        title_weight=options.label_text_weight,
        labels=corpus.labels.ids,
        edits=edits,
    )
