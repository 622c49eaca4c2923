"""What a document's words alone say for each label: the cosine between its tf-idf vector and the label's relevance.

Nothing here is trained, so a label with one training document is scored as faithfully as one with a thousand. Stage 2 adds it to
the network's logits, with one weight chosen on validation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from plant_cli.api import Analyser
from plant_cli.artefacts.lexical import StoredLexicon, read_lexicon, write_lexicon
from plant_cli.corpus.words import count_words
from plant_cli.lexical.vectors import inverse_frequency, make_vectors, unit_rows
from plant_cli.model.word_statistics import WordStatistics


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """What lexical scores are computed from.

    Args:
        words: the vocabulary.
        analyser: finds them in texts.
        idf: ln((N + 1) / (documents with the word + 1)) over the N training documents [V].
        by_word: relevance of words for labels, csr [V, L]; columns of length 1 (or empty).
        silent: share of training documents of each label without relevant words, 0 for the others [L]. Such a label gets the average
            over its documents and all others: 0 where it applies, the centre less where it does not.
        weight: logits that a cosine higher by 1 adds.
        centre: the cosine that adds nothing; it moves all scores alike, so that probabilities do not crowd at 1.
    """

    words: tuple[str, ...]
    analyser: Analyser
    idf: npt.NDArray[np.float32]
    by_word: csr_array
    silent: npt.NDArray[np.float32]
    weight: float = 1.0
    centre: float = 0.0

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Index of each word."""
        return {word: column for column, word in enumerate(self.words)}

    def vectors(self, texts: Sequence[str]) -> csr_array:
        """tf-idf of texts, csr [B, V] float32 of length 1: (1 + ln tf) · idf over the words of the vocabulary."""
        return make_vectors(count_words(texts, self.places, self.analyser), self.idf)


def make_lexicon(known: WordStatistics) -> Lexicon:
    """The lexicon of a relevance table and its counts, all of train."""
    idf = inverse_frequency(known.documents, known.docs_with_word).astype(np.float32)
    rows = unit_rows(known.table.matrix)
    silent = np.where(np.diff(rows.indptr), 0.0, known.docs_with_label / max(1, known.documents)).astype(np.float32)
    return Lexicon(words=known.table.words, analyser=known.analyser, idf=idf, by_word=csr_array(rows.T), silent=silent)


class LexicalScores:
    """Lexical scores of the documents of one split, in batches.

    Args:
        lexicon: what the words say; its weight and centre may be set later.
        texts: the split's texts.
    """

    def __init__(self, lexicon: Lexicon, texts: Sequence[str]) -> None:
        self.lexicon = lexicon
        self._documents = lexicon.vectors(texts)

    def scores(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """How far the cosines [B, L] of the given documents with every label lie above the centre; see `Lexicon.silent`."""
        found: npt.NDArray[np.float32] = (self._documents[rows] @ self.lexicon.by_word).toarray()
        found -= np.float32(self.lexicon.centre) * (1 - self.lexicon.silent)
        return found

    def mean_cosine(self, gold: csr_array, batch: int = 64) -> float:
        """The mean cosine of documents with those of their own labels (gold [N, L]) that have relevant words, 0 if there are none."""
        total = 0.0
        for start in range(0, gold.shape[0], batch):
            rows = slice(start, start + batch)
            total += float(gold[rows].multiply(self._documents[rows] @ self.lexicon.by_word).sum())
        return total / max(1, int((self.lexicon.silent[gold.indices] == 0).sum()))


def save_lexicon(lexicon: Lexicon, folder: Path, label_hash: str) -> None:
    """Write the lexicon beside the model that it belongs to; atomically."""
    stored = StoredLexicon(
        words=lexicon.words,
        idf=lexicon.idf,
        by_label=csr_array(lexicon.by_word.T),
        silent=lexicon.silent,
        weight=lexicon.weight,
        centre=lexicon.centre,
    )
    write_lexicon(folder, stored, label_hash)


def load_lexicon(folder: Path, label_hash: str, analyser: Analyser) -> Lexicon | None:
    """The lexicon of a trained model, or None if it has none; errors as `read_lexicon`.

    Args:
        folder: of the stage.
        label_hash: of the ordered label ids.
        analyser: of the run's corpus, which found the words of the lexicon.
    """
    stored = read_lexicon(folder, label_hash)
    if stored is None:
        return None
    return Lexicon(
        words=stored.words,
        analyser=analyser,
        idf=stored.idf,
        by_word=csr_array(stored.by_label.T),
        silent=stored.silent,
        weight=stored.weight,
        centre=stored.centre,
    )
